"""Parses error responses of model services, and formats them without keys."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from agentci._util.http.interface import HttpResponse
from agentci._util.text import escape, truncate
from agentci._util.text.secrets import redact
from agentci.model.json import Json, JsonObject
from agentci.model.judges import ModelSettings

# In characters; longer texts are truncated.
MAX_MESSAGE: Final = 2000

PAYMENT_REQUIRED: Final = 402
BAD_REQUEST: Final = 400
# Retrying does not help with these, although their status is 429 or 400.
OUT_OF_CREDIT_CODES: Final = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "enforced_spend_limit_reached",
    }
)
OUT_OF_CREDIT_TEXT: Final = "credit balance is too low"
CONTENT_FILTER_CODE: Final = "content_filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiErrorDetails:
    """The error response of a service.

    Attributes:
        codes: all its error codes and types.
        param: the request parameter that it is about.
        message: may quote the request, including the key.
    """

    status: int
    codes: frozenset[str]
    param: str
    message: str = field(repr=False)

    @property
    def is_out_of_credit(self) -> bool:
        """Whether the credit is used up, so that further requests would fail, too."""
        return (
            self.status == PAYMENT_REQUIRED
            or not OUT_OF_CREDIT_CODES.isdisjoint(self.codes)
            or OUT_OF_CREDIT_TEXT in self.message.lower()
        )

    @property
    def is_content_filtered(self) -> bool:
        """Whether a content filter blocked the prompt."""
        return self.status == BAD_REQUEST and CONTENT_FILTER_CODE in self.codes


def parse_api_error(status: int, content: bytes) -> ApiErrorDetails:
    """Parse the body of an unsuccessful response; accepts any bytes."""
    try:
        document: Json = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    parts = tuple(_find_error_objects(document))
    return ApiErrorDetails(
        status=status,
        codes=frozenset(_find_texts(parts, "code", "type", "status")),
        param=next(_find_texts(parts, "param"), ""),
        message=next(_find_texts(parts, "message", "detail", "error"), "")[:MAX_MESSAGE],
    )


def _find_error_objects(document: Json) -> Iterator[JsonObject]:
    """Find the objects that may describe the error, the innermost first."""
    if isinstance(document, list):
        document = document[0] if document else None
    if isinstance(document, Mapping):
        if isinstance(error := document.get("error"), Mapping):
            yield error
        yield document


def _find_texts(parts: tuple[JsonObject, ...], *names: str) -> Iterator[str]:
    for part in parts:
        for name in names:
            if isinstance(value := part.get(name), str) and value:
                yield value


MAX_MESSAGE_SHOWN: Final = 300
MAX_ID: Final = 80
UNAUTHORIZED: Final = frozenset({401, 403})
REDIRECTS: Final = range(300, 400)
NOT_FOUND: Final = 404
GONE: Final = 410
REQUEST_ID_HEADERS: Final = ("x-request-id", "request-id", "apim-request-id")


def format_api_error_with_advice(
    details: ApiErrorDetails, response: HttpResponse, settings: ModelSettings, key: str
) -> str:
    """Format an error response with advice on what to do."""
    shown = format_api_error(details, response, key)
    return f"the judge's service returned {shown}; {_advise(details, settings)}"


def format_api_error(details: ApiErrorDetails, response: HttpResponse, key: str) -> str:
    """Format an error response without advice."""
    shown = f"status {details.status}"
    # A service may quote the rejected key, or a part of it.
    if details.message and details.status not in UNAUTHORIZED:
        shown += f" ({truncate.short(_hide_key(details.message, key), MAX_MESSAGE_SHOWN)})"
    if request_id := _find_request_id(response, key):
        shown += f", request ID {request_id}"
    return shown


def _advise(details: ApiErrorDetails, settings: ModelSettings) -> str:
    status = details.status
    key = settings.key_variable
    if details.is_out_of_credit:
        return f"the key in {key} has no credit left" if key else "no credit is left"
    if status in UNAUTHORIZED:
        return _advise_on_key(settings)
    if status in REDIRECTS:
        return "a redirect is not followed with a key and texts; correct `base_url`"
    if status in {NOT_FOUND, GONE}:
        return f"check that it offers {settings.model}, and that `base_url` is right"
    return "check the judge's settings"


def _advise_on_key(settings: ModelSettings) -> str:
    key = settings.key_variable
    if settings.federation is not None:
        return f"check that the account in `auth` may use {settings.model}"
    if not key:
        return "set `api_key_env` to the environment variable with its key"
    return f"check the key in {key}, and that it may use {settings.model}"


def _find_request_id(response: HttpResponse, key: str) -> str:
    request_id = next(
        (response.headers[name] for name in REQUEST_ID_HEADERS if name in response.headers), ""
    )
    return truncate.short(_hide_key(request_id, key), MAX_ID)


def _hide_key(text: str, key: str) -> str:
    line = escape.escape_for_log_line(text)
    return redact(line, (key,)) if key else line
