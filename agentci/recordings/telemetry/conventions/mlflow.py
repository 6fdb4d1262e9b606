"""Reads what MLflow Tracing records; each of its attributes is JSON text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.model.json import Json
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import json_payloads
from agentci.recordings.telemetry.json_input import parse_json_or_text
from agentci.recordings.telemetry.span_reading import SpanReading
from agentci.recordings.telemetry.spans import OperationKind, Span, SpanEvent

_KINDS: Final[Mapping[str, OperationKind]] = {
    "CHAT_MODEL": "inference",
    "LLM": "inference",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "workflow",
    "WORKFLOW": "workflow",
    "UNKNOWN": "workflow",
}

# What an agent of the OpenAI Agents SDK has as its output, which is not an answer.
_AGENT_FACTS: Final = frozenset({"output_type"})


def read(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span with ``mlflow.spanType``."""
    attributes = span.attributes
    kind = _KINDS.get(str(_decode(attributes.get("mlflow.spanType"))), "other")
    values = {
        **json_payloads.make_usage(attributes.get("mlflow.chat.tokenUsage")),
        **json_payloads.make_cost(attributes.get("mlflow.llm.cost")),
        semconv.REQUEST_MODEL: _decode(attributes.get("mlflow.llm.model")),
    }
    given = _decode(attributes.get("mlflow.spanInputs"))
    returned = _decode(attributes.get("mlflow.spanOutputs"))
    if isinstance(returned, dict) and returned.keys() == _AGENT_FACTS:
        returned = None
    yield json_payloads.make_layer(span, kind, given, returned, values)


def _decode(raw: Json) -> Json:
    return parse_json_or_text(raw) if isinstance(raw, str) else raw
