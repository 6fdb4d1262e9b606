"""Reads messages in the forms of model APIs and frameworks, which conventions record as JSON.

Forms: OpenAI Chat Completions and Responses, Anthropic, Google, Bedrock, LangChain, LlamaIndex,
Vercel AI SDK and the GenAI conventions, plain or inside the requests, responses and states of those
libraries.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import (
    iterate_objects,
    parse_json_or_text,
    parse_nested_json,
)
from agentci.recordings.telemetry.messages import (
    EMPTY_CONTENT,
    PLACEHOLDERS,
    UNKNOWN,
    SpanMessage,
    SpanMessages,
    exceeds_messages_limit,
    flatten_content,
    make_call_part,
    make_response_part,
    make_text_part,
    normalize_part,
    normalize_tool_calls,
    parse_content,
    read_tool_status,
)

_ROLES: Final[Mapping[str, str]] = {
    "human": "user",
    "HumanMessage": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "model": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "SystemMessage": "system",
    "developer": "system",
    "function": "tool",
    "ToolMessage": "tool",
    "ToolMessageChunk": "tool",
    "FunctionMessage": "tool",
}
_KNOWN_ROLES: Final = frozenset({"user", "assistant", "system", "tool", *_ROLES})

# Keys that hold messages in requests, responses and states, in order of precedence.
_WRAPPERS: Final = (
    *("messages", "contents", "new_message", "choices", "generations", "candidates"),
    *("message", "update", "inputs", "input", "outputs", "output", "response", "content", "prompt"),
)
_BODY_KEYS: Final = frozenset({"content", "parts", "blocks", "tool_calls"})
_MAX_WRAPPERS: Final = 8
_CALL_KEYS: Final = frozenset(
    {"tool_calls", "toolCalls", "function_call", "functionCall", "tool_use", "toolUse"}
)
# Keys that hold the question or the answer as text.
_INPUT_KEYS: Final = (
    *("input", "question", "query", "user_input", "prompt", "text", "message", "task"),
)
_OUTPUT_KEYS: Final = (
    "output",
    "answer",
    "raw",
    "result",
    "response",
    "text",
    "content",
    "message",
)
# Objects that Python printed, and JSON that was cut: not what user or model wrote.
_NO_TEXT: Final = re.compile(
    r"<?[A-Za-z_][\w.]*(?:\((?:\w+=|\)\Z)| object at 0x)|\s*(?:\{\s*\"|\[\s*[\[{\"])"
)


def parse_input_messages(raw: Json) -> SpanMessages:
    """Parse what a model or an agent was given; text is the user's."""
    return _parse(raw, "user", _INPUT_KEYS)


def parse_output_messages(raw: Json) -> SpanMessages:
    """Parse what a model or an agent responded with.

    States that also hold earlier messages give only the last messages of the assistant.
    """
    parsed = _parse(raw, "assistant", _OUTPUT_KEYS)
    last = tuple(takewhile(lambda one: one.role == "assistant", reversed(parsed)))
    return last[::-1]


def parse_message_list(raw: Json, role: str) -> SpanMessages:
    """Parse messages; empty if ``raw`` holds none.

    Args:
        role: role of messages without one.
    """
    found = _find_messages(raw) or ()
    return tuple(_drop_empty_tool_messages(_parse_message(one, role) for one in found))


def decode(raw: Json) -> Json:
    """Decode JSON text, even if it is encoded twice; other text and values are returned as is."""
    if exceeds_messages_limit(raw):
        return None
    if isinstance(raw, str) and raw.lstrip()[:1] in ("{", "[", '"'):
        value = parse_json_or_text(raw)
        return decode(value) if isinstance(value, str) and value != raw else value
    return raw


def _parse(raw: Json, role: str, text_keys: Sequence[str]) -> SpanMessages:
    if found := parse_message_list(raw, role):
        return found
    value = decode(raw)
    text = _find_text(value, text_keys)
    if text is not None:
        return (SpanMessage(role=role, content=parse_content([make_text_part(text)])),)
    if isinstance(value, dict | list) and value:
        # The messages of the model calls are better, but any JSON is better than nothing.
        text = raw if isinstance(raw, str) else json.dumps(value)
        parts = [make_text_part(text)]
        if _holds_calls(value):
            parts.append({"type": UNKNOWN, "name": "tool call in an object without a role"})
        other = parse_content(parts)
        return (SpanMessage(role=role, content=EMPTY_CONTENT, fallback=other),)
    return ()


def _holds_calls(value: Json, depth: int = 0) -> bool:
    """Return whether a value that is not a message names tool calls."""
    if depth > _MAX_WRAPPERS:
        return False
    if isinstance(value, list):
        return any(_holds_calls(one, depth + 1) for one in value)
    return isinstance(value, dict) and any(
        (key in _CALL_KEYS and bool(one)) or _holds_calls(one, depth + 1)
        for key, one in value.items()
    )


def _find_text(value: Json, keys: Sequence[str]) -> str | None:
    if isinstance(value, dict):
        named = (value.get(key) for key in keys)
        value = next((text for text in named if isinstance(text, str) and text), None)
    if not isinstance(value, str) or _NO_TEXT.match(value):
        return None
    return value


def _find_messages(value: Json, depth: int = 0) -> list[JsonObject] | None:
    """Find messages in a request, a response or a state; None if there are none."""
    value = decode(value)
    if depth > _MAX_WRAPPERS:
        return None
    if isinstance(value, list):
        listed = [_find_messages(one, depth + 1) for one in value]
        return [one for part in listed if part for one in part] if all(listed) else None
    if not isinstance(value, dict):
        return None
    return [value] if _is_message(value) else _find_wrapped_messages(value, depth)


def _find_wrapped_messages(value: JsonObject, depth: int) -> list[JsonObject] | None:
    wrapped = (value[key] for key in _WRAPPERS if isinstance(value.get(key), dict | list))
    found = next(filter(None, (_find_messages(one, depth + 1) for one in wrapped)), None)
    if found is None and "model" in value and isinstance(text := value.get("input"), str):
        return [{"role": "user", "content": text}]
    return found


def _is_message(value: JsonObject) -> bool:
    inner = unwrap_message(value)
    if _is_call_item(inner):
        return True
    if inner.get("type") == "reasoning":
        return "summary" in inner
    if _BODY_KEYS.isdisjoint(inner):
        return False
    return inner is not value or "event.name" in inner or get_role(inner) is not None


def _is_call_item(item: JsonObject) -> bool:
    """Return whether an item of OpenAI's Responses API is a tool call or its output."""
    kind = item.get("type")
    if not isinstance(kind, str) or not kind.endswith(("_call", "_call_output")):
        return False
    return "call_id" in item or "id" in item


def unwrap_message(value: JsonObject) -> JsonObject:
    """Return the message in the serialized forms of LangChain, AutoGen and events."""
    names = value.get("id")
    if isinstance(inner := value.get("kwargs"), dict) and value.get("type") == "constructor":
        name = names[-1] if isinstance(names, list) and names else None
        return {"type": name, **inner} if isinstance(name, str) else inner
    if isinstance(inner := value.get("data"), dict) and value.get("type") in _KNOWN_ROLES:
        return {"type": value["type"], **inner}
    if isinstance(source := value.get("source"), str) and "type" in value:
        return {**value, "role": "user" if source == "user" else "assistant"}  # AutoGen
    if isinstance(inner := value.get("message"), dict) and (
        isinstance(value.get("event.name"), str)
    ):
        return {"role": "assistant", **inner}
    return value


def get_role(message: JsonObject) -> str | None:
    """Return the role of a message by the names of the GenAI conventions; None if unknown."""
    named = (message.get("role"), message.get("type"))
    known = (one for one in named if isinstance(one, str) and one in _KNOWN_ROLES)
    role = next(known, None)
    return None if role is None else _ROLES.get(role, role)


def _drop_empty_tool_messages(parsed: Iterable[SpanMessage]) -> Iterator[SpanMessage]:
    """Drop the definitions of tools that Langfuse appends to the messages."""
    return (one for one in parsed if one.content.is_present or one.role != "tool")


def _parse_message(raw: JsonObject, default_role: str) -> SpanMessage:
    message = unwrap_message(raw)
    role = get_role(message) or default_role
    parts = list(_parse_item(message)) or list(_parse_body(message, role))
    if parts and all(part["type"] == "tool_call_response" for part in parts):
        role = "tool"
    elif any(part["type"] == "tool_call" for part in parts) and role != "tool":
        role = "assistant"
    return SpanMessage(role=role, content=parse_content(parts))


def _parse_item(item: JsonObject) -> Iterator[JsonObject]:
    """Parse an item of OpenAI's Responses API that is not a message."""
    if item.get("type") == "reasoning":
        yield {"type": "other"}
    elif _is_call_item(item):
        yield from normalize_part(item)


def _parse_body(message: JsonObject, role: str) -> Iterator[JsonObject]:
    keys = ("parts", "blocks", "content")
    content = next((message[key] for key in keys if message.get(key)), None)
    if role == "tool":
        yield from _parse_tool_message(message, content)
        return
    blocks = content if isinstance(content, list) else [content]
    parts = [part for block in blocks for part in normalize_part(block)]
    yield from parts
    known = [part for part in parts if part["type"] == "tool_call"]
    for call in _parse_tool_calls(message):
        # LangChain keeps the blocks of a provider in addition to its own list.
        if not any(_are_same_call(call, one) for one in known):
            yield call


def _are_same_call(one: JsonObject, other: JsonObject) -> bool:
    ids = one.get("id"), other.get("id")
    if None not in ids:
        return ids[0] == ids[1]
    return one.get("name") == other.get("name")


def _parse_tool_message(message: JsonObject, content: Json) -> Iterator[JsonObject]:
    if isinstance(content, dict) and content.get("type") == "function":
        return  # the definition of a tool, which Langfuse appends to the messages
    blocks = content if isinstance(content, list) else []
    parts = [part for block in blocks for part in normalize_part(block)]
    if any(part["type"] == "tool_call_response" for part in parts):
        yield from parts
        return
    call_id = message.get("tool_call_id") or message.get("id")
    failed = read_tool_status(message)
    yield make_response_part(call_id, message.get("name"), flatten_content(content), failed=failed)


def _parse_tool_calls(message: JsonObject) -> Iterator[JsonObject]:
    extra = message.get("additional_kwargs")
    for source in (message, extra if isinstance(extra, dict) else {}):
        calls = normalize_tool_calls(source.get("tool_calls"))
        calls += normalize_tool_calls(source.get("invalid_tool_calls"))
        if calls:
            yield from calls
            return
    call = message.get("function_call")
    if isinstance(call, dict) and call.get("name"):
        yield make_call_part(None, call["name"], call.get("arguments"))


def parse_object(raw: Json) -> JsonObject:
    """Return the object in JSON text or a value; empty if it is not an object."""
    if isinstance(raw, str):
        try:
            raw = parse_nested_json(raw)
        except ValueError:
            return {}
    return raw if isinstance(raw, dict) else {}


def list_objects(raw: Json) -> list[JsonObject]:
    """Return the objects of a list in JSON text or a value."""
    return list(iterate_objects(decode(raw)))


# What Python functions are called with; smolagents adds a flag.
_CALL_VALUE_KEYS: Final = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})


def decode_tool_arguments(raw: Json) -> Json:
    """Return the arguments of a tool, without the record of a callback around them."""
    value = decode(raw)
    if not isinstance(value, dict):
        return None if isinstance(value, str) and value in PLACEHOLDERS else value
    named = value.get("inputs")
    if isinstance(named, dict) and not value.keys().isdisjoint({"input_str", "tags", "metadata"}):
        return named
    named = value.get("kwargs")
    if isinstance(named, dict) and value.keys() <= _CALL_VALUE_KEYS and not value.get("args"):
        return named
    return value


def decode_tool_output(raw: Json) -> Json:
    """Return the result of a tool, without the message around it."""
    message = find_tool_message(raw)
    if message is None:
        value = decode(raw)
        return flatten_content(_unwrap_response(value) if isinstance(value, dict) else value)
    return message.get("raw_output", flatten_content(message.get("content")))


def find_tool_message(raw: Json) -> JsonObject | None:
    """Return the tool message of LangChain, or LlamaIndex's output, around a tool's result."""
    value = decode(raw)
    if isinstance(value, dict) and value.keys() == {"output"}:
        value = decode(value["output"])
    if not isinstance(value, dict):
        return None
    message = unwrap_message(value)
    return message if get_role(message) == "tool" or "raw_output" in message else None


def has_failed(message: JsonObject | None) -> bool:
    """Return whether a tool message says that the tool failed."""
    return message is not None and read_tool_status(message) is True


def _unwrap_response(value: JsonObject) -> Json:
    """Return the response in Google's form of a function response."""
    return value["response"] if value.keys() == {"id", "name", "response"} else value
