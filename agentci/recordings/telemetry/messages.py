"""Parses the messages between user, model and tools in the forms that instrumentations record.

The rules are those of agentevals 0.11.0. Content that it ignores (for example ``tool_calls`` in the
OpenAI or LangChain style) is kept in ``SpanMessage.fallback`` and used only if the rules find
nothing, so that it never changes their result.

Parts of messages are normalized to the types ``text``, ``tool_call``, ``tool_call_response``,
``other`` for what is neither of them, such as images, and ``unknown`` for what may be either.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile, takewhile
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.values import Json, JsonObject, replace
from agentci.recordings.telemetry.json_input import (
    iterate_objects,
    parse_argument_text,
    parse_json_or_text,
    parse_nested_json,
    parse_value,
)

TEXT: Final = "text"
TOOL_CALL: Final = "tool_call"
TOOL_RESPONSE: Final = "tool_call_response"
OTHER: Final = "other"
UNKNOWN: Final = "unknown"

_TEXT_TYPES: Final = frozenset({TEXT, "input_text", "output_text", "refusal", "Text"})
_CALL_TYPES: Final = frozenset({TOOL_CALL, "tool_use", "function_call", "server_tool_use"})
_RESPONSE_TYPES: Final = frozenset({TOOL_RESPONSE, "tool_result", "function_response"})
# Tools may be hosted by the model's provider: web_search_call, mcp_tool_use, server_tool_call...
_CALL_ENDINGS: Final = ("_call", "_tool_use")
_RESPONSE_ENDINGS: Final = ("_tool_result", "_call_output", "_call_response", "_tool_return")
# Parts that hold no text of the answer and no call.
_OTHER_TYPES: Final = frozenset(
    {
        *(OTHER, "reasoning", "thinking", "redacted_thinking", "thought", "reasoning_content"),
        *("reasoning_text", "summary_text", "image", "image_url", "input_image", "output_image"),
        *("audio", "input_audio", "output_audio", "video", "file", "input_file", "document"),
        *("blob", "uri", "media", "binary", "resource", "data", "source", "source_url"),
        *("source_document", "citation", "citations", "compaction", "container_upload"),
        *("step_start", "guard_content", "cache_point", "search_result", "file_id"),
    }
)
# Keys that say the same of parts without a type, as Google and Bedrock write them.
_OTHER_KEYS: Final = frozenset(
    {
        *("inlineData", "inline_data", "fileData", "file_data", "videoMetadata", "video_metadata"),
        *("thought", "thoughtSignature", "thought_signature", "reasoningContent", "image"),
        *("document", "video", "audio", "cachePoint", "guardContent", "citationsContent", "json"),
        *("content", "text", "refusal", "reasoning", "file", "media"),
    }
)
_CALL_ID_KEYS: Final = ("toolCallId", "tool_use_id", "tool_call_id", "call_id", "id")
_NAME_KEYS: Final = ("name", "toolName", "tool_name")
_ARGUMENT_KEYS: Final = ("arguments", "args", "input", "tool_kwargs", "parameters", "action")
_RESPONSE_KEYS: Final = ("response", "result", "output", "content")
# What the Vercel AI SDK says of a tool's output.
_VALUE_TYPES: Final = ("text", "json", "error-text", "error-json", "content")


def make_text_part(content: Json) -> JsonObject:
    """Make a text part."""
    return {"type": TEXT, "content": content}


def make_call_part(call_id: Json, name: Json, arguments: Json) -> JsonObject:
    """Make a part with the call of a tool."""
    return {"type": TOOL_CALL, "id": call_id, "name": name, "arguments": arguments}


def make_response_part(
    call_id: Json, name: Json, answer: Json, *, failed: bool | None = None
) -> JsonObject:
    """Make a part with a tool's response to the call with id ``call_id``."""
    part = {"type": TOOL_RESPONSE, "id": call_id, "name": name, "response": answer}
    return part if failed is None else {**part, "is_error": failed}


def normalize_part(part: Json) -> Iterator[JsonObject]:
    """Yield a part, or the part that a text is, in normalized form; nothing for an empty part."""
    if isinstance(part, str):
        yield make_text_part(part)
    elif isinstance(part, dict):
        yield from _normalize_object(part)


# The keys by which a part says what it is if it has no type.
_CALL_KEYS: Final = ("toolUse", "functionCall", "function_call", "toolRequest")
_ANSWER_KEYS: Final = ("toolResult", "functionResponse", "function_response", "toolResponse")
_CODE_KEYS: Final = ("executableCode", "executable_code")
_CODE_RESULT_KEYS: Final = ("codeExecutionResult", "code_execution_result")
_HAYSTACK_RESPONSE: Final = "tool_call_result"
_UNTYPED_KEYS: Final = frozenset(
    (*_CALL_KEYS, *_ANSWER_KEYS, *_CODE_KEYS, *_CODE_RESULT_KEYS, TOOL_CALL, _HAYSTACK_RESPONSE)
)


def _normalize_object(part: JsonObject) -> list[JsonObject]:
    if _UNTYPED_KEYS.isdisjoint(part):
        return _normalize_typed_part(part)
    return (
        _normalize_keyed_part(part) or _normalize_haystack_part(part) or _normalize_typed_part(part)
    )


def _normalize_keyed_part(part: JsonObject) -> list[JsonObject]:
    """Normalize a part of Bedrock, Google or Genkit, whose only key is its type."""
    call = get_first(part, *_CALL_KEYS)
    if isinstance(call, dict):
        # Google leaves out arguments of functions without parameters.
        arguments = get_first(call, "input", "args")
        arguments = {} if arguments is None and "toolUse" not in part else arguments
        call_id = get_first(call, "toolUseId", "id", "ref")
        return [make_call_part(call_id, call.get("name"), arguments)]
    answer = get_first(part, *_ANSWER_KEYS)
    if isinstance(answer, dict):
        value = flatten_content(get_first(answer, "content", "response", "output"))
        call_id, failed = get_first(answer, "toolUseId", "id", "ref"), read_tool_status(answer)
        return [make_response_part(call_id, answer.get("name"), value, failed=failed)]
    code = get_first(part, *_CODE_KEYS)
    if isinstance(code, dict):
        return [make_call_part(code.get("id"), "code_execution", code)]
    result = get_first(part, *_CODE_RESULT_KEYS)
    if isinstance(result, dict):
        return [make_response_part(result.get("id"), "code_execution", result.get("output"))]
    return []


def _normalize_haystack_part(part: JsonObject) -> list[JsonObject]:
    if isinstance(call := part.get(TOOL_CALL), dict) and "tool_name" in call:
        return [make_call_part(call.get("id"), call["tool_name"], call.get("arguments"))]
    if isinstance(answer := part.get(_HAYSTACK_RESPONSE), dict):
        origin = answer.get("origin")
        origin = origin if isinstance(origin, dict) else {}
        value, failed = flatten_content(answer.get("result")), answer.get("error") is True
        name = origin.get("tool_name")
        return [make_response_part(origin.get("id"), name, value, failed=failed)]
    return []


def _normalize_typed_part(part: JsonObject) -> list[JsonObject]:
    recorded = part.get("type", part.get("block_type"))
    kind = str(recorded or "").replace("-", "_")
    if recorded == UNKNOWN:
        return [part]
    if not kind or kind in _TEXT_TYPES:
        return [_normalize_text(kind, part)] if part else []
    if kind in _RESPONSE_TYPES or kind.endswith(_RESPONSE_ENDINGS):
        value = flatten_content(get_first(part, *_RESPONSE_KEYS, kind))
        call_id, failed = get_first(part, *_CALL_ID_KEYS), read_tool_status(part)
        return [make_response_part(call_id, get_first(part, *_NAME_KEYS), value, failed=failed)]
    if kind in _CALL_TYPES or kind.endswith(_CALL_ENDINGS):
        return [_normalize_call(kind, part)]
    known = kind in _OTHER_TYPES or kind.startswith(("source_", "data_", "image_", "audio_"))
    return [{"type": OTHER} if known else {"type": UNKNOWN, "name": f"part of type `{recorded}`"}]


def _normalize_text(kind: str, part: JsonObject) -> JsonObject:
    text = get_first(part, "content", "text", "refusal")
    if text is not None and not part.get("thought"):
        return make_text_part(text)
    if kind or not _OTHER_KEYS.isdisjoint(part):
        return {"type": OTHER}
    return {"type": UNKNOWN, "name": f"part with `{'`, `'.join(part)}`"}


def _normalize_call(kind: str, part: JsonObject) -> JsonObject:
    """Normalize a call; one that names no tool is of a hosted tool, or unknown."""
    inner = part.get("function")
    fields = inner if isinstance(inner, dict) else part
    name = get_first(fields, *_NAME_KEYS)
    arguments = get_first(fields, *_ARGUMENT_KEYS, kind)
    if not name and kind not in (*_CALL_TYPES, "custom_tool_call", "mcp_call"):
        name = kind.removesuffix("_call").removesuffix("_tool_use")
        rest = {key: value for key, value in part.items() if key not in _CALL_FIELDS}
        arguments = rest if arguments is None else arguments
    if not isinstance(name, str) or not name:
        return {"type": UNKNOWN, "name": f"part of type `{kind}` without a name"}
    return make_call_part(get_first(part, *_CALL_ID_KEYS), name, arguments)


# Fields of a hosted tool's call that are not arguments.
_CALL_FIELDS: Final = frozenset(
    {"type", "id", "call_id", "status", "output", "outputs", "result", "results", "error"}
)


def normalize_tool_calls(tool_calls: Json) -> list[JsonObject]:
    """Normalize ``tool_calls`` in the OpenAI or LangChain style, whose items have any type."""
    listed = parse_json_or_text(tool_calls) if isinstance(tool_calls, str) else tool_calls
    if not isinstance(listed, list):
        listed = [listed] if listed else []
    return [_normalize_listed_call(call) for call in listed]


def _normalize_listed_call(call: Json) -> JsonObject:
    if not isinstance(call, dict):
        return {"type": UNKNOWN, "name": "tool call that is not an object"}
    inner = get_first(call, "function", "custom")
    fields = inner if isinstance(inner, dict) else call
    name = get_first(fields, *_NAME_KEYS)
    if not isinstance(name, str) or not name:
        return {"type": UNKNOWN, "name": "tool call without a name"}
    arguments = get_first(fields, *_ARGUMENT_KEYS)
    return make_call_part(get_first(call, *_CALL_ID_KEYS), name, arguments)


def read_tool_status(fields: JsonObject) -> bool | None:
    """Return whether a tool's message or block says that the tool failed; None if it says nothing.

    Anthropic, OpenAI's clients and the AI SDK write a flag; LangChain and Bedrock a status.
    """
    flag = next(
        (fields[key] for key in ("is_error", "isError") if isinstance(fields.get(key), bool)), None
    )
    if isinstance(flag, bool):
        return flag
    return {"error": True, "success": False}.get(str(fields.get("status")))


def flatten_content(content: Json) -> Json:
    """Return blocks of only text as one text; other values unchanged."""
    if isinstance(content, dict):
        return _flatten_block(content)
    if not isinstance(content, list) or not content:
        return content
    parts = [part for block in content for part in normalize_part(block)]
    if len(parts) == len(content) and all(part["type"] == TEXT for part in parts):
        return "".join(str(part["content"]) for part in parts)
    return content


def _flatten_block(block: JsonObject) -> Json:
    if "value" in block and block.get("type") in _VALUE_TYPES:
        return block["value"]
    return block["text"] if "text" in block and block.keys() <= {"type", "text"} else block


def get_first(fields: JsonObject, *keys: str) -> Json:
    """Return the first value that is not None."""
    for key in keys:
        if (value := fields.get(key)) is not None:
            return value
    return None


USER_ROLE: Final = "user"
LANGCHAIN_USER_ROLE: Final = "human"


class ToolCallPart(Struct, frozen=True, kw_only=True):
    """A tool call in a model message.

    Attributes:
        is_fallback: whether agentevals 0.11.0 ignores it.
    """

    name: str
    id: str | None
    arguments: Json
    is_fallback: bool = False


class ToolResponsePart(Struct, frozen=True, kw_only=True):
    """A tool's response, as the model received it; ``failed`` is None if that is not recorded."""

    name: str | None
    id: str | None
    value: Json
    failed: bool | None = None


class MessageContent(Struct, frozen=True, kw_only=True):
    """The content of a message.

    Attributes:
        text: its text parts, joined; None if there are none besides placeholders.
        has_more: whether it has parts of other kinds (reasoning, images).
        only_responds: whether all its parts are tool responses.
        unread: types of parts that may be tool calls or text, and were not understood.
    """

    text: str | None = None
    calls: tuple[ToolCallPart, ...] = ()
    responses: tuple[ToolResponsePart, ...] = ()
    has_more: bool = False
    only_responds: bool = False
    unread: tuple[str, ...] = ()

    @property
    def is_present(self) -> bool:
        """Whether there is any content besides placeholders."""
        return bool(self.text or self.calls or self.responses or self.has_more)


EMPTY_CONTENT: Final = MessageContent()


class SpanMessage(Struct, frozen=True, kw_only=True):
    """One message.

    Attributes:
        fallback: the content in it that agentevals 0.11.0 ignores.
        finish_reason: why the model ended it; empty if that is not recorded.
    """

    role: str
    content: MessageContent
    fallback: MessageContent = EMPTY_CONTENT
    finish_reason: str = ""

    @property
    def is_tool_response(self) -> bool:
        """Whether the message comes from a tool."""
        return self.role == "tool" or self.content.only_responds


SpanMessages: TypeAlias = tuple[SpanMessage, ...]


_TOOL_CALL_REASONS: Final = frozenset({"toolcalls", "toolcall", "tooluse", "functioncall"})


# Limits of tokens and filters, in the words of OpenAI, Anthropic, Gemini, Bedrock and the AI SDK.
_EARLY_END_REASONS: Final = frozenset(
    {
        *("length", "maxtokens", "maxoutputtokens", "modellength", "incomplete"),
        *("modelcontextwindowexceeded", "contentfilter", "contentfiltered", "refusal", "safety"),
        *("guardrailintervened", "recitation", "blocklist", "prohibitedcontent", "spii"),
    }
)


def is_early_end_reason(reason: str) -> bool:
    """Return whether a model ended its output before it was complete, in the words of any API."""
    return reason.lower().replace("_", "").replace("-", "") in _EARLY_END_REASONS


def is_tool_call_reason(reason: Json) -> bool:
    """Return whether a model ended its output to call tools, in the words of any API."""
    return (
        isinstance(reason, str)
        and reason.lower().replace("_", "").replace("-", "") in _TOOL_CALL_REASONS
    )


def has_content(messages: SpanMessages) -> bool:
    """Return whether any message has content that agentevals 0.11.0 reads."""
    for message in messages:  # noqa: SIM110 (called for every span; a generator takes twice as long)
        if message.content.is_present:
            return True
    return False


def has_fallback_content(messages: SpanMessages) -> bool:
    """Return whether any message has content that agentevals 0.11.0 ignores."""
    return any(message.fallback.is_present for message in messages)


def extract_text(messages: SpanMessages) -> str | None:
    """Join the text of the messages; None if there is none."""
    return "".join(message.content.text or "" for message in messages) or None


def extract_fallback_text(messages: SpanMessages) -> str | None:
    """Join the text that agentevals 0.11.0 ignores; None if there is none."""
    return "".join(message.fallback.text or "" for message in messages) or None


def has_unread_parts(messages: SpanMessages) -> bool:
    """Return whether any message has parts that were not understood."""
    return any(find_unread_parts(messages))


def find_unread_parts(messages: SpanMessages) -> Iterator[str]:
    """Iterate over the types of parts that were not understood."""
    for message in messages:
        yield from message.content.unread
        yield from message.fallback.unread


def extract_tool_calls(messages: SpanMessages) -> Iterator[ToolCallPart]:
    """Iterate over the tool calls in the messages."""
    for message in messages:
        own = message.content.calls
        yield from own
        for call in message.fallback.calls:
            # One message may hold the same call in both forms.
            if not any(_are_same_call(call, one) for one in own):
                yield call


def _are_same_call(one: ToolCallPart, other: ToolCallPart) -> bool:
    if one.id is not None and other.id is not None:
        return one.id == other.id
    return one.name == other.name


def extract_tool_responses(messages: SpanMessages) -> Iterator[ToolResponsePart]:
    """Iterate over the tool responses in the messages."""
    for message in messages:
        yield from message.content.responses or message.fallback.responses


def find_last_user_messages(messages: SpanMessages) -> SpanMessages:
    """Return the last consecutive user messages with text.

    LangChain's role ``human`` is read if there are none.
    """
    return _find_last_consecutive(messages, _make_role_filter(USER_ROLE)) or _find_last_consecutive(
        messages, _make_role_filter(LANGCHAIN_USER_ROLE)
    )


def find_fallback_question(messages: SpanMessages) -> str | None:
    """Return the user's last question if agentevals 0.11.0 ignores it, else None."""
    return extract_fallback_text(_find_last_consecutive(messages, _is_fallback_question))


def _make_role_filter(role: str) -> Callable[[SpanMessage], bool]:
    return lambda message: message.role == role and message.content.text is not None


def _is_fallback_question(message: SpanMessage) -> bool:
    return message.role in (USER_ROLE, LANGCHAIN_USER_ROLE) and message.fallback.text is not None


def _find_last_consecutive(
    messages: SpanMessages, matches: Callable[[SpanMessage], bool]
) -> SpanMessages:
    rest = dropwhile(lambda message: not matches(message), reversed(messages))
    return tuple(takewhile(matches, rest))[::-1]


def convert_google_message(content: JsonObject, default_role: str) -> JsonObject:
    """Convert a Google content to a message.

    The role ``model`` becomes ``assistant``; a content of only function responses gets the role
    ``tool``.
    """
    converted = convert_google_parts(content.get("parts"))
    role = content.get("role") or default_role
    if converted and all(part["type"] == "tool_call_response" for part in converted):
        role = "tool"
    return {"role": "assistant" if role == "model" else role, "parts": converted}


def convert_google_parts(raw: Json) -> list[JsonObject]:
    """Convert the parts of a Google content."""
    return [part for item in iterate_objects(raw) for part in normalize_part(item)]


PLACEHOLDERS: Final = frozenset({"", "<REDACTED>", "<elided>", "__REDACTED__"})


def parse_content(parts: Sequence[JsonObject]) -> MessageContent:
    """Parse normalized parts."""
    texts: list[str] = []
    calls: list[ToolCallPart] = []
    responses: list[ToolResponsePart] = []
    unread: list[str] = []
    has_more = False
    for part in parts:
        kind = part["type"]
        if kind == TEXT:
            texts.append(_clean_text(part["content"]))
        elif kind == TOOL_CALL and isinstance(name := part.get("name"), str) and name:
            calls.append(_parse_tool_call(name, part))
        elif kind == TOOL_RESPONSE:
            responses.append(_parse_tool_response(part))
        elif kind == OTHER:
            has_more = True
        else:
            unread.append(str(part.get("name") or f"{kind} without a name"))
    return MessageContent(
        text="".join(texts) or None,
        calls=tuple(calls),
        responses=tuple(responses),
        has_more=has_more,
        only_responds=0 < len(responses) == len(parts),
        unread=tuple(unread),
    )


def parse_parts(content: Json) -> list[JsonObject]:
    """Convert a ``content`` to parts: text, a list, or Google's object."""
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        return convert_google_parts(content["parts"])
    if isinstance(content, list):
        return [part for item in content for part in normalize_part(item)]
    return [] if content is None else [make_text_part(content)]


def _clean_text(content: Json) -> str:
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    return "" if text.strip() in PLACEHOLDERS else text


def _parse_tool_call(name: str, part: JsonObject) -> ToolCallPart:
    arguments = part.get("arguments")
    if isinstance(arguments, str):
        arguments = parse_argument_text(arguments)
    return ToolCallPart(name=name, id=_parse_identifier(part.get("id")), arguments=arguments)


def _parse_tool_response(part: JsonObject) -> ToolResponsePart:
    # Pydantic AI names it `result`.
    value = part.get("response", part.get("result"))
    return ToolResponsePart(
        name=_parse_identifier(part.get("name")),
        id=_parse_identifier(part.get("id")),
        value=parse_value(value),
        failed=failed if isinstance(failed := part.get("is_error"), bool) else None,
    )


def _parse_identifier(raw: Json) -> str | None:
    return str(raw) if isinstance(raw, str | int) and raw else None


MAX_MESSAGES_CHARS: Final = 4 * 1024 * 1024


def exceeds_messages_limit(raw: Json) -> bool:
    """Return whether a text is longer than the limit of agentevals 0.11.0."""
    return isinstance(raw, str) and len(raw) > MAX_MESSAGES_CHARS


def parse_messages(raw: Json) -> SpanMessages:
    """Parse the messages of an attribute: JSON text, a list or a single object."""
    if raw is None or exceeds_messages_limit(raw):
        return ()
    if isinstance(raw, str):
        try:
            raw = parse_nested_json(raw)
        except ValueError:
            return ()
    return tuple(map(_parse_message, iterate_objects([raw] if isinstance(raw, dict) else raw)))


def _parse_message(raw: JsonObject) -> SpanMessage:
    parts, role = raw.get("parts"), raw.get("role")
    listed = parse_parts(parts if isinstance(parts, list) else raw.get("content"))
    return SpanMessage(
        role=role if isinstance(role, str) and role else "user",
        content=parse_content(listed),
        fallback=_parse_fallback(raw),
        finish_reason=reason if isinstance(reason := raw.get("finish_reason"), str) else "",
    )


def _parse_fallback(raw: JsonObject) -> MessageContent:
    """Parse the content that agentevals 0.11.0 keeps but never reads."""
    if "tool_calls" in raw:
        found = parse_content(normalize_tool_calls(raw["tool_calls"]))
        return replace(found, calls=tuple(replace(call, is_fallback=True) for call in found.calls))
    if raw.get("role") == "tool" and raw.get("tool_call_id"):
        answer = parse_content(parse_parts(raw.get("content"))).text
        return parse_content([make_response_part(raw["tool_call_id"], raw.get("name"), answer)])
    return EMPTY_CONTENT
