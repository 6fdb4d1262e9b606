"""Reads messages in the forms of model APIs.

- Chat Completions of OpenAI, which many other providers and libraries use as well
- items of the Responses API of OpenAI: stored responses, the lists of the Agents SDK, and Codex
- Messages API of Anthropic, also inside the files of Claude Code
"""

import re
from collections.abc import Iterator
from typing import Final

from agentci.model.trace import ModelStep
from agentci.model.values import Json, JsonObject, replace
from agentci.recordings.json_documents import DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.transcripts.reader import (
    as_object,
    as_text,
    is_text_part,
    join_text,
    looks_like_call,
    make_step,
)
from agentci.recordings.transcripts.turn_builder import MessageListBuilder, TurnBuilder

_OPENAI_SILENT_ROLES: Final = ("system", "developer")


def is_openai_message(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    calls = message.get("tool_calls")
    if isinstance(calls, list) and any("function" in call for call in iterate_objects(calls)):
        return True
    return "function_call" in message or (
        message.get("role") == "tool" and "tool_call_id" in message
    )


def add_openai_message(run: MessageListBuilder, message: JsonObject) -> None:
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
    elif role not in _OPENAI_SILENT_ROLES:
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


_RESPONSE_MARKS: Final = frozenset(
    {
        *("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
        *("local_shell_call", "web_search_call", "file_search_call", "code_interpreter_call"),
        *("computer_call", "mcp_call", "image_generation_call", "shell_call", "apply_patch_call"),
    }
)
_HOSTED_CALL: Final = re.compile(r"(?P<tool>[a-z_]+)_call")
# Items that may look like calls.
_SILENT_ITEMS: Final = frozenset(
    {"mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "tool_search_output"}
)
_RESPONSES_SILENT_ROLES: Final = ("system", "developer")
# Items that name their tool, with the field of its arguments.
_ARGUMENTS_OF_NAMED_CALLS: Final = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "mcp_call": "arguments",
}
# Fields of a hosted tool's call that are not arguments.
_CALL_FIELDS: Final = frozenset(
    {"type", "id", "call_id", "status", "output", "outputs", "result", "results", "error"}
)


def is_response_item(item: JsonObject) -> bool:
    """Return whether an item can only be of this format."""
    kind = item.get("type")
    if not isinstance(kind, str):
        return False
    return kind in _RESPONSE_MARKS or (
        kind == "message"
        and any(
            part.get("type") in ("output_text", "input_text")
            for part in iterate_objects(item.get("content"))
        )
    )


def add_response_item(run: MessageListBuilder, item: JsonObject) -> None:
    """Add one item."""
    kind = item.get("type", "message")
    if kind == "message":
        _add_message_item(run, item)
    else:
        add_call_item(run.turns, item)


def _add_message_item(run: MessageListBuilder, item: JsonObject) -> None:
    role = item.get("role")
    if role == "user":
        run.add_question(item.get("content"))
    elif role == "assistant":
        run.turns.continue_step()
        run.turns.add_text("\n".join(read_message_texts(item)), message_id=as_text(item.get("id")))
        add_calls(run, item)
    elif role not in _RESPONSES_SILENT_ROLES:
        raise DocumentFormatError(f"a message has {describe_role(role)}")


def read_message_texts(item: JsonObject) -> Iterator[str]:
    """Iterate over the texts of a message of the model, refusals included."""
    content = item.get("content")
    if isinstance(content, str):
        yield content
    for part in iterate_objects(content):
        text = part.get("text", part.get("refusal"))
        if isinstance(text, str):
            yield text


def add_call_item(turns: TurnBuilder, item: JsonObject, *, failed: bool | None = None) -> None:
    """Add a tool call or its result; reasoning and the like are ignored.

    Args:
        failed: whether the item is the result of a failed call; None if that is not recorded.

    Raises:
        DocumentFormatError: it may be a call, and is not known.
    """
    kind = item.get("type")
    if not isinstance(kind, str):
        return
    call_id = as_text(item.get("call_id")) or as_text(item.get("id"))
    if kind.endswith("_call_output"):
        turns.end_step()
        turns.add_result(item.get("call_id"), item.get("output"), failed=failed)
        return
    found = _HOSTED_CALL.fullmatch(kind)
    if found is None:
        if kind not in _SILENT_ITEMS and looks_like_call(kind):
            raise DocumentFormatError(f"an item of type `{kind[:40]}` is not read")
        return
    # Items between two results are of one reply: the model waits for results.
    turns.continue_step()
    named = _ARGUMENTS_OF_NAMED_CALLS.get(kind)
    if named is not None:
        turns.add_call(item.get("name"), item.get(named), call_id)
    elif kind not in _RESPONSE_MARKS and isinstance(item.get("name"), str):
        raise DocumentFormatError(f"an item of type `{kind[:40]}` with a `name` is not read")
    else:
        turns.add_call(found["tool"], _find_hosted_arguments(item), call_id)
    _add_own_result(turns, call_id, item)


def _find_hosted_arguments(item: JsonObject) -> Json:
    """Return the action of a hosted tool's call, or its other fields."""
    action = item.get("action")
    if isinstance(action, dict):
        return action
    return {
        key: value for key, value in item.items() if key not in _CALL_FIELDS and value is not None
    }


def _add_own_result(turns: TurnBuilder, call_id: str | None, item: JsonObject) -> None:
    """Add a result that is part of the call's item."""
    error = item.get("error")
    if error is not None:
        turns.add_result(call_id, error, failed=True)
        return
    for name in ("output", "outputs", "result", "results"):
        if item.get(name) is not None:
            failed = {"completed": False, "failed": True}.get(str(item.get("status")))
            turns.add_result(call_id, item.get(name), failed=failed)
            return


def is_response(document: Json) -> bool:
    """Return whether the document is a stored response."""
    fields = as_object(document)
    return fields.get("object") == "response" and isinstance(fields.get("output"), list)


def add_response(run: MessageListBuilder, response: JsonObject) -> None:
    """Add the items of a stored response, which holds no input."""
    usage = as_object(response.get("usage"))
    cached = as_object(usage.get("input_tokens_details")).get("cached_tokens")
    tokens = usage.get("input_tokens"), usage.get("output_tokens"), cached
    run.turns.start_step(make_step(response.get("model"), *tokens))
    for item in iterate_objects(response.get("output")):
        add_response_item(run, item)
    run.add_model(response.get("model"))
    run.usage.add(None, *tokens)


# Of the model's own tools, too: server_tool_use, mcp_tool_use.
_CALL_ENDING: Final = "tool_use"
_THOUGHT_TYPES: Final = ("thinking", "redacted_thinking")
_RESULT_ENDING: Final = "tool_result"
_ANTHROPIC_SILENT_ROLES: Final = ("system", "developer")


def is_anthropic_message(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    return any(
        _is_anthropic_call(block)
        or _is_anthropic_result(block)
        or block.get("type") in _THOUGHT_TYPES
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
    add_anthropic_message(run, {**message, "content": content})


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


def add_anthropic_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    role, content = message.get("role"), message.get("content")
    if role == "user":
        add_anthropic_results(run.turns, content)
        if has_question(content):
            run.add_question(content)
    elif role == "assistant":
        run.turns.start_step(make_message_step(message), key=as_text(message.get("id")))
        add_anthropic_answer(run.turns, content, message_id=as_text(message.get("id")))
        # Libraries that speak to many providers mix both forms.
        add_calls(run, message)
        run.add_model(message.get("model"))
    elif role == "tool":
        run.turns.add_result(message.get("tool_call_id"), content)
    elif role not in _ANTHROPIC_SILENT_ROLES:
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


def add_anthropic_answer(turns: TurnBuilder, content: Json, *, message_id: str | None) -> None:
    """Add the blocks of a message of the model.

    Args:
        message_id: joins the texts of messages that several records share.
    """
    if isinstance(content, str):
        turns.add_text(content, message_id=message_id)
        return
    texts: list[str] = []
    for block in iterate_objects(content):
        if _is_anthropic_call(block) or _is_anthropic_result(block):
            turns.add_text("\n".join(texts), message_id=message_id)
            texts.clear()
        if _is_anthropic_call(block):
            turns.add_call(block.get("name"), block.get("input"), block.get("id"))
        elif _is_anthropic_result(block):
            _add_anthropic_result(turns, block)
        elif is_text_part(block):
            texts += filter(None, [as_text(block.get("text"))])
        elif looks_like_call(kind := block.get("type")):
            raise DocumentFormatError(f"a block of type `{str(kind)[:40]}` is not read")
    turns.add_text("\n".join(texts), message_id=message_id)


def add_anthropic_results(turns: TurnBuilder, content: Json) -> None:
    """Add the tool results of a user message."""
    for block in iterate_objects(content):
        if _is_anthropic_result(block):
            _add_anthropic_result(turns, block)


def has_question(content: Json) -> bool:
    """Return whether a user message holds more than tool results."""
    if isinstance(content, list):
        return any(
            isinstance(block, dict) and not _is_anthropic_result(block) for block in content
        ) and (
            join_text(content) is not None
            or not any(map(_is_anthropic_result, iterate_objects(content)))
        )
    return isinstance(content, str)


def _add_anthropic_result(turns: TurnBuilder, block: JsonObject) -> None:
    if "tool_use_id" not in block:
        raise DocumentFormatError("a block of type `tool_result` has no `tool_use_id`")
    turns.add_result(
        block.get("tool_use_id"), block.get("content"), failed=block.get("is_error") is True
    )


def _is_anthropic_call(block: JsonObject) -> bool:
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith(_CALL_ENDING)


def _is_anthropic_result(block: JsonObject) -> bool:
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith(_RESULT_ENDING)
