"""Normalizes the parts of messages: those of the GenAI conventions, of model APIs and frameworks.

The normalized types are ``text``, ``tool_call``, ``tool_call_response``, ``other`` for what is
neither of them, such as images, and ``unknown`` for a part that may be either.
"""

from collections.abc import Iterator
from typing import Final

from agentci.model.json import Json, JsonObject
from agentci.recordings.telemetry.json_input import parse_json_or_text

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
        *("content", "text", "refusal"),
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
        yield from _normalize_keyed_part(part) or _normalize_typed_part(part)


def _normalize_keyed_part(part: JsonObject) -> list[JsonObject]:
    """Normalize a part of Bedrock or Google, whose only key says what it is."""
    call = get_first(part, "toolUse", "functionCall", "function_call")
    if isinstance(call, dict):
        # Google leaves out arguments of functions without parameters.
        arguments = get_first(call, "input", "args")
        arguments = {} if arguments is None and "toolUse" not in part else arguments
        return [make_call_part(get_first(call, "toolUseId", "id"), call.get("name"), arguments)]
    answer = get_first(part, "toolResult", "functionResponse", "function_response")
    if isinstance(answer, dict):
        value = flatten_content(get_first(answer, "content", "response"))
        call_id, failed = get_first(answer, "toolUseId", "id"), read_tool_status(answer)
        return [make_response_part(call_id, answer.get("name"), value, failed=failed)]
    code = get_first(part, "executableCode", "executable_code")
    if isinstance(code, dict):
        return [make_call_part(code.get("id"), "code_execution", code)]
    result = get_first(part, "codeExecutionResult", "code_execution_result")
    if isinstance(result, dict):
        return [make_response_part(result.get("id"), "code_execution", result.get("output"))]
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
    return next((fields[key] for key in keys if fields.get(key) is not None), None)
