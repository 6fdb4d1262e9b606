"""Messages of Haystack (``ChatMessage.to_dict()``), in all its serialized forms."""

from collections.abc import Mapping
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.trace_format import DocumentFormatError
from agentci.recordings.transcripts.openai_chat import describe_role
from agentci.recordings.transcripts.turn_builder import MessageListBuilder
from agentci.recordings.transcripts.unread import check_finish_reason
from agentci.recordings.transcripts.values import (
    as_object,
    as_text,
    find_text,
    iterate_texts,
    make_step,
)

_SILENT_ROLES: Final = ("system", "developer")
_CALL: Final = "tool_call"
_RESULT: Final = "tool_call_result"
_SILENT_PARTS: Final = ("image", "reasoning", "file", "base64_image", "reasoning_text")


def is_marked(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    if "_role" in message and isinstance(message.get("_content"), list):
        return True
    parts = list(iterate_objects(message.get("content")))
    if any(isinstance(part.get(key), dict) for part in parts for key in (_CALL, _RESULT)):
        return "role" in message
    # Without calls, parts have no type, as Bedrock's, but the message has what only Haystack adds.
    return {"role", "meta", "name"} <= message.keys() and not any("type" in part for part in parts)


def add_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    role = message.get("role", message.get("_role"))
    content = message.get("content", message.get("_content"))
    parts = list(iterate_objects([{"text": content}] if isinstance(content, str) else content))
    if role == "user":
        run.add_question([text for part in parts for text in iterate_texts(part)])
    elif role == "assistant":
        _add_answer(run, parts, as_object(message.get("meta", message.get("_meta"))))
    elif role == "tool":
        for part in parts:
            _add_result(run, part)
    elif role not in _SILENT_ROLES:
        raise DocumentFormatError(f"a message has {describe_role(role)}")


def _add_answer(run: MessageListBuilder, parts: list[JsonObject], meta: JsonObject) -> None:
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
        if call := _find_call(part):
            run.turns.add_call(find_text(call, "tool_name"), call.get("arguments"), call.get("id"))
        elif "text" not in part and not any(key in part for key in _SILENT_PARTS):
            keys = ", ".join(f"`{key[:40]}`" for key in [*part][:4])
            raise DocumentFormatError(f"a part with {keys} is not read")
    if not run.turns.call_names:
        check_finish_reason(meta)


def _find_call(part: JsonObject) -> JsonObject:
    """Return a tool call, which ``dataclasses.asdict`` writes without a key around it."""
    return part if "tool_name" in part and "arguments" in part else as_object(part.get(_CALL))


def _add_result(run: MessageListBuilder, part: Mapping[str, Json]) -> None:
    result = part if "origin" in part else as_object(part.get(_RESULT))
    origin = as_object(result.get("origin"))
    flag = result.get("error")
    failed = flag if isinstance(flag, bool) else None
    if not result:
        raise DocumentFormatError("a message with the role `tool` holds no `tool_call_result`")
    name = as_text(origin.get("tool_name"))
    run.turns.add_result(origin.get("id"), result.get("result"), failed=failed, name=name)
