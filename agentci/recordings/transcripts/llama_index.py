"""Messages of LlamaIndex: lists, chat stores, memories and the contexts of workflows."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import iterate_objects, parse_json_or_text
from agentci.recordings.telemetry.messages import TOOL_CALL, normalize_tool_calls
from agentci.recordings.trace_format import DocumentFormatError
from agentci.recordings.transcripts.openai_chat import describe_role
from agentci.recordings.transcripts.turn_builder import MessageListBuilder
from agentci.recordings.transcripts.unread import looks_like_call
from agentci.recordings.transcripts.values import as_object, as_text, join_text

_ANSWER_ROLES: Final = ("assistant", "chatbot", "model")
_RESULT_ROLES: Final = ("tool", "function")
_SILENT_ROLES: Final = ("system", "developer")
_ROLES: Final = ("user", *_ANSWER_ROLES, *_RESULT_ROLES, *_SILENT_ROLES)
_CALL_BLOCK: Final = "tool_call"
_SILENT_BLOCKS: Final = (
    *("text", "image", "audio", "video", "document", "thinking", "cache", "citable", "citation"),
)
# What the ReAct agent keeps of a run: its steps, as one text.
_REACT_STEP: Final = re.compile(r"^Action: .+\nAction Input: ", re.MULTILINE)


def is_marked(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    return (
        message.get("role") in _ROLES
        and isinstance(message.get("additional_kwargs"), dict)
        and "type" not in message
        and (isinstance(message.get("blocks"), list) or "content" in message)
    )


def find_message_lists(document: JsonObject) -> Iterator[Sequence[Json]]:
    """Yield the conversations of a chat store, of a memory with one, or of a workflow's context."""
    for fields in (document, *_find_memories(document)):
        stored = as_object(fields.get("chat_store")) or fields
        for messages in as_object(stored.get("store")).values():
            if isinstance(messages, list):
                yield messages


def _find_state(document: JsonObject) -> JsonObject:
    """Return the values that a context keeps for its steps, which are JSON texts."""
    state = as_object(as_object(document.get("state")).get("state_data")).get("_data")
    return as_object(state) or as_object(document.get("globals"))


def _find_memories(document: JsonObject) -> Iterator[JsonObject]:
    memory = _find_state(document).get("memory")
    value = as_object(parse_json_or_text(memory) if isinstance(memory, str) else memory)
    yield as_object(value.get("value"))


def add_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    role = message.get("role")
    content = message.get("blocks", message.get("content"))
    extra = as_object(message.get("additional_kwargs"))
    if role == "user":
        run.add_question(content)
    elif role in _ANSWER_ROLES:
        _add_answer(run, content, extra)
    elif role in _RESULT_ROLES:
        name = as_text(extra.get("name"))
        run.turns.add_result(extra.get("tool_call_id"), join_text(content), name=name)
    elif role not in _SILENT_ROLES:
        raise DocumentFormatError(f"a message has {describe_role(role)}")


def _add_answer(run: MessageListBuilder, content: Json, extra: JsonObject) -> None:
    run.turns.start_step()
    text = join_text(content)
    if _REACT_STEP.search(text or ""):
        raise DocumentFormatError(
            "the steps of LlamaIndex's ReAct agent are text, which is not read; record with OTLP"
        )
    run.turns.add_text(text)
    blocks = list(iterate_objects(content))
    calls = [block for block in blocks if block.get("block_type") == _CALL_BLOCK]
    for block in blocks:
        kind = block.get("block_type")
        if kind not in (*_SILENT_BLOCKS, _CALL_BLOCK) and looks_like_call(kind):
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
