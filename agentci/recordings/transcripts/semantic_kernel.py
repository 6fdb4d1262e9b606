"""Messages of Semantic Kernel: a serialized ``ChatHistory`` of its Python or .NET library."""

from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.trace_format import DocumentFormatError
from agentci.recordings.transcripts.openai_chat import describe_role
from agentci.recordings.transcripts.turn_builder import MessageListBuilder
from agentci.recordings.transcripts.unread import check_finish_reason, looks_like_call
from agentci.recordings.transcripts.values import as_object, as_text, find_text, make_step

_SILENT_ROLES: Final = ("system", "developer")
_KIND: Final = "content_type"
_CALL: Final = "function_call"
_RESULT: Final = "function_result"
# The names of .NET for what Python writes.
_NET_KINDS: Final = {
    "TextContent": "text",
    "FunctionCallContent": _CALL,
    "FunctionResultContent": _RESULT,
}


def is_marked(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    if isinstance(message.get("items"), list) and message.get(_KIND) == "message":
        return True
    role = message.get("Role")
    return isinstance(message.get("Items"), list) and isinstance(as_object(role).get("Label"), str)


def add_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    role = message.get("role", as_object(message.get("Role")).get("Label"))
    role = role.lower() if isinstance(role, str) else role
    items = [_convert_item(item) for item in iterate_objects(_get(message, "items"))]
    texts = [text for item in items if (text := _find_text(item))]
    if role == "user":
        if texts or not any(item.get(_KIND) == _RESULT for item in items):
            run.add_question(list[Json](texts))
    elif role == "assistant":
        _start_reply(run, message)
        run.turns.add_text("\n".join(texts))
    elif role not in ("tool", *_SILENT_ROLES):
        raise DocumentFormatError(f"a message has {describe_role(role)}")
    for item in items:
        _add_item(run, item)
    if not run.turns.call_names:
        check_finish_reason(message)


def _get(fields: JsonObject, name: str) -> Json:
    """Return a field, whose name .NET writes in PascalCase."""
    found = fields.get(name)
    return fields.get("".join(map(str.capitalize, name.split("_")))) if found is None else found


def _convert_item(item: JsonObject) -> JsonObject:
    kind = item.get("$type", item.get(_KIND))
    return {**item, _KIND: _NET_KINDS.get(kind, kind) if isinstance(kind, str) else None}


def _find_text(item: JsonObject) -> str | None:
    return find_text(item, "text", "Text") if item.get(_KIND) == "text" else None


def _start_reply(run: MessageListBuilder, message: JsonObject) -> None:
    metadata = as_object(_get(message, "metadata"))
    usage = as_object(_get(metadata, "usage"))
    given = usage.get("prompt_tokens", usage.get("InputTokenCount"))
    produced = usage.get("completion_tokens", usage.get("OutputTokenCount"))
    model = message.get("ai_model_id", message.get("ModelId"))
    run.turns.start_step(make_step(model, given, produced))
    run.add_model(model)
    run.usage.add(None, given, produced)


def _add_item(run: MessageListBuilder, item: JsonObject) -> None:
    kind = item.get(_KIND)
    call_id = as_text(item.get("call_id")) or item.get("CallId") or _get(item, "id")
    if kind == _CALL:
        run.turns.add_call(_name_function(item), _get(item, "arguments"), call_id)
    elif kind == _RESULT:
        run.turns.add_result(call_id, _get(item, "result"), name=_name_function(item))
    elif not isinstance(kind, str) or looks_like_call(kind):
        raise DocumentFormatError(f"an item of type `{str(kind)[:40]}` is not read")


def _name_function(item: JsonObject) -> str | None:
    """Return the name that the model knows a function by."""
    if (name := as_text(item.get("name"))) is not None:
        return name
    plugin, function = as_text(_get(item, "plugin_name")), as_text(_get(item, "function_name"))
    return f"{plugin}-{function}" if plugin and function else function
