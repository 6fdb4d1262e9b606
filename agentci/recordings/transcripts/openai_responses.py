"""Items of OpenAI's Responses API: stored responses, the Agents SDK's lists, and Codex."""

import re
from collections.abc import Iterator
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.trace_format import DocumentFormatError
from agentci.recordings.transcripts.openai_chat import add_calls, describe_role
from agentci.recordings.transcripts.turn_builder import MessageListBuilder, TurnBuilder
from agentci.recordings.transcripts.unread import looks_like_call
from agentci.recordings.transcripts.values import as_object, as_text, make_step

_MARKS: Final = frozenset(
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
_SILENT_ROLES: Final = ("system", "developer")
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


def is_marked(item: JsonObject) -> bool:
    """Return whether an item can only be of this format."""
    kind = item.get("type")
    if not isinstance(kind, str):
        return False
    return kind in _MARKS or (
        kind == "message"
        and any(
            part.get("type") in ("output_text", "input_text")
            for part in iterate_objects(item.get("content"))
        )
    )


def add_message(run: MessageListBuilder, item: JsonObject) -> None:
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
    elif role not in _SILENT_ROLES:
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
    elif kind not in _MARKS and isinstance(item.get("name"), str):
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
        add_message(run, item)
    run.add_model(response.get("model"))
    run.usage.add(None, *tokens)
