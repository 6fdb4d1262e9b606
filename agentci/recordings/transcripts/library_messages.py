"""Reads messages in the forms of agent libraries.

- Haystack: ``ChatMessage.to_dict()``, in all its serialized forms
- LangChain and LangGraph: ``dumpd``, ``messages_to_dict`` and ``model_dump``
- LlamaIndex: lists, chat stores, memories and the contexts of workflows
- Pydantic AI: ``all_messages_json()``
- Semantic Kernel: a serialized ``ChatHistory`` of its Python or .NET library
- AI SDK of Vercel: ``UIMessage`` and ``ModelMessage``
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci._util.text.json_text import dumps_readable
from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects, parse_json_or_text
from agentci.recordings.telemetry.messages import TOOL_CALL, normalize_tool_calls
from agentci.recordings.transcripts.provider_messages import add_calls, describe_role
from agentci.recordings.transcripts.reader import (
    as_object,
    as_text,
    check_finish_reason,
    find_text,
    iterate_texts,
    join_text,
    looks_like_call,
    make_step,
    parse_arguments,
    parse_cost,
)
from agentci.recordings.transcripts.turn_builder import MessageListBuilder, TurnBuilder

_HAYSTACK_SILENT_ROLES: Final = ("system", "developer")
_HAYSTACK_CALL: Final = "tool_call"
_HAYSTACK_RESULT: Final = "tool_call_result"
_HAYSTACK_SILENT_PARTS: Final = ("image", "reasoning", "file", "base64_image", "reasoning_text")


def is_haystack_message(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    if "_role" in message and isinstance(message.get("_content"), list):
        return True
    parts = list(iterate_objects(message.get("content")))
    if any(
        isinstance(part.get(key), dict)
        for part in parts
        for key in (_HAYSTACK_CALL, _HAYSTACK_RESULT)
    ):
        return "role" in message
    # Without calls, parts have no type, as Bedrock's, but the message has what only Haystack adds.
    return {"role", "meta", "name"} <= message.keys() and not any("type" in part for part in parts)


def add_haystack_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    role = message.get("role", message.get("_role"))
    content = message.get("content", message.get("_content"))
    parts = list(iterate_objects([{"text": content}] if isinstance(content, str) else content))
    if role == "user":
        run.add_question([text for part in parts for text in iterate_texts(part)])
    elif role == "assistant":
        _add_haystack_answer(run, parts, as_object(message.get("meta", message.get("_meta"))))
    elif role == "tool":
        for part in parts:
            _add_haystack_result(run, part)
    elif role not in _HAYSTACK_SILENT_ROLES:
        raise DocumentFormatError(f"a message has {describe_role(role)}")


def _add_haystack_answer(
    run: MessageListBuilder, parts: list[JsonObject], meta: JsonObject
) -> None:
    usage = as_object(meta.get("usage"))
    given = usage.get("prompt_tokens", usage.get("input_tokens"))
    produced = usage.get("completion_tokens", usage.get("output_tokens"))
    cached = as_object(usage.get("prompt_tokens_details")).get("cached_tokens")
    run.turns.start_step(make_step(meta.get("model"), given, produced, cached))
    run.add_model(meta.get("model"))
    run.usage.add(None, given, produced, cached)
    texts = [text for part in parts for text in iterate_texts(part)]
    run.turns.add_text("\n".join(texts))
    for part in parts:
        if call := _find_haystack_call(part):
            run.turns.add_call(find_text(call, "tool_name"), call.get("arguments"), call.get("id"))
        elif "text" not in part and not any(key in part for key in _HAYSTACK_SILENT_PARTS):
            keys = ", ".join(f"`{key[:40]}`" for key in [*part][:4])
            raise DocumentFormatError(f"a part with {keys} is not read")
    if not run.turns.call_names:
        check_finish_reason(meta)


def _find_haystack_call(part: JsonObject) -> JsonObject:
    """Return a tool call, which ``dataclasses.asdict`` writes without a key around it."""
    return (
        part if "tool_name" in part and "arguments" in part else as_object(part.get(_HAYSTACK_CALL))
    )


def _add_haystack_result(run: MessageListBuilder, part: Mapping[str, Json]) -> None:
    result = part if "origin" in part else as_object(part.get(_HAYSTACK_RESULT))
    origin = as_object(result.get("origin"))
    flag = result.get("error")
    failed = flag if isinstance(flag, bool) else None
    if not result:
        raise DocumentFormatError("a message with the role `tool` holds no `tool_call_result`")
    name = as_text(origin.get("tool_name"))
    run.turns.add_result(origin.get("id"), result.get("result"), failed=failed, name=name)


_LANGCHAIN_TYPES: Final = {
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
_LANGCHAIN_ROLES: Final = {"user": "human", "human": "human", "assistant": "ai", "ai": "ai"}


def is_langchain_message(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    if message.get("lc") == 1:
        return message.get("type") == "constructor" and "kwargs" in message
    kind = message.get("type")
    return (
        isinstance(kind, str)
        and kind in _LANGCHAIN_TYPES
        and "role" not in message
        and ("content" in message or isinstance(message.get("data"), dict))
    )


def add_langchain_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    fields, kind = _unwrap_langchain(message)
    if kind == "chat":
        role = fields.get("role")
        kind = _LANGCHAIN_ROLES.get(role, "silent") if isinstance(role, str) else "silent"
    if kind == "human":
        run.add_question(fields.get("content"))
    elif kind == "ai":
        _add_langchain_answer(run, fields)
    elif kind == "tool":
        failed = {"error": True, "success": False}.get(str(fields.get("status")))
        run.turns.add_result(fields.get("tool_call_id"), fields.get("content"), failed=failed)
    elif kind == "function":
        run.turns.add_result(None, fields.get("content"), name=as_text(fields.get("name")))
    elif kind is None:
        raise DocumentFormatError(f"a message has {describe_role(message.get('type'))}")


def _unwrap_langchain(message: JsonObject) -> tuple[JsonObject, str | None]:
    """Return the fields of a message in any of the shapes, and its type."""
    kind = message.get("type")
    if message.get("lc") == 1:
        fields, path = as_object(message.get("kwargs")), message.get("id")
        kind = fields.get("type") or (path[-1] if isinstance(path, list) and path else None)
    else:
        data = message.get("data")
        fields = data if isinstance(data, dict) else message
    return fields, _LANGCHAIN_TYPES.get(kind) if isinstance(kind, str) else None


def find_message_id(message: JsonObject) -> str | None:
    """Return the id of a message, which stays the same in later states of a graph."""
    return (
        as_text(_unwrap_langchain(message)[0].get("id")) if is_langchain_message(message) else None
    )


def _add_langchain_answer(run: MessageListBuilder, fields: JsonObject) -> None:
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
    return found if objects and all(map(is_langchain_message, objects)) else None


def is_update(document: Json) -> bool:
    """Return whether a document may be what nodes of a graph changed, with or without messages."""
    return (
        isinstance(document, dict)
        and bool(document)
        and not is_langchain_message(document)
        and all(
            update is None or isinstance(update, dict) or node == INTERRUPT
            for node, update in document.items()
        )
    )


INTERRUPT: Final = "__interrupt__"


_LLAMA_ANSWER_ROLES: Final = ("assistant", "chatbot", "model")
_LLAMA_RESULT_ROLES: Final = ("tool", "function")
_LLAMA_SILENT_ROLES: Final = ("system", "developer")
_LLAMA_ROLES: Final = ("user", *_LLAMA_ANSWER_ROLES, *_LLAMA_RESULT_ROLES, *_LLAMA_SILENT_ROLES)
_LLAMA_CALL_BLOCK: Final = "tool_call"
_LLAMA_SILENT_BLOCKS: Final = (
    *("text", "image", "audio", "video", "document", "thinking", "cache", "citable", "citation"),
)
# What the ReAct agent keeps of a run: its steps, as one text.
_REACT_STEP: Final = re.compile(r"^Action: .+\nAction Input: ", re.MULTILINE)


def is_llama_message(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    return (
        message.get("role") in _LLAMA_ROLES
        and isinstance(message.get("additional_kwargs"), dict)
        and "type" not in message
        and (isinstance(message.get("blocks"), list) or "content" in message)
    )


def find_llama_lists(document: JsonObject) -> Iterator[Sequence[Json]]:
    """Yield the conversations of a chat store, of a memory with one, or of a workflow's context."""
    for fields in (document, *_find_llama_memories(document)):
        stored = as_object(fields.get("chat_store")) or fields
        for messages in as_object(stored.get("store")).values():
            if isinstance(messages, list):
                yield messages


def _find_llama_state(document: JsonObject) -> JsonObject:
    """Return the values that a context keeps for its steps, which are JSON texts."""
    state = as_object(as_object(document.get("state")).get("state_data")).get("_data")
    return as_object(state) or as_object(document.get("globals"))


def _find_llama_memories(document: JsonObject) -> Iterator[JsonObject]:
    memory = _find_llama_state(document).get("memory")
    value = as_object(parse_json_or_text(memory) if isinstance(memory, str) else memory)
    yield as_object(value.get("value"))


def add_llama_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    role = message.get("role")
    content = message.get("blocks", message.get("content"))
    extra = as_object(message.get("additional_kwargs"))
    if role == "user":
        run.add_question(content)
    elif role in _LLAMA_ANSWER_ROLES:
        _add_llama_answer(run, content, extra)
    elif role in _LLAMA_RESULT_ROLES:
        name = as_text(extra.get("name"))
        run.turns.add_result(extra.get("tool_call_id"), join_text(content), name=name)
    elif role not in _LLAMA_SILENT_ROLES:
        raise DocumentFormatError(f"a message has {describe_role(role)}")


def _add_llama_answer(run: MessageListBuilder, content: Json, extra: JsonObject) -> None:
    run.turns.start_step()
    text = join_text(content)
    if _REACT_STEP.search(text or ""):
        raise DocumentFormatError(
            "the steps of LlamaIndex's ReAct agent are text, which is not read; record with OTLP"
        )
    run.turns.add_text(text)
    blocks = list(iterate_objects(content))
    calls = [block for block in blocks if block.get("block_type") == _LLAMA_CALL_BLOCK]
    for block in blocks:
        kind = block.get("block_type")
        if kind not in (*_LLAMA_SILENT_BLOCKS, _LLAMA_CALL_BLOCK) and looks_like_call(kind):
            raise DocumentFormatError(f"a block of type `{str(kind)[:40]}` is not read")
    for call in calls:
        run.turns.add_call(call.get("tool_name"), call.get("tool_kwargs"), call.get("tool_call_id"))
    if calls:
        return
    # Versions before 0.14 keep only the calls of the provider.
    raw = extra.get("tool_calls") or extra.get("function_call")
    for call in normalize_tool_calls(raw):
        if call["type"] != TOOL_CALL:
            raise DocumentFormatError(f"a {call['name']} is not read")
        run.turns.add_call(call["name"], call["arguments"], call["id"])


_PYDANTIC_SILENT_PARTS: Final = ("text", "thinking", "file", "image", "compaction")
OUTPUT_TOOL: Final = "final_result"


def is_pydantic_message(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    return message.get("kind") in ("request", "response") and isinstance(message.get("parts"), list)


def add_pydantic_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    if message.get("kind") == "request":
        for part in iterate_objects(message.get("parts")):
            _add_pydantic_part(run, part)
    elif message.get("kind") == "response":
        _add_pydantic_response(run, message)
    else:
        raise DocumentFormatError("a message is neither a `request` nor a `response`")


def _add_pydantic_part(run: MessageListBuilder, part: JsonObject) -> None:
    kind = part.get("part_kind")
    if kind == "user-prompt":
        run.add_question(_read_pydantic_prompt(part.get("content")))
    elif kind == "tool-return" and not _is_output_tool(part):
        failed = part.get("outcome") in ("failed", "denied")
        run.turns.add_result(part.get("tool_call_id"), part.get("content"), failed=failed)
    elif kind == "retry-prompt" and as_text(part.get("tool_name")) and not _is_output_tool(part):
        run.turns.add_result(part.get("tool_call_id"), part.get("content"), failed=True)


def _read_pydantic_prompt(content: Json) -> Json:
    """Return the texts of a prompt, whose parts have ``content`` instead of ``text``."""
    if not isinstance(content, list):
        return content
    return [
        part.get("content") if isinstance(part, dict) and part.get("kind") == "text" else part
        for part in content
    ]


def _add_pydantic_response(run: MessageListBuilder, message: JsonObject) -> None:
    parts = list(iterate_objects(message.get("parts")))
    usage = as_object(message.get("usage"))
    # Versions before 1.0 call them request_tokens and response_tokens.
    given = usage.get("input_tokens", usage.get("request_tokens"))
    produced = usage.get("output_tokens", usage.get("response_tokens"))
    tokens = given, produced, usage.get("cache_read_tokens")
    run.turns.start_step(
        make_step(
            message.get("model_name"),
            *tokens,
            usage.get("cost"),
            cache_write=usage.get("cache_write_tokens"),
        )
    )
    texts: list[str] = []
    for part in parts:
        kind = part.get("part_kind")
        if kind == "text" and (text := as_text(part.get("content"))):
            texts.append(text)
            continue
        if kind in ("tool-call", "builtin-tool-call"):
            run.turns.add_text("\n".join(texts))
            texts.clear()
            _add_pydantic_call(run, part)
        elif kind == "builtin-tool-return":
            run.turns.add_result(part.get("tool_call_id"), part.get("content"))
        elif kind not in _PYDANTIC_SILENT_PARTS:
            raise DocumentFormatError(f"a part of kind `{str(kind)[:40]}` is not read")
    run.turns.add_text("\n".join(texts))
    run.add_model(message.get("model_name"))
    run.add_cost(parse_cost(usage.get("cost")))
    run.usage.add(None, *tokens)


def _add_pydantic_call(run: MessageListBuilder, part: JsonObject) -> None:
    if not _is_output_tool(part):
        run.turns.add_call(part.get("tool_name"), part.get("args"), part.get("tool_call_id"))
        return
    # The answer of an agent with an output type is the arguments of a tool that does not exist.
    run.turns.add_text(dumps_readable(parse_arguments(part.get("args"))))


def _is_output_tool(part: JsonObject) -> bool:
    name = part.get("tool_name")
    is_named = isinstance(name, str) and (name == OUTPUT_TOOL or name.startswith(f"{OUTPUT_TOOL}_"))
    return is_named or part.get("tool_kind") == "output"


_KERNEL_SILENT_ROLES: Final = ("system", "developer")
_KERNEL_KIND: Final = "content_type"
_KERNEL_CALL: Final = "function_call"
_KERNEL_RESULT: Final = "function_result"
# The names of .NET for what Python writes.
_NET_KINDS: Final = {
    "TextContent": "text",
    "FunctionCallContent": _KERNEL_CALL,
    "FunctionResultContent": _KERNEL_RESULT,
}


def is_kernel_message(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    if isinstance(message.get("items"), list) and message.get(_KERNEL_KIND) == "message":
        return True
    role = message.get("Role")
    return isinstance(message.get("Items"), list) and isinstance(as_object(role).get("Label"), str)


def add_kernel_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    role = message.get("role", as_object(message.get("Role")).get("Label"))
    role = role.lower() if isinstance(role, str) else role
    items = [
        _convert_kernel_item(item) for item in iterate_objects(_get_kernel_field(message, "items"))
    ]
    texts = [text for item in items if (text := _find_kernel_text(item))]
    if role == "user":
        if texts or not any(item.get(_KERNEL_KIND) == _KERNEL_RESULT for item in items):
            run.add_question(list[Json](texts))
    elif role == "assistant":
        _start_kernel_reply(run, message)
        run.turns.add_text("\n".join(texts))
    elif role not in ("tool", *_KERNEL_SILENT_ROLES):
        raise DocumentFormatError(f"a message has {describe_role(role)}")
    for item in items:
        _add_kernel_item(run, item)
    if not run.turns.call_names:
        check_finish_reason(message)


def _get_kernel_field(fields: JsonObject, name: str) -> Json:
    """Return a field, whose name .NET writes in PascalCase."""
    found = fields.get(name)
    return fields.get("".join(map(str.capitalize, name.split("_")))) if found is None else found


def _convert_kernel_item(item: JsonObject) -> JsonObject:
    kind = item.get("$type", item.get(_KERNEL_KIND))
    return {**item, _KERNEL_KIND: _NET_KINDS.get(kind, kind) if isinstance(kind, str) else None}


def _find_kernel_text(item: JsonObject) -> str | None:
    return find_text(item, "text", "Text") if item.get(_KERNEL_KIND) == "text" else None


def _start_kernel_reply(run: MessageListBuilder, message: JsonObject) -> None:
    metadata = as_object(_get_kernel_field(message, "metadata"))
    usage = as_object(_get_kernel_field(metadata, "usage"))
    given = usage.get("prompt_tokens", usage.get("InputTokenCount"))
    produced = usage.get("completion_tokens", usage.get("OutputTokenCount"))
    model = message.get("ai_model_id", message.get("ModelId"))
    run.turns.start_step(make_step(model, given, produced))
    run.add_model(model)
    run.usage.add(None, given, produced)


def _add_kernel_item(run: MessageListBuilder, item: JsonObject) -> None:
    kind = item.get(_KERNEL_KIND)
    call_id = as_text(item.get("call_id")) or item.get("CallId") or _get_kernel_field(item, "id")
    if kind == _KERNEL_CALL:
        run.turns.add_call(_name_function(item), _get_kernel_field(item, "arguments"), call_id)
    elif kind == _KERNEL_RESULT:
        run.turns.add_result(call_id, _get_kernel_field(item, "result"), name=_name_function(item))
    elif not isinstance(kind, str) or looks_like_call(kind):
        raise DocumentFormatError(f"an item of type `{str(kind)[:40]}` is not read")


def _name_function(item: JsonObject) -> str | None:
    """Return the name that the model knows a function by."""
    if (name := as_text(item.get("name"))) is not None:
        return name
    plugin, function = (
        as_text(_get_kernel_field(item, "plugin_name")),
        as_text(_get_kernel_field(item, "function_name")),
    )
    return f"{plugin}-{function}" if plugin and function else function


_TOOL_PREFIX: Final = "tool-"
_FAILED_STATES: Final = ("output-error", "output-denied")
_UI_SILENT_PARTS: Final = (
    *("text", "step-start", "reasoning", "source", "source-url", "source-document", "file"),
    "redacted-reasoning",
)
_DONE_STATES: Final = ("output-available", "result")


def is_ui_message(message: JsonObject) -> bool:
    """Return whether a message can only be a ``UIMessage``."""
    if "role" not in message:
        return False
    if isinstance(message.get("toolInvocations"), list):
        return True
    return isinstance(message.get("parts"), list) and all(
        isinstance(part.get("type"), str) for part in iterate_objects(message.get("parts"))
    )


def add_ui_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one ``UIMessage``; a tool part holds the call and its result."""
    role, parts = message.get("role"), message.get("parts")
    if role == "user":
        run.add_question(parts if isinstance(parts, list) else message.get("content"))
    elif role == "assistant":
        if isinstance(parts, list):
            _add_ui_parts(run.turns, parts)
        else:
            for invocation in iterate_objects(message.get("toolInvocations")):
                _add_invocation(run.turns, invocation, invocation.get("toolName"))
            run.turns.add_text(join_text(message.get("content")))
    elif role not in ("system", "data"):
        raise DocumentFormatError(f"a message has {describe_role(role)}")


def _add_ui_parts(turns: TurnBuilder, parts: list[Json]) -> None:
    texts: list[str] = []
    for part in iterate_objects(parts):
        kind = part.get("type")
        if kind == "text" and (text := as_text(part.get("text"))):
            texts.append(text)
            continue
        invocation = _find_invocation(part)
        if invocation is None and kind != "step-start":
            if kind not in _UI_SILENT_PARTS and not str(kind).startswith("data-"):
                raise DocumentFormatError(f"a part of type `{str(kind)[:40]}` is not read")
            continue
        turns.add_text("\n".join(texts))
        texts.clear()
        if invocation is None:
            turns.start_step()
        else:
            _add_invocation(turns, *invocation)
    turns.add_text("\n".join(texts))


def _find_invocation(part: JsonObject) -> tuple[JsonObject, Json] | None:
    """Return the fields of a tool part, and the name of the tool; None for other parts."""
    kind = part.get("type")
    if kind == "tool-invocation":
        inner = as_object(part.get("toolInvocation"))
        return inner, inner.get("toolName")
    if kind == "dynamic-tool":
        return part, part.get("toolName")
    if isinstance(kind, str) and kind.startswith(_TOOL_PREFIX):
        return part, kind.removeprefix(_TOOL_PREFIX)
    return None


def _add_invocation(turns: TurnBuilder, fields: JsonObject, name: Json) -> None:
    """Add a call and its result, as SDK 5 and later name them, or SDK 4."""
    call_id, state = fields.get("toolCallId"), fields.get("state")
    args = fields.get("input", fields.get("args", fields.get("rawInput")))
    turns.add_call(name, args, call_id)
    if state in _DONE_STATES:
        turns.add_result(call_id, fields.get("output", fields.get("result")), failed=False)
    elif state in _FAILED_STATES:
        turns.add_result(call_id, fields.get("errorText"), failed=True)


def is_model_message(message: JsonObject) -> bool:
    """Return whether a message can only be a ``ModelMessage``."""
    return "role" in message and any(
        part.get("type") in ("tool-call", "tool-result")
        for part in iterate_objects(message.get("content"))
    )


def add_model_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one ``ModelMessage`` (``CoreMessage`` in SDK 4)."""
    role, content = message.get("role"), message.get("content")
    if role == "user":
        run.add_question(content)
    elif role in ("assistant", "tool"):
        if role == "assistant":
            run.turns.start_step()
        if isinstance(content, str):
            run.turns.add_text(content)
        else:
            _add_model_parts(run.turns, content)
        add_calls(run, message)
    elif role != "system":
        raise DocumentFormatError(f"a message has {describe_role(role)}")


def _add_model_parts(turns: TurnBuilder, content: Json) -> None:
    texts: list[str] = []
    for part in iterate_objects(content):
        kind = part.get("type")
        if kind == "text" and (text := as_text(part.get("text"))):
            texts.append(text)
        elif kind == "tool-call":
            turns.add_text("\n".join(texts))
            texts.clear()
            args = part.get("input", part.get("args"))
            turns.add_call(part.get("toolName"), args, part.get("toolCallId"))
        elif kind == "tool-result":
            _add_model_result(turns, part)
    turns.add_text("\n".join(texts))


def _add_model_result(turns: TurnBuilder, part: JsonObject) -> None:
    call_id, failed = part.get("toolCallId"), part.get("isError") is True
    if "output" not in part:
        turns.add_result(call_id, part.get("result"), failed=failed)
        return
    output = part.get("output")
    kind = as_object(output).get("type")
    if not isinstance(output, dict) or not isinstance(kind, str):
        turns.add_result(call_id, output, failed=failed)
        return
    value = output.get("reason") if kind == "execution-denied" else output.get("value")
    turns.add_result(call_id, value, failed=kind.startswith("error") or kind == "execution-denied")
