"""Checks that no tool call of a message was left out, in whatever form it is."""

from collections.abc import Collection, Iterator
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.telemetry.messages import (
    TOOL_CALL,
    UNKNOWN,
    is_tool_call_reason,
    normalize_part,
    normalize_tool_calls,
)
from agentci.recordings.trace_format import DocumentFormatError

_CALL_LIST_KEYS: Final = ("tool_calls", "toolCalls", "invalid_tool_calls", "toolInvocations")
_CALL_KEYS: Final = ("function_call", "functionCall")
_CONTENT_KEYS: Final = ("content", "parts")
_USER_ROLES: Final = ("user", "human", "system", "developer", "tool")
_SPEAKERS: Final = ("user", "assistant")
_CALL_WORDS: Final = ("call", "tool", "function", "command", "exec", "invocation", "action")


def looks_like_call(kind: Json) -> bool:
    """Return whether the type of a record or part that is not known may be that of a tool call."""
    return isinstance(kind, str) and any(word in kind.lower() for word in _CALL_WORDS)


def check_message(message: JsonObject, names: Collection[str]) -> None:
    """Check that a message has no call that was not read, and no unknown part of the agent.

    Args:
        names: of the tool calls that were read.

    Raises:
        DocumentFormatError: it has one.
    """
    role = message.get("role", message.get("type"))
    by_user = role in _USER_ROLES
    if role in _SPEAKERS:
        _check_text(message.get("content"))
    for part in _list_parts(message):
        name = str(part.get("name"))
        if part["type"] == UNKNOWN and not by_user:
            raise DocumentFormatError(f"a {name}, which may be a tool call, is not read")
        if part["type"] == TOOL_CALL and name not in names:
            raise DocumentFormatError(f"the tool call `{name[:80]}` is in a form that is not read")
    if not names:
        check_finish_reason(message)


def _check_text(content: Json) -> None:
    """Check that the text of a message is where it is read.

    Raises:
        DocumentFormatError: it is not.
    """
    if isinstance(content, dict):
        keys = ", ".join(f"`{key[:40]}`" for key in [*content][:4])
        raise DocumentFormatError(f"a content that is an object with {keys} is not read")
    for part in iterate_objects(content):
        if part.get("type") == "text" and not isinstance(part.get("text", ""), str | None):
            message = "a part of type `text` whose `text` is not a string is not read"
            raise DocumentFormatError(message)


def check_finish_reason(ended: JsonObject) -> None:
    """Check that an answer without tool calls was not ended by one.

    Raises:
        DocumentFormatError: it was.
    """
    if is_tool_call_reason(reason := ended.get("finish_reason")):
        raise DocumentFormatError(f"the message ended with `{reason}` and holds no tool call")


def _list_parts(message: JsonObject) -> Iterator[JsonObject]:
    """List the parts of a message, and of the message inside the forms of LangChain."""
    for fields in (message, message.get("kwargs"), message.get("data")):
        if not isinstance(fields, dict):
            continue
        for key in _CONTENT_KEYS:
            content = fields.get(key)
            for part in content if isinstance(content, list) else ():
                yield from normalize_part(part)
        for key in _CALL_LIST_KEYS:
            yield from normalize_tool_calls(fields.get(key))
        for key in _CALL_KEYS:
            yield from normalize_tool_calls(list(iterate_objects([fields.get(key)])))
