"""What a span is: a model call, an agent, a workflow, a tool, or none of the agent's business."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.span import Span

Kind: TypeAlias = Literal["inference", "agent", "workflow", "tool", "other", "none"]

_KINDS: Final[Mapping[str, Kind]] = {
    "chat": "inference",
    "generate_content": "inference",
    "text_completion": "inference",
    "invoke_agent": "agent",
    "invoke_workflow": "workflow",
    "execute_tool": "tool",
}
_ADK_OPERATIONS: Final[Mapping[str, str]] = {
    "call_llm": "generate_content",
    "invocation": "invoke_workflow",
}
_TRACES_OF_A_CALL: Final = (
    semconv.INPUT,
    semconv.OUTPUT,
    semconv.USAGE,
    semconv.PROMPT,
    semconv.COMPLETION,
)


def kind_of(span: Span) -> Kind:
    """The kind of a span, by its attributes; its name counts for nothing, save two of ADK's."""
    if _is_merged_tool(span):
        return "none"
    operation = _operation(span)
    return _KINDS.get(operation, "other") if operation else "none"


def _operation(span: Span) -> str | None:
    named = span.attributes.get(semconv.OPERATION)
    if isinstance(named, str) and named:
        return named
    if span.adk and span.name in _ADK_OPERATIONS:
        return _ADK_OPERATIONS[span.name]
    return "chat" if _looks_like_chat(span) else None


def _looks_like_chat(span: Span) -> bool:
    attributes = span.attributes
    return bool(
        attributes.get(semconv.REQUEST_MODEL)
        and (attributes.get(semconv.SYSTEM) or attributes.get(semconv.PROVIDER))
        and any(name.startswith(_TRACES_OF_A_CALL) for name in attributes)
    )


def _is_merged_tool(span: Span) -> bool:
    """Whether ADK made the span to sum up parallel tools that have spans of their own."""
    return (
        span.name == "execute_tool (merged)"
        or span.attributes.get(semconv.TOOL_NAME) == "(merged tools)"
    )
