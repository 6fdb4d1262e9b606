"""Messages that were recorded as events, one each: the deprecated form of the conventions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agentci.model.json import JsonObject
from agentci.model.values import replace
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.message import EMPTY, Content, Message, calls, is_captured, text
from agentci.recordings.telemetry.message_attributes import parse
from agentci.recordings.telemetry.message_parts import (
    content_of,
    parts_of,
    response_part,
    text_part,
    tool_call_parts,
)
from agentci.recordings.telemetry.source_layer import Layer
from agentci.recordings.telemetry.span import Event


def layer(events: Sequence[Event]) -> Layer:
    """What events say, in their order."""
    choices = [event.payload for event in events if event.name == semconv.CHOICE_EVENT]
    output = tuple(map(_choice, choices))
    reasons = [one.get("finish_reason") for one in choices] if is_captured(output) else []
    return Layer(
        values={
            semconv.FINISH_REASONS: [one.lower() for one in reasons if isinstance(one, str)],
        },
        input=tuple(_INPUT[event.name](event.payload) for event in events if event.name in _INPUT),
        output=output,
    )


def _user(payload: JsonObject) -> Message:
    return Message(role="user", content=content_of(parts_of(payload.get("content"))))


def _assistant(payload: JsonObject) -> Message:
    return Message(role="assistant", content=_said(payload))


def _tool(payload: JsonObject) -> Message:
    answer = response_part(payload.get("id"), payload.get("name"), payload.get("content"))
    return Message(role="tool", content=content_of([answer]))


def _choice(payload: JsonObject) -> Message:
    message = payload.get("message")
    if isinstance(message, dict):
        return Message(role="assistant", content=_said(message))
    return Message(
        role="assistant",
        content=content_of(parts_of(payload.get("content"))),
        overlooked=_written(message) if isinstance(message, str) else EMPTY,
    )


def _said(payload: JsonObject) -> Content:
    parts = parts_of(payload.get("content"))
    return content_of([*parts, *tool_call_parts(payload.get("tool_calls"))])


def _written(message: str) -> Content:
    """What stands in a ``message`` that is JSON text, as span events have it, or plain text."""
    said = parse(message)
    if not said:
        return content_of([text_part(message)])
    return Content(
        text=text(said),
        calls=tuple(replace(call, overlooked=True) for call in calls(said)),
    )


_INPUT: Final[Mapping[str, Callable[[JsonObject], Message]]] = {
    semconv.USER_EVENT: _user,
    semconv.ASSISTANT_EVENT: _assistant,
    semconv.TOOL_EVENT: _tool,
}
