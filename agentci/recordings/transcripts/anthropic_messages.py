"""Messages of Anthropic's Messages API, also inside the files of Claude Code."""

from typing import Final

from agentci.model.trace import ModelStep
from agentci.model.values import Json, JsonObject, replace
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.trace_format import DocumentFormatError
from agentci.recordings.transcripts.openai_chat import add_calls, describe_role
from agentci.recordings.transcripts.turn_builder import MessageListBuilder, TurnBuilder
from agentci.recordings.transcripts.unread import looks_like_call
from agentci.recordings.transcripts.values import (
    as_object,
    as_text,
    is_text_part,
    join_text,
    make_step,
)

# Of the model's own tools, too: server_tool_use, mcp_tool_use.
_CALL_ENDING: Final = "tool_use"
_THOUGHT_TYPES: Final = ("thinking", "redacted_thinking")
_RESULT_ENDING: Final = "tool_result"
_SILENT_ROLES: Final = ("system", "developer")


def is_marked(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    return any(
        _is_call(block) or _is_result(block) or block.get("type") in _THOUGHT_TYPES
        for block in iterate_objects(message.get("content"))
    )


def is_converse(message: JsonObject) -> bool:
    """Return whether a message can only be one of Bedrock's Converse API."""
    blocks = iterate_objects(message.get("content"))
    return any(isinstance(block.get(key), dict) for block in blocks for key in _CONVERSE_TYPES)


def add_converse_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message of Bedrock's Converse API, which Strands Agents keeps as well."""
    content = message.get("content")
    if isinstance(content, list):
        content = [_convert_block(block) if isinstance(block, dict) else block for block in content]
    add_message(run, {**message, "content": content})


_CONVERSE_TYPES: Final = ("toolUse", "toolResult")


def _convert_block(block: JsonObject) -> JsonObject:
    """Convert a block of Converse, whose only key is its type, to one of Anthropic."""
    call, result = as_object(block.get("toolUse")), as_object(block.get("toolResult"))
    if call:
        named = {"id": call.get("toolUseId"), "name": call.get("name"), "input": call.get("input")}
        return {"type": "tool_use", **named}
    if result:
        listed = result.get("content")
        only = as_object(listed[0]) if isinstance(listed, list) and len(listed) == 1 else {}
        return {
            "type": "tool_result",
            "tool_use_id": result.get("toolUseId"),
            "content": only.get("json", listed),
            "is_error": result.get("status") == "error",
        }
    return {"type": "text", **block} if "text" in block else {"type": "other", **block}


def add_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    role, content = message.get("role"), message.get("content")
    if role == "user":
        add_results(run.turns, content)
        if has_question(content):
            run.add_question(content)
    elif role == "assistant":
        run.turns.start_step(make_message_step(message), key=as_text(message.get("id")))
        add_answer(run.turns, content, message_id=as_text(message.get("id")))
        # Libraries that speak to many providers mix both forms.
        add_calls(run, message)
        run.add_model(message.get("model"))
    elif role == "tool":
        run.turns.add_result(message.get("tool_call_id"), content)
    elif role not in _SILENT_ROLES:
        raise DocumentFormatError(f"a message has {describe_role(role)}")


def make_message_step(message: JsonObject) -> ModelStep:
    """Return model and tokens of a message that holds them."""
    usage = as_object(message.get("usage"))
    step = make_step(
        message.get("model"),
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        usage.get("cache_read_input_tokens"),
        cache_write=usage.get("cache_creation_input_tokens"),
    )
    if step.input_tokens is None:
        return step
    # Anthropic counts the tokens of a cache apart, the GenAI conventions as part of the input.
    cached = (step.cached_tokens or 0) + (step.cache_write_tokens or 0)
    return replace(step, input_tokens=step.input_tokens + cached)


def add_answer(turns: TurnBuilder, content: Json, *, message_id: str | None) -> None:
    """Add the blocks of a message of the model.

    Args:
        message_id: joins the texts of messages that several records share.
    """
    if isinstance(content, str):
        turns.add_text(content, message_id=message_id)
        return
    texts: list[str] = []
    for block in iterate_objects(content):
        if _is_call(block) or _is_result(block):
            turns.add_text("\n".join(texts), message_id=message_id)
            texts.clear()
        if _is_call(block):
            turns.add_call(block.get("name"), block.get("input"), block.get("id"))
        elif _is_result(block):
            _add_result(turns, block)
        elif is_text_part(block):
            texts += filter(None, [as_text(block.get("text"))])
        elif looks_like_call(kind := block.get("type")):
            raise DocumentFormatError(f"a block of type `{str(kind)[:40]}` is not read")
    turns.add_text("\n".join(texts), message_id=message_id)


def add_results(turns: TurnBuilder, content: Json) -> None:
    """Add the tool results of a user message."""
    for block in iterate_objects(content):
        if _is_result(block):
            _add_result(turns, block)


def has_question(content: Json) -> bool:
    """Return whether a user message holds more than tool results."""
    if isinstance(content, list):
        return any(isinstance(block, dict) and not _is_result(block) for block in content) and (
            join_text(content) is not None or not any(map(_is_result, iterate_objects(content)))
        )
    return isinstance(content, str)


def _add_result(turns: TurnBuilder, block: JsonObject) -> None:
    if "tool_use_id" not in block:
        raise DocumentFormatError("a block of type `tool_result` has no `tool_use_id`")
    turns.add_result(
        block.get("tool_use_id"), block.get("content"), failed=block.get("is_error") is True
    )


def _is_call(block: JsonObject) -> bool:
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith(_CALL_ENDING)


def _is_result(block: JsonObject) -> bool:
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith(_RESULT_ENDING)
