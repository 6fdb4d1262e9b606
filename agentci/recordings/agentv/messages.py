"""Messages of recorded runs, in the spelling of any generation of AgentV."""

from agentci.model.json import Json, JsonObject
from agentci.model.transcript import Message, ToolUse
from agentci.recordings.agentv.recorded_run import number_of, objects_of, text_of
from agentci.recordings.trace_format import ShapeError


def messages_of(raw: Json, name: str) -> tuple[Message, ...]:
    """Read a list of messages.

    Args:
        name: what it is called where it stands.

    Raises:
        ShapeError: a message has no role, or a tool call no tool.
    """
    return tuple(message_of(each) for each in objects_of(raw, name))


def message_of(raw: JsonObject) -> Message:
    """Read one message; as ``messages_of``."""
    role = raw.get("role")
    if not isinstance(role, str):
        raise ShapeError("has a message without a role")
    calls = _either(raw, "tool_calls", "toolCalls")
    metadata = raw.get("metadata")
    return Message(
        role=role,
        content=raw.get("content"),
        name=text_of(raw.get("name"), "name"),
        tool_calls=() if calls is None else tuple(map(_use, objects_of(calls, "tool_calls"))),
        timestamp=text_of(raw.get("timestamp"), "timestamp"),
        start_time=text_of(_either(raw, "start_time", "startTime"), "start_time"),
        end_time=text_of(_either(raw, "end_time", "endTime"), "end_time"),
        duration_ms=number_of(_either(raw, "duration_ms", "durationMs"), "duration_ms"),
        metadata=metadata if isinstance(metadata, dict) else None,
    )


def _use(raw: JsonObject) -> ToolUse:
    tool = raw.get("tool")
    if not isinstance(tool, str):
        raise ShapeError("has a tool call without the name of a tool")
    return ToolUse(
        tool=tool,
        input=raw.get("input"),
        output=raw.get("output"),
        id=text_of(raw.get("id"), "id"),
        status=text_of(raw.get("status"), "status"),
        timestamp=text_of(raw.get("timestamp"), "timestamp"),
        start_time=text_of(_either(raw, "start_time", "startTime"), "start_time"),
        end_time=text_of(_either(raw, "end_time", "endTime"), "end_time"),
        duration_ms=number_of(_either(raw, "duration_ms", "durationMs"), "duration_ms"),
    )


def _either(raw: JsonObject, snake: str, camel: str) -> Json:
    return raw[snake] if snake in raw else raw.get(camel)
