"""Messages of Vercel's AI SDK: ``UIMessage`` and ``ModelMessage``."""

from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.trace_format import DocumentFormatError
from agentci.recordings.transcripts.openai_chat import add_calls, describe_role
from agentci.recordings.transcripts.turn_builder import MessageListBuilder, TurnBuilder
from agentci.recordings.transcripts.values import as_object, as_text, join_text

_TOOL_PREFIX: Final = "tool-"
_FAILED_STATES: Final = ("output-error", "output-denied")
_SILENT_PARTS: Final = (
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
            if kind not in _SILENT_PARTS and not str(kind).startswith("data-"):
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
