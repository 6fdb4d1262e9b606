"""Sends an OpenTelemetry event per check to an OTLP endpoint.

Protocol: https://opentelemetry.io/docs/specs/otlp/#otlphttp, with JSON.
"""

import time
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from agentci._util.text.format import format_count
from agentci.cli.session import OTLP_HEADERS_VARIABLE, Session
from agentci.errors import FetchError, PermanentFetchError
from agentci.model.result import Report
from agentci.model.values import Problem
from agentci.reports.further_formats import OtelReport

LOGS_PATH: Final = "/v1/logs"
_MAX_RESPONSE_BYTES: Final = 64 * 1024
_OK: Final = 200


def send_events(report: Report, url: str, session: Session) -> tuple[Problem, ...]:
    """Send the events of a report in one or more requests; stops at the first that fails.

    Args:
        url: the endpoint as the user gave it; ``/v1/logs`` is appended unless it ends so.

    Returns:
        A warning if not all were sent.
    """
    sent = 0
    try:
        address, headers = _format_logs_url(url), dict(_parse_headers(session.otlp_headers))
        for request, size in OtelReport().render_requests(report, time=time.time_ns()):
            response = session.http.ask(
                address,
                limit_bytes=_MAX_RESPONSE_BYTES,
                headers={**headers, "Content-Type": "application/json"},
                method="POST",
                content=request.encode(),
            )
            if response.status != _OK:
                raise PermanentFetchError(f"it answered with status {response.status}")
            rejected = _count_rejected(response.content)
            sent += size - rejected
            if rejected:
                raise PermanentFetchError(f"it rejected {rejected}", hint="read its log")
    except FetchError as error:
        count = f"{sent} of {format_count(len(report.results), 'event')}"
        message = f"only {count} were sent to the OTLP endpoint: {error}"
        hint = error.hint or f"check the address and {OTLP_HEADERS_VARIABLE}"
        return (Problem(message=message, hint=hint, severity="warning"),)
    return ()


def _format_logs_url(url: str) -> str:
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(LOGS_PATH) else f"{path}{LOGS_PATH}").geturl()


class _PartialSuccess(Struct, frozen=True, rename="camel"):
    rejected_log_records: int | str = 0  # ProtoJSON writes int64 as text


class _Response(Struct, frozen=True, rename="camel"):
    partial_success: _PartialSuccess = _PartialSuccess()


def _count_rejected(content: bytes) -> int:
    """Return the number of rejected records; 0 if the response does not say."""
    try:
        return int(
            msgspec.json.decode(content, type=_Response).partial_success.rejected_log_records
        )
    except (ValueError, RecursionError):  # invalid JSON is one
        return 0


def _parse_headers(text: str) -> Iterator[tuple[str, str]]:
    """Parse ``name=value,name=value`` with percent-encoding, as OpenTelemetry's exporters do.

    Raises:
        PermanentFetchError: an item has no ``=``.
    """
    for item in filter(None, map(str.strip, text.split(","))):
        name, equals, value = item.partition("=")
        if not equals:
            # The item is not shown: it may be a token.
            raise PermanentFetchError(
                f"{OTLP_HEADERS_VARIABLE} has an item without `=`",
                hint="write it as name=value,name=value",
            )
        yield unquote(name.strip()), unquote(value.strip())
