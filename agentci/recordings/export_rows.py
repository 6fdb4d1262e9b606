"""Reads the rows of exports of platforms to spans with the attributes of their conventions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from agentci._util.text.json_text import dumps
from agentci.model.values import Json, JsonObject
from agentci.recordings import otlp
from agentci.recordings.otlp import parse_timestamp
from agentci.recordings.telemetry import spans
from agentci.recordings.telemetry.json_input import MAX_DEPTH, iterate_objects, parse_json_or_text
from agentci.recordings.telemetry.semconv import ReadAttributes

RowReader: TypeAlias = Callable[
    [Iterable[JsonObject], ReadAttributes], Iterator[spans.TelemetryRecord]
]

_HEX_PREFIX: Final = "0x"


def as_object(value: Json) -> JsonObject:
    """Return an object; other values become an empty one."""
    return value if isinstance(value, dict) else {}


def parse_object(value: Json) -> JsonObject:
    """Return an object, also from JSON text; other values become an empty one."""
    return as_object(parse_json_or_text(value) if isinstance(value, str) else value)


def find(fields: JsonObject, *names: str) -> Json:
    """Return the first field that is there and not null."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def to_text(value: Json) -> Json:
    """Return objects and lists as JSON text, as attributes hold them; other values unchanged."""
    return dumps(value) if isinstance(value, dict | list) else value


def make_span(
    row: JsonObject,
    attributes: Mapping[str, Json],
    names: ReadAttributes,
    ids: tuple[Json, Json, Json],
    *,
    failed: bool,
) -> spans.Span | spans.RejectedSpan:
    """Make the span of a row.

    Args:
        attributes: by the names of a convention; null stands for a missing one.
        ids: of its trace, of itself and of its parent.
    """
    trace_id, span_id, parent_id = map(_strip_prefix, ids)
    raw: JsonObject = {
        "traceId": trace_id,
        "spanId": span_id,
        "parentSpanId": parent_id,
        "name": row.get("name"),
        "startTimeUnixNano": parse_timestamp(
            find(row, "start_time", "startTime", "start_time_unix_nano")
        ),
        "endTimeUnixNano": parse_timestamp(find(row, "end_time", "endTime", "end_time_unix_nano")),
        "attributes": {key: value for key, value in attributes.items() if value is not None},
        "status": {"code": "STATUS_CODE_ERROR" if failed else None},
        "events": [
            {**event, "timeUnixNano": parse_timestamp(find(event, "timestamp", "time_unix_nano"))}
            for event in iterate_objects(row.get("events"))
        ],
    }
    return otlp.read_span(raw, spans.NO_ATTRIBUTES, spans.NO_ATTRIBUTES, names)


def _strip_prefix(identifier: Json) -> Json:
    return identifier.removeprefix(_HEX_PREFIX) if isinstance(identifier, str) else identifier


_LANGFUSE_PREFIX = "langfuse.observation."


def read_langfuse(
    rows: Iterable[JsonObject], names: ReadAttributes
) -> Iterator[spans.TelemetryRecord]:
    """Read observations of Langfuse: of its API, its blob storage export and its interface."""
    for row in rows:
        if not isinstance(row.get("observations"), list):
            yield _read_langfuse_observation(row, {}, names)
            continue
        inner = row.get("trace")
        trace = as_object(inner) or row
        for observation in iterate_objects(row.get("observations")):
            yield _read_langfuse_observation(observation, trace, names)


def _read_langfuse_observation(
    row: JsonObject, trace: JsonObject, names: ReadAttributes
) -> spans.Span | spans.RejectedSpan:
    metadata = parse_object(row.get("metadata"))
    attributes = {
        f"{_LANGFUSE_PREFIX}type": row.get("type"),
        f"{_LANGFUSE_PREFIX}input": to_text(row.get("input")),
        f"{_LANGFUSE_PREFIX}output": to_text(row.get("output")),
        f"{_LANGFUSE_PREFIX}model.name": find(
            row, "model", "providedModelName", "provided_model_name"
        ),
        f"{_LANGFUSE_PREFIX}usage_details": to_text(_find_langfuse_usage(row)),
        f"{_LANGFUSE_PREFIX}cost_details": to_text(
            parse_object(find(row, "costDetails", "cost_details"))
        ),
        f"{_LANGFUSE_PREFIX}metadata.thread_id": metadata.get("thread_id"),
        "langfuse.session.id": find(trace, "sessionId", "session_id")
        or find(row, "sessionId", "session_id"),
    }
    ids = (
        find(row, "traceId", "trace_id") or trace.get("id"),
        row.get("id"),
        find(row, "parentObservationId", "parent_observation_id"),
    )
    return make_span(row, attributes, names, ids, failed=row.get("level") == "ERROR")


def _find_langfuse_usage(row: JsonObject) -> JsonObject:
    return parse_object(find(row, "usageDetails", "usage_details")) or parse_object(
        row.get("usage")
    )


def read_langsmith(
    rows: Iterable[JsonObject], names: ReadAttributes
) -> Iterator[spans.TelemetryRecord]:
    """Read runs of LangSmith: JSON Lines, lists, and pages of its API."""
    for run in rows:
        yield from _read_langsmith_run(run, names)


def _read_langsmith_run(run: JsonObject, names: ReadAttributes) -> Iterator[spans.TelemetryRecord]:
    metadata = parse_object(parse_object(run.get("extra")).get("metadata"))
    kind = str(run.get("run_type")).lower()
    attributes: dict[str, Json] = {
        "langsmith.span.kind": kind,
        "gen_ai.prompt": to_text(_read_langsmith_inputs(run, kind)),
        "gen_ai.completion": to_text(run.get("outputs")),
        "langsmith.metadata.thread_id": find(
            metadata, "thread_id", "session_id", "conversation_id"
        ),
    }
    if kind == "llm":
        attributes |= _read_langsmith_usage(run, metadata)
    trace_id = find(run, "trace_id") or str(run.get("dotted_order")).split("Z")[-1]
    ids = (trace_id, run.get("id"), run.get("parent_run_id"))
    yield make_span(run, attributes, names, ids, failed=bool(run.get("error")))
    for child in iterate_objects(run.get("child_runs")):
        yield from _read_langsmith_run({"trace_id": trace_id, **child}, names)


def _read_langsmith_inputs(run: JsonObject, kind: str) -> Json:
    """Return the inputs; None for those of a tool as Python text, which the model's call has."""
    inputs = run.get("inputs")
    given = parse_object(inputs)
    if kind == "tool" and given.keys() == {"input"}:
        text = given["input"]
        return None if isinstance(text, str) and text.startswith("{'") else inputs
    return inputs


def _read_langsmith_usage(run: JsonObject, metadata: JsonObject) -> JsonObject:
    extra, outputs = parse_object(run.get("extra")), parse_object(run.get("outputs"))
    usage = as_object(find(outputs, "usage_metadata")) or as_object(
        as_object(outputs.get("llm_output")).get("token_usage")
    )
    counts = {
        "prompt_tokens": run.get("prompt_tokens"),
        "completion_tokens": run.get("completion_tokens"),
        "total_cost": run.get("total_cost"),
    }
    own = {key: value for key, value in counts.items() if value is not None}
    return {
        "langsmith.metadata.usage_metadata": to_text({**usage, **own}),
        "gen_ai.request.model": find(
            as_object(extra.get("invocation_params")), "model", "model_name"
        )
        or metadata.get("ls_model_name"),
    }


def read_mlflow(
    rows: Iterable[JsonObject], names: ReadAttributes
) -> Iterator[spans.TelemetryRecord]:
    """Read traces of MLflow 2 and 3, as ``Trace.to_json()`` writes them."""
    for trace in rows:
        info = as_object(trace.get("info"))
        metadata = as_object(find(info, "trace_metadata", "request_metadata"))
        for span in iterate_objects(as_object(trace.get("data")).get("spans")):
            yield _read_mlflow_span(span, metadata.get("mlflow.trace.session"), names)


def _read_mlflow_span(
    span: JsonObject, session: Json, names: ReadAttributes
) -> spans.Span | spans.RejectedSpan:
    context, status = as_object(span.get("context")), as_object(span.get("status"))
    code = find(status, "code", "status_code") or span.get("status_code")
    ids = (
        find(span, "trace_id") or context.get("trace_id"),
        find(span, "span_id") or context.get("span_id"),
        find(span, "parent_span_id", "parent_id"),
    )
    attributes = {**as_object(span.get("attributes")), "mlflow.trace.session": session}
    return make_span(span, attributes, names, ids, failed=str(code).endswith("ERROR"))


_PHOENIX_COLUMN: Final = "attributes."
_PHOENIX_KIND: Final = "openinference.span.kind"


def read_phoenix(
    rows: Iterable[JsonObject], names: ReadAttributes
) -> Iterator[spans.TelemetryRecord]:
    """Read spans of Phoenix: of its API, and rows of its DataFrames as JSON."""
    for row in rows:
        context = as_object(row.get("context"))
        attributes = dict(_flatten(as_object(row.get("attributes")), ""))
        for column, value in row.items():
            if column.startswith(_PHOENIX_COLUMN):
                attributes |= _flatten(value, column.removeprefix(_PHOENIX_COLUMN))
        if attributes.get(_PHOENIX_KIND) is None:
            attributes[_PHOENIX_KIND] = row.get("span_kind")
        ids = (
            find(row, "context.trace_id") or context.get("trace_id"),
            find(row, "context.span_id") or context.get("span_id"),
            row.get("parent_id"),
        )
        yield make_span(row, attributes, names, ids, failed=row.get("status_code") == "ERROR")


def _flatten(value: Json, name: str, depth: int = 0) -> Iterator[tuple[str, Json]]:
    """Yield the values in nested objects and in lists of objects under the names of attributes."""
    if depth < MAX_DEPTH and isinstance(value, dict):
        items = [(str(key), inner) for key, inner in value.items()]
    elif (
        depth < MAX_DEPTH
        and isinstance(value, list)
        and any(isinstance(one, dict) for one in value)
    ):
        items = [(str(index), inner) for index, inner in enumerate(value)]
    else:
        yield name, value
        return
    for key, inner in items:
        yield from _flatten(inner, f"{name}.{key}" if name else key, depth + 1)


READERS: Final[Mapping[str, RowReader]] = {
    "langsmith": read_langsmith,
    "langfuse": read_langfuse,
    "mlflow": read_mlflow,
    "phoenix": read_phoenix,
}
