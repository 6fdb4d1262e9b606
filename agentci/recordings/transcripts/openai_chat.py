"""Messages of OpenAI's Chat Completions, which many other providers and libraries use as well."""

from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.trace_format import DocumentFormatError
from agentci.recordings.transcripts.turn_builder import MessageListBuilder
from agentci.recordings.transcripts.values import as_object, join_text

_SILENT_ROLES: Final = ("system", "developer")


def is_marked(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    calls = message.get("tool_calls")
    if isinstance(calls, list) and any("function" in call for call in iterate_objects(calls)):
        return True
    return "function_call" in message or (
        message.get("role") == "tool" and "tool_call_id" in message
    )


def add_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    role, content = message.get("role"), message.get("content")
    if role == "user":
        run.add_question(content)
    elif role == "assistant":
        run.turns.start_step()
        run.turns.add_text(join_text(content) or message.get("refusal"))
        add_calls(run, message)
    elif role == "tool":
        run.turns.add_result(message.get("tool_call_id"), content)
    elif role == "function":
        name = message.get("name")
        run.turns.add_result(None, content, name=name if isinstance(name, str) else None)
    elif role not in _SILENT_ROLES:
        raise DocumentFormatError(f"a message has {describe_role(role)}")


def add_calls(run: MessageListBuilder, message: JsonObject) -> None:
    """Add the tool calls of a message.

    Raises:
        DocumentFormatError: they are not a list, so that a call could be lost.
    """
    if not isinstance(message.get("tool_calls", []), list | None):
        raise DocumentFormatError("`tool_calls` of a message is not a list")
    for call in iterate_objects(message.get("tool_calls")):
        function, custom = as_object(call.get("function")), as_object(call.get("custom"))
        if custom and not function:
            run.turns.add_call(custom.get("name"), custom.get("input"), call.get("id"))
        else:
            run.turns.add_call(function.get("name"), function.get("arguments"), call.get("id"))
    if function := as_object(message.get("function_call")):
        run.turns.add_call(function.get("name"), function.get("arguments"))


def describe_role(role: Json) -> str:
    """Describe a role that a format does not have."""
    return f"the unknown role `{role[:40]}`" if isinstance(role, str) else "no role"
