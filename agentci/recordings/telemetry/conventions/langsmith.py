"""Reads what LangSmith's OpenTelemetry exporter records."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.recordings.telemetry.conventions import json_payloads
from agentci.recordings.telemetry.span_reading import SpanReading
from agentci.recordings.telemetry.spans import OperationKind, Span, SpanEvent

_KINDS: Final[Mapping[str, OperationKind]] = {
    "llm": "inference",
    "tool": "tool",
    "chain": "workflow",
}


def read(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span with ``langsmith.span.kind``, or ``gen_ai.prompt`` without an index."""
    attributes = span.attributes
    kind = _KINDS.get(str(attributes.get("langsmith.span.kind")).lower(), "other")
    given, returned = attributes.get("gen_ai.prompt"), attributes.get("gen_ai.completion")
    metadata = attributes.get("langsmith.metadata.usage_metadata")
    usage = {**json_payloads.make_usage(metadata), **json_payloads.make_cost(metadata)}
    yield json_payloads.make_layer(span, kind, given, returned, usage)
