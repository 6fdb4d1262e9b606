"""Reads what Langfuse's SDK records: observations with a type, an input and an output."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import json_payloads
from agentci.recordings.telemetry.span_reading import SpanReading
from agentci.recordings.telemetry.spans import OperationKind, Span, SpanEvent

_PREFIX: Final = "langfuse.observation."
_KINDS: Final[Mapping[str, OperationKind]] = {
    "generation": "inference",
    "tool": "tool",
    "agent": "agent",
    "chain": "workflow",
    "span": "workflow",
}


def read(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read an observation."""
    attributes = span.attributes
    kind = _KINDS.get(str(attributes.get(f"{_PREFIX}type", "span")).lower(), "other")
    if kind == "workflow" and not any(name.startswith(_PREFIX) for name in attributes):
        return  # another instrumentation's span, with only the trace's attributes
    values = {
        **json_payloads.make_usage(attributes.get(f"{_PREFIX}usage_details")),
        **json_payloads.make_cost(attributes.get(f"{_PREFIX}cost_details")),
        semconv.REQUEST_MODEL: attributes.get(f"{_PREFIX}model.name"),
    }
    if kind == "tool":
        values[semconv.TOOL_CALL_ID] = attributes.get(f"{_PREFIX}metadata.tool_call_id")
    given, returned = attributes.get(f"{_PREFIX}input"), attributes.get(f"{_PREFIX}output")
    yield json_payloads.make_layer(span, kind, given, returned, values)
