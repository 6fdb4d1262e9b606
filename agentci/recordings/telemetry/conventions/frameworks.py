"""Reads the spans that agent frameworks record by conventions of their own.

They are Haystack, Mastra and Genkit.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.telemetry.messages import SpanMessages
from agentci.recordings.telemetry.spans import OperationKind, Span, SpanEvent, SpanReading

# Kinds of Haystack's spans by name, and the prefix of their input and output.
_HAYSTACK_SPANS: Final[Mapping[str, tuple[OperationKind, str]]] = {
    "haystack.agent.run": ("agent", "haystack.agent."),
    "haystack.agent.step.llm": ("inference", "haystack.agent.step.llm."),
    "haystack.agent.step.tool": ("tool", "haystack.agent.step.tool."),
    "haystack.component.run": ("other", "haystack.component."),
}
_GENERATOR: Final = "Generator"


def read_haystack(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span of Haystack's tracer, which its name tells apart."""
    kind, prefix = _HAYSTACK_SPANS.get(span.name, ("other", ""))
    attributes = span.attributes
    if str(attributes.get("haystack.component.type")).endswith(_GENERATOR):
        kind = "inference"
    given, returned = attributes.get(f"{prefix}input"), attributes.get(f"{prefix}output")
    if kind == "tool":
        yield _read_haystack_tool(attributes, given, returned)
    elif kind == "other":
        yield SpanReading(kind=kind)
    else:
        replies = api_messages.parse_object(returned).get(
            "replies" if kind == "inference" else "messages"
        )
        yield SpanReading(
            kind=kind,
            values=_read_meta(replies) if kind == "inference" else {},
            input=_parse_list(api_messages.parse_object(given).get("messages"), "user"),
            output=api_messages.parse_output_messages(replies),
        )


def _parse_list(raw: Json, role: str) -> SpanMessages:
    return api_messages.parse_message_list(raw, role) if isinstance(raw, list) else ()


def _read_meta(replies: Json) -> dict[str, Json]:
    """Return the model and the tokens of a reply."""
    reply: JsonObject = next(iterate_objects(replies), {})
    meta = api_messages.parse_object(reply.get("meta"))
    usage = api_messages.parse_object(meta.get("usage"))
    details = api_messages.parse_object(usage.get("prompt_tokens_details"))
    return {
        semconv.REQUEST_MODEL: meta.get("model"),
        semconv.INPUT_TOKENS: usage.get("prompt_tokens", usage.get("input_tokens")),
        semconv.OUTPUT_TOKENS: usage.get("completion_tokens", usage.get("output_tokens")),
        semconv.CACHE_READ_TOKENS: details.get("cached_tokens"),
        semconv.FINISH_REASONS: [meta["finish_reason"]] if meta.get("finish_reason") else None,
    }


def _read_haystack_tool(attributes: Mapping[str, Json], given: Json, returned: Json) -> SpanReading:
    failed = attributes.get("haystack.tool.error") is True
    error = api_messages.parse_object(returned).get("error") if failed else None
    return SpanReading(
        kind="tool",
        values={
            semconv.TOOL_NAME: attributes.get("haystack.tool.name"),
            semconv.TOOL_ARGUMENTS: api_messages.decode(given),
            semconv.TOOL_RESULT: api_messages.decode(returned) if error is None else error,
        },
        failed=failed,
    )


def read_mastra(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read what Mastra records beside the GenAI conventions: the question, and errors of tools.

    The output of an agent's run is not its answer: it joins the texts of all steps.
    """
    kind = span.attributes.get("mastra.span.type")
    if kind == "agent_run":
        given = span.attributes.get("mastra.agent_run.input")
        yield SpanReading(kind="agent", input=api_messages.parse_input_messages(given))
    elif kind in ("tool_call", "mcp_tool_call") and span.failed:
        error = span.attributes.get("error.message")
        yield SpanReading(values={semconv.TOOL_RESULT: error}, failed=True)


_GENKIT_KINDS: Final[Mapping[str, OperationKind]] = {"model": "inference", "tool": "tool"}


def read_genkit(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a span of Genkit: a model call, a tool call, or the outermost step around them."""
    attributes = span.attributes
    given, returned = attributes.get("genkit:input"), attributes.get("genkit:output")
    kind = _GENKIT_KINDS.get(str(attributes.get("genkit:metadata:subtype")), "other")
    if kind == "tool":
        yield _read_genkit_tool(span, given, returned)
    elif kind == "inference":
        response = api_messages.parse_object(returned)
        usage = api_messages.parse_object(response.get("usage"))
        yield SpanReading(
            kind=kind,
            values={
                semconv.REQUEST_MODEL: attributes.get("genkit:name"),
                semconv.INPUT_TOKENS: usage.get("inputTokens"),
                semconv.OUTPUT_TOKENS: usage.get("outputTokens"),
                semconv.CACHE_READ_TOKENS: usage.get("cachedContentTokens"),
            },
            input=api_messages.parse_input_messages(given),
            output=api_messages.parse_output_messages(response.get("message")),
        )
    elif attributes.get("genkit:isRoot") is True:
        yield SpanReading(
            kind="workflow",
            input=api_messages.parse_input_messages(given),
            output=api_messages.parse_output_messages(returned),
        )
    else:
        yield SpanReading(kind=kind)


def _read_genkit_tool(span: Span, given: Json, returned: Json) -> SpanReading:
    return SpanReading(
        kind="tool",
        values={
            semconv.TOOL_NAME: span.attributes.get("genkit:name"),
            semconv.TOOL_ARGUMENTS: api_messages.decode(given),
            semconv.TOOL_RESULT: api_messages.decode(returned),
        },
        failed=span.failed,
    )
