"""Messages of LangChain and LangGraph: ``dumpd``, ``messages_to_dict`` and ``model_dump``."""

from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.trace_format import DocumentFormatError
from agentci.recordings.transcripts.openai_chat import describe_role
from agentci.recordings.transcripts.turn_builder import MessageListBuilder
from agentci.recordings.transcripts.values import as_object, as_text, join_text, make_step

_TYPES: Final = {
    "human": "human",
    "HumanMessage": "human",
    "HumanMessageChunk": "human",
    "ai": "ai",
    "AIMessage": "ai",
    "AIMessageChunk": "ai",
    "tool": "tool",
    "ToolMessage": "tool",
    "ToolMessageChunk": "tool",
    "function": "function",
    "FunctionMessage": "function",
    "system": "silent",
    "SystemMessage": "silent",
    "SystemMessageChunk": "silent",
    "remove": "silent",
    "RemoveMessage": "silent",
    "chat": "chat",
    "ChatMessage": "chat",
}
_CHAT_ROLES: Final = {"user": "human", "human": "human", "assistant": "ai", "ai": "ai"}


def is_marked(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    if message.get("lc") == 1:
        return message.get("type") == "constructor" and "kwargs" in message
    kind = message.get("type")
    return (
        isinstance(kind, str)
        and kind in _TYPES
        and "role" not in message
        and ("content" in message or isinstance(message.get("data"), dict))
    )


def add_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    fields, kind = _unwrap(message)
    if kind == "chat":
        role = fields.get("role")
        kind = _CHAT_ROLES.get(role, "silent") if isinstance(role, str) else "silent"
    if kind == "human":
        run.add_question(fields.get("content"))
    elif kind == "ai":
        _add_answer(run, fields)
    elif kind == "tool":
        failed = {"error": True, "success": False}.get(str(fields.get("status")))
        run.turns.add_result(fields.get("tool_call_id"), fields.get("content"), failed=failed)
    elif kind == "function":
        run.turns.add_result(None, fields.get("content"), name=as_text(fields.get("name")))
    elif kind is None:
        raise DocumentFormatError(f"a message has {describe_role(message.get('type'))}")


def _unwrap(message: JsonObject) -> tuple[JsonObject, str | None]:
    """Return the fields of a message in any of the shapes, and its type."""
    kind = message.get("type")
    if message.get("lc") == 1:
        fields, path = as_object(message.get("kwargs")), message.get("id")
        kind = fields.get("type") or (path[-1] if isinstance(path, list) and path else None)
    else:
        data = message.get("data")
        fields = data if isinstance(data, dict) else message
    return fields, _TYPES.get(kind) if isinstance(kind, str) else None


def find_message_id(message: JsonObject) -> str | None:
    """Return the id of a message, which stays the same in later states of a graph."""
    return as_text(_unwrap(message)[0].get("id")) if is_marked(message) else None


def _add_answer(run: MessageListBuilder, fields: JsonObject) -> None:
    usage, response = (
        as_object(fields.get(name)) for name in ("usage_metadata", "response_metadata")
    )
    model, message_id = response.get("model_name") or response.get("model"), fields.get("id")
    details = as_object(usage.get("input_token_details"))
    tokens = usage.get("input_tokens"), usage.get("output_tokens"), details.get("cache_read")
    step = make_step(model, *tokens, cache_write=details.get("cache_creation"))
    run.turns.start_step(step, key=as_text(message_id))
    run.turns.add_text(join_text(fields.get("content")))
    calls = list(iterate_objects(fields.get("tool_calls")))
    for call in [*calls, *iterate_objects(fields.get("invalid_tool_calls"))]:
        run.turns.add_call(call.get("name"), call.get("args"), call.get("id"))
    if not calls:
        raw = as_object(fields.get("additional_kwargs")).get("tool_calls")
        for call in iterate_objects(raw):
            function = as_object(call.get("function"))
            run.turns.add_call(function.get("name"), function.get("arguments"), call.get("id"))
    run.add_model(model)
    run.usage.add(as_text(message_id), *tokens)


def find_updated_messages(document: Json) -> list[Json] | None:
    """Return the messages of a line of LangGraph's ``stream_mode="updates"``; else None."""
    if not is_update(document):
        return None
    found: list[Json] = []
    for update in as_object(document).values():
        messages = as_object(update).get("messages")
        found += messages if isinstance(messages, list) else []
    objects = list(iterate_objects(found))
    return found if objects and all(map(is_marked, objects)) else None


def is_update(document: Json) -> bool:
    """Return whether a document may be what nodes of a graph changed, with or without messages."""
    return (
        isinstance(document, dict)
        and bool(document)
        and not is_marked(document)
        and all(
            update is None or isinstance(update, dict) or node == INTERRUPT
            for node, update in document.items()
        )
    )


INTERRUPT: Final = "__interrupt__"
