"""Messages of pydantic-ai (``all_messages_json()``)."""

from typing import Final

from agentci._util.text.json_text import dumps_readable
from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.trace_format import DocumentFormatError
from agentci.recordings.transcripts.turn_builder import MessageListBuilder
from agentci.recordings.transcripts.values import (
    as_object,
    as_text,
    make_step,
    parse_arguments,
    parse_cost,
)

_SILENT_PARTS: Final = ("text", "thinking", "file", "image", "compaction")
OUTPUT_TOOL: Final = "final_result"


def is_marked(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    return message.get("kind") in ("request", "response") and isinstance(message.get("parts"), list)


def add_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message."""
    if message.get("kind") == "request":
        for part in iterate_objects(message.get("parts")):
            _add_request_part(run, part)
    elif message.get("kind") == "response":
        _add_response(run, message)
    else:
        raise DocumentFormatError("a message is neither a `request` nor a `response`")


def _add_request_part(run: MessageListBuilder, part: JsonObject) -> None:
    kind = part.get("part_kind")
    if kind == "user-prompt":
        run.add_question(_read_prompt(part.get("content")))
    elif kind == "tool-return" and not _is_output_tool(part):
        failed = part.get("outcome") in ("failed", "denied")
        run.turns.add_result(part.get("tool_call_id"), part.get("content"), failed=failed)
    elif kind == "retry-prompt" and as_text(part.get("tool_name")) and not _is_output_tool(part):
        run.turns.add_result(part.get("tool_call_id"), part.get("content"), failed=True)


def _read_prompt(content: Json) -> Json:
    """Return the texts of a prompt, whose parts have ``content`` instead of ``text``."""
    if not isinstance(content, list):
        return content
    return [
        part.get("content") if isinstance(part, dict) and part.get("kind") == "text" else part
        for part in content
    ]


def _add_response(run: MessageListBuilder, message: JsonObject) -> None:
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
            _add_call(run, part)
        elif kind == "builtin-tool-return":
            run.turns.add_result(part.get("tool_call_id"), part.get("content"))
        elif kind not in _SILENT_PARTS:
            raise DocumentFormatError(f"a part of kind `{str(kind)[:40]}` is not read")
    run.turns.add_text("\n".join(texts))
    run.add_model(message.get("model_name"))
    run.add_cost(parse_cost(usage.get("cost")))
    run.usage.add(None, *tokens)


def _add_call(run: MessageListBuilder, part: JsonObject) -> None:
    if not _is_output_tool(part):
        run.turns.add_call(part.get("tool_name"), part.get("args"), part.get("tool_call_id"))
        return
    # The answer of an agent with an output type is the arguments of a tool that does not exist.
    run.turns.add_text(dumps_readable(parse_arguments(part.get("args"))))


def _is_output_tool(part: JsonObject) -> bool:
    name = part.get("tool_name")
    is_named = isinstance(name, str) and (name == OUTPUT_TOOL or name.startswith(f"{OUTPUT_TOOL}_"))
    return is_named or part.get("tool_kind") == "output"
