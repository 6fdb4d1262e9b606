"""OpenTelemetry events ``gen_ai.evaluation.result``, in OTLP JSON."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from agentci.model.result import Status
from agentci.recordings.otlp import decode_any_value, parse_trace_id
from agentci.result_files.content import ResultContent
from agentci.result_files.row import (
    CaseRun,
    ResultFile,
    ResultRow,
    as_number,
    as_score,
    as_text,
    check_unique,
    first_line,
    make_result_error,
    make_warning,
    number_metrics,
    number_runs,
)

NAME: Final = "otel"
EVENT_NAME: Final = "gen_ai.evaluation.result"
METRIC: Final = "gen_ai.evaluation.name"
SCORE: Final = "gen_ai.evaluation.score.value"
LABEL: Final = "gen_ai.evaluation.score.label"
EXPLANATION: Final = "gen_ai.evaluation.explanation"
ERROR_TYPE: Final = "error.type"
# The conventions have no names for these; agentci writes them.
CASE_ID: Final = "agentci.case.id"
THRESHOLD: Final = "agentci.threshold"
_CASE_IDS: Final = (CASE_ID, "agentevals.eval.case.id", "gen_ai.conversation.id")
# The vocabulary is free; of other labels it is not known which of them pass.
LABELS: Final[dict[Any, Status]] = {
    "pass": "passed",
    "fail": "failed",
    "not_evaluated": "skipped",
}
_TOP_KEYS: Final = ("resourceLogs", "resourceSpans")


class _OtelRecord(Struct, rename="camel"):
    """A log record, or an event of a span, whose ``name`` says which."""

    attributes: list[Any] = []
    event_name: Any = None
    name: Any = None
    trace_id: Any = None
    events: list["_OtelRecord"] = []


class _OtelScope(Struct, rename="camel"):
    log_records: list[_OtelRecord] = []
    spans: list[_OtelRecord] = []


class _OtelResource(Struct, rename="camel"):
    scope_logs: list[_OtelScope] = []
    scope_spans: list[_OtelScope] = []


class _OtelExport(Struct, rename="camel"):
    resource_logs: list[_OtelResource] = []
    resource_spans: list[_OtelResource] = []


def recognises(content: ResultContent) -> bool:
    """Whether the file is an OTLP export; ``read`` refuses it without events."""
    return any(content.has(key) for key in _TOP_KEYS)


def read(content: ResultContent) -> ResultFile:
    """Read all exports of the file.

    Events of one case and metric are turns of it, numbered as metrics, if they belong to one
    trace; several traces are repeats.

    Raises:
        InputError: it has another shape, or no such event.
    """
    if content.kind == "lines":
        exports: Iterable[_OtelExport] = (each for _, each in content.decode_lines(_OtelExport))
    else:
        exports = (content.decode(_OtelExport),)
    by_case: dict[tuple[str, str], list[ResultRow]] = {}
    labels: dict[str, None] = {}
    count = 0
    for attributes, trace in _iterate_events(exports):
        count += 1
        case = next((as_text(attributes[key]) for key in _CASE_IDS if key in attributes), trace)
        row = _make_row(attributes, labels)
        if row is not None:
            by_case.setdefault((case, trace), []).append(row)
    if not count:
        message = f"the file has no `{EVENT_NAME}` events: it holds telemetry, not results"
        raise make_result_error(content.file, message, hint="name traces under `traces:`")
    runs = (CaseRun(case=case, rows=number_metrics(rows)) for (case, _), rows in by_case.items())
    warnings = tuple(
        make_warning(
            content.file, f"label {label} is not read as a verdict; only pass and fail are"
        )
        for label in labels
    )
    rows = check_unique(number_runs(runs), file=content.file)
    return ResultFile(file=content.file, tool=NAME, rows=rows, warnings=warnings)


def _iterate_events(exports: Iterable[_OtelExport]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the attributes and the trace id of each event: a log record, or an event of a span."""
    for export in exports:
        log_scopes = (scope for each in export.resource_logs for scope in each.scope_logs)
        span_scopes = (scope for each in export.resource_spans for scope in each.scope_spans)
        for record in (record for scope in log_scopes for record in scope.log_records):
            attributes = _read_attributes(record)
            if EVENT_NAME in (record.event_name, attributes.get("event.name")):
                yield attributes, parse_trace_id(record.trace_id) or ""
        for span in (span for scope in span_scopes for span in scope.spans):
            for event in (each for each in span.events if each.name == EVENT_NAME):
                yield _read_attributes(event), parse_trace_id(span.trace_id) or ""


def _read_attributes(record: _OtelRecord) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in record.attributes:
        if isinstance(each, dict) and isinstance(each.get("key"), str):
            found[each["key"]] = decode_any_value(each.get("value"))
    return found


def _make_row(attributes: Mapping[str, Any], labels: dict[str, None]) -> ResultRow | None:
    """Make the row of an event; None for one with neither a score, a verdict nor an error."""
    score, label = as_score(attributes.get(SCORE)), attributes.get(LABEL)
    status = LABELS.get(as_text(label)) if label is not None else None
    if attributes.get(ERROR_TYPE):
        status = "errored"
    elif label is not None and status is None:
        labels[as_text(label)] = None
    if score is None and status is None:
        return None
    return ResultRow(
        case="",
        metric=as_text(attributes.get(METRIC) or "evaluation"),
        status=status,
        score=score,
        threshold=as_number(attributes.get(THRESHOLD)),
        reason=first_line(attributes.get(EXPLANATION)),
    )
