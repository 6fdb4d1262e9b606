"""``evaluations.otlp.json``: an OpenTelemetry event ``gen_ai.evaluation.result`` per check.

Conventions: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from agentci._util.text import json_text
from agentci.model.result import Report, Status
from agentci.model.values import Json, JsonObject
from agentci.reports.exported_checks import CheckOutcome, iterate_outcomes
from agentci.result_files import otel
from agentci.version import __version__

_INFO: Final = 9
# Reasons have up to 2,000 characters: below the 4 MiB that some receivers accept.
RECORDS_PER_REQUEST: Final = 500
_LABELS: Final[dict[Status | None, str | None]] = {
    **{status: label for label, status in otel.LABELS.items()},
    "errored": None,
    None: None,
}
_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")


class OtelReport(Struct, frozen=True, kw_only=True):
    """Events for observability backends; a Collector reads them with its OTLP JSON receiver."""

    tool_version: str = __version__
    name: str = "otel"
    file_name: str = "evaluations.otlp.json"

    def render(self, report: Report) -> Iterator[str]:
        """Yield ASCII JSON. The times are 0, unknown: two reports of one run are equal."""
        return self._render(iterate_outcomes(report), time=0)

    def render_requests(self, report: Report, *, time: int) -> Iterator[tuple[str, int]]:
        """Yield the events as OTLP requests, each with its number of records.

        Args:
            time: of the events, in nanoseconds since 1970.
        """
        outcomes = iterate_outcomes(report)
        while batch := tuple(islice(outcomes, RECORDS_PER_REQUEST)):
            yield "".join(self._render(batch, time=time)), len(batch)

    def _render(self, outcomes: Iterable[CheckOutcome], *, time: int) -> Iterator[str]:
        resource = [
            _make_attribute("service.name", "agentci"),
            _make_attribute("service.version", self.tool_version),
        ]
        scope = {"name": "agentci", "version": self.tool_version}
        yield '{"resourceLogs":[{"resource":'
        yield json_text.dumps({"attributes": resource})
        yield f',"scopeLogs":[{{"scope":{json_text.dumps(scope)},"logRecords":'
        yield from json_text.format_array(_render_record(each, time) for each in outcomes)
        yield "}]}]}\n"


def _render_record(outcome: CheckOutcome, time: int) -> str:
    result = outcome.result
    found: dict[str, Json] = {
        otel.METRIC: outcome.metric,
        otel.CASE_ID: result.case.id,
        otel.SCORE: result.score,
        otel.LABEL: _LABELS[outcome.status],
        otel.EXPLANATION: outcome.reason or None,
        otel.ERROR_TYPE: "evaluation_error" if outcome.status == "errored" else None,
        otel.THRESHOLD: result.evaluator.threshold,
    }
    record: JsonObject = {
        "timeUnixNano": str(time),
        "severityNumber": _INFO,
        "severityText": "INFO",
        "eventName": otel.EVENT_NAME,
        "attributes": [
            _make_attribute(name, value) for name, value in found.items() if value is not None
        ],
    }
    if _TRACE_ID.fullmatch(result.case.trace_id):
        record = {**record, "traceId": result.case.trace_id}
    return json_text.dumps(record)


def _make_attribute(name: str, value: Json) -> JsonObject:
    kind = "stringValue" if isinstance(value, str) else "doubleValue"
    return {"key": name, "value": {kind: value}}
