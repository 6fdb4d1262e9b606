"""Reads spans of the SDKs and exporters of observability platforms.

Most have a kind, an input and an output as JSON, which ``_make_reading`` reads.

Langfuse records observations with a type, and LangSmith's OpenTelemetry exporter runs. MLflow
Tracing records spans, each of whose attributes is JSON text. Laminar and LangWatch record
functions with a type.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.model.values import Json
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.json_input import parse_json_or_text
from agentci.recordings.telemetry.messages import has_content
from agentci.recordings.telemetry.spans import (
    OperationKind,
    Span,
    SpanEvent,
    SpanReading,
    select_values,
)

_LANGFUSE_PREFIX: Final = "langfuse.observation."
_LANGFUSE_KINDS: Final[Mapping[str, OperationKind]] = {
    "generation": "inference",
    "tool": "tool",
    "agent": "agent",
    "chain": "workflow",
    "span": "workflow",
}


def read_langfuse(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read an observation."""
    attributes = span.attributes
    kind = _LANGFUSE_KINDS.get(
        str(attributes.get(f"{_LANGFUSE_PREFIX}type", "span")).lower(), "other"
    )
    if kind == "workflow" and not any(name.startswith(_LANGFUSE_PREFIX) for name in attributes):
        return  # another instrumentation's span, with only the trace's attributes
    values = {
        **_make_usage(attributes.get(f"{_LANGFUSE_PREFIX}usage_details")),
        **_make_cost(attributes.get(f"{_LANGFUSE_PREFIX}cost_details")),
        semconv.REQUEST_MODEL: attributes.get(f"{_LANGFUSE_PREFIX}model.name"),
    }
    if kind == "tool":
        values[semconv.TOOL_CALL_ID] = attributes.get(f"{_LANGFUSE_PREFIX}metadata.tool_call_id")
    given, returned = (
        attributes.get(f"{_LANGFUSE_PREFIX}input"),
        attributes.get(f"{_LANGFUSE_PREFIX}output"),
    )
    yield _make_reading(span, kind, given, returned, values)


_LANGSMITH_KINDS: Final[Mapping[str, OperationKind]] = {
    "llm": "inference",
    "tool": "tool",
    "chain": "workflow",
}


def read_langsmith(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span with ``langsmith.span.kind``, or ``gen_ai.prompt`` without an index."""
    attributes = span.attributes
    kind = _LANGSMITH_KINDS.get(str(attributes.get("langsmith.span.kind")).lower(), "other")
    given, returned = attributes.get("gen_ai.prompt"), attributes.get("gen_ai.completion")
    metadata = attributes.get("langsmith.metadata.usage_metadata")
    usage = {**_make_usage(metadata), **_make_cost(metadata)}
    yield _make_reading(span, kind, given, returned, usage)


_MLFLOW_KINDS: Final[Mapping[str, OperationKind]] = {
    "CHAT_MODEL": "inference",
    "LLM": "inference",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "workflow",
    "WORKFLOW": "workflow",
    "UNKNOWN": "workflow",
}

# What an agent of the OpenAI Agents SDK has as its output, which is not an answer.
_MLFLOW_AGENT_FACTS: Final = frozenset({"output_type"})


def read_mlflow(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span with ``mlflow.spanType``."""
    attributes = span.attributes
    kind = _MLFLOW_KINDS.get(str(_decode(attributes.get("mlflow.spanType"))), "other")
    values = {
        **_make_usage(attributes.get("mlflow.chat.tokenUsage")),
        **_make_cost(attributes.get("mlflow.llm.cost")),
        semconv.REQUEST_MODEL: _decode(attributes.get("mlflow.llm.model")),
    }
    given = _decode(attributes.get("mlflow.spanInputs"))
    returned = _decode(attributes.get("mlflow.spanOutputs"))
    if isinstance(returned, dict) and returned.keys() == _MLFLOW_AGENT_FACTS:
        returned = None
    yield _make_reading(span, kind, given, returned, values)


_LAMINAR_KINDS: Final[Mapping[str, OperationKind]] = {
    "LLM": "inference",
    "TOOL": "tool",
    "DEFAULT": "workflow",
}


def read_laminar(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span with ``lmnr.span.type``; model calls have their messages in OpenAI's form."""
    attributes = span.attributes
    kind = _LAMINAR_KINDS.get(str(attributes.get("lmnr.span.type")), "other")
    given, returned = attributes.get("lmnr.span.input"), attributes.get("lmnr.span.output")
    if kind == "inference":
        given = attributes.get(semconv.INPUT_MESSAGES, given)
        returned = attributes.get(semconv.OUTPUT_MESSAGES, returned)
    yield _make_reading(span, kind, given, returned, {}, failed=span.failed)


_LANGWATCH_KINDS: Final[Mapping[str, OperationKind]] = {
    "llm": "inference",
    "tool": "tool",
    "agent": "agent",
    "chain": "workflow",
    "span": "workflow",
    "workflow": "workflow",
}


def read_langwatch(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span with ``langwatch.span.type``, whose input and output name their own types."""
    attributes = span.attributes
    kind = _LANGWATCH_KINDS.get(str(attributes.get("langwatch.span.type")), "other")
    given, returned = (
        api_messages.parse_object(attributes.get(f"langwatch.{name}")).get("value")
        for name in ("input", "output")
    )
    usage = _make_usage(attributes.get("langwatch.metrics"))
    yield _make_reading(span, kind, given, returned, usage, failed=span.failed)


def _decode(raw: Json) -> Json:
    return parse_json_or_text(raw) if isinstance(raw, str) else raw


def _make_reading(
    span: Span,
    kind: OperationKind,
    given: Json,
    returned: Json,
    values: Mapping[str, Json],
    *,
    failed: bool | None = None,
) -> SpanReading:
    """Make the reading of a model call, a tool call, or a step around them.

    A step without messages, such as a span around several turns, is not a workflow. The name of a
    tool is that of its span.

    Args:
        failed: whether the call failed, if it is of a tool: ``span.failed`` where the exporter
            sets the status; None where only the tool's message can say it.
    """
    if kind == "tool":
        return _make_tool_reading(span, given, returned, values, failed=failed)
    inputs = api_messages.parse_input_messages(given)
    outputs = api_messages.parse_output_messages(returned)
    if kind == "workflow" and not (has_content(inputs) or has_content(outputs)):
        kind = "other"
    return SpanReading(kind=kind, values=values, input=inputs, output=outputs)


def _make_usage(raw: Json) -> dict[str, Json]:
    """Read token counts under the names that platforms use."""
    return select_values(api_messages.parse_object(raw), _USAGE_KEYS)


_USAGE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    semconv.INPUT_TOKENS: ("input_tokens", "prompt_tokens", "input"),
    semconv.OUTPUT_TOKENS: ("output_tokens", "completion_tokens", "output"),
    semconv.CACHE_READ_TOKENS: ("cache_read_input_tokens", "input_cache_read"),
    semconv.CACHE_WRITE_TOKENS: ("cache_creation_input_tokens", "input_cache_creation"),
}
_COST_KEYS: Final[Mapping[str, tuple[str, ...]]] = {semconv.COST: ("total", "total_cost")}


def _make_cost(raw: Json) -> dict[str, Json]:
    """Read the cost of a model call under the names that platforms use."""
    return select_values(api_messages.parse_object(raw), _COST_KEYS)


def _make_tool_reading(
    span: Span, given: Json, returned: Json, values: Mapping[str, Json], *, failed: bool | None
) -> SpanReading:
    message = api_messages.find_tool_message(returned)
    return SpanReading(
        kind="tool",
        values={
            semconv.TOOL_NAME: span.name or None,
            semconv.TOOL_CALL_ID: (message or {}).get("tool_call_id"),
            semconv.TOOL_ARGUMENTS: api_messages.decode_tool_arguments(given),
            semconv.TOOL_RESULT: api_messages.decode_tool_output(returned),
            **{name: value for name, value in values.items() if value is not None},
        },
        failed=api_messages.has_failed(message) if failed is None else failed,
    )
