"""Reads what Traceloop's OpenLLMetry records beside the GenAI conventions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.model.json import Json
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.spans import OperationKind, Span, SpanEvent, SpanReading

_KINDS: Final[Mapping[str, OperationKind]] = {
    "workflow": "workflow",
    "agent": "agent",
    "tool": "tool",
}


def read_traceloop(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a workflow, an agent or a tool; its input and output are records of a callback."""
    attributes = span.attributes
    kind = _KINDS.get(str(attributes.get("traceloop.span.kind")))
    given = _unwrap(attributes.get("traceloop.entity.input"), "inputs")
    returned = _unwrap(attributes.get("traceloop.entity.output"), "outputs")
    if kind == "tool" or attributes.get(semconv.OPERATION_NAME) == "execute_tool":
        recorded = attributes.get(semconv.TOOL_ARGUMENTS) or attributes.get(
            "traceloop.entity.input"
        )
        result = attributes.get(semconv.TOOL_RESULT)
        yield SpanReading(
            kind="tool",
            values={
                semconv.TOOL_NAME: attributes.get("traceloop.entity.name")
                or attributes.get(semconv.TOOL_NAME)
                or span.name.removesuffix(".tool"),
                semconv.TOOL_ARGUMENTS: api_messages.decode_tool_arguments(recorded),
                semconv.TOOL_RESULT: api_messages.decode_tool_output(
                    returned if result is None else _unwrap(result, "output")
                ),
            },
        )
    elif kind is not None:
        yield SpanReading(
            kind=kind,
            input=api_messages.parse_input_messages(given),
            output=api_messages.parse_output_messages(returned),
        )


def _unwrap(raw: Json, key: str) -> Json:
    record = api_messages.parse_object(raw)
    return record.get(key) if key in record else raw
