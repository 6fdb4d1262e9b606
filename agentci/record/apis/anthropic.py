"""Anthropic's Messages API."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agentci.model.values import Json, JsonObject, replace
from agentci.record.apis.model_api import (
    ModelReply,
    ModelRequest,
    TokenCounts,
    format_event,
    get_count,
    get_object,
    get_objects,
    get_text,
    make_reply,
    parse_each_message,
)
from agentci.recordings.telemetry.json_input import parse_json_or_text
from agentci.recordings.telemetry.messages import extract_tool_calls

name: Final = "Anthropic Messages"
provider: Final = "anthropic"
# By kind of a delta: its field, and the field of the block that it is appended to.
_DELTAS: Final = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}


def matches(path: str) -> bool:
    """Whether a POST to ``path`` asks a model through this API."""
    return path.endswith("/messages")


def read_request(body: JsonObject, path: str) -> ModelRequest:
    """Read the body of a request."""
    del path
    return ModelRequest(
        model=get_text(body, "model"),
        messages=parse_each_message(body.get("messages"), "user"),
        streamed=body.get("stream") is True,
    )


def read_reply(body: JsonObject) -> ModelReply:
    """Read the body of a response."""
    usage, blocks = get_object(body, "usage"), get_objects(body, "content")
    cached = get_count(usage, "cache_read_input_tokens")
    written = get_count(usage, "cache_creation_input_tokens")
    given = get_count(usage, "input_tokens")
    reply = make_reply(
        body,
        parse_each_message([{"role": "assistant", "content": blocks}], "assistant"),
        (body.get("stop_reason"),),
        TokenCounts(
            # Anthropic counts cached tokens apart, the GenAI conventions as part of the input.
            input=None if given is None else given + (cached or 0) + (written or 0),
            output=get_count(usage, "output_tokens"),
            cache_read=cached,
            cache_write=written,
        ),
    )
    own: list[Json] = [block for block in blocks if block.get("type") == "tool_use"]
    calls = parse_each_message([{"role": "assistant", "content": own}], "assistant")
    return replace(reply, calls=tuple(extract_tool_calls(calls)))


def merge_events(events: Sequence[JsonObject]) -> JsonObject:
    """Make the body of a response from the events of a stream."""
    message: dict[str, Json] = {}
    blocks: dict[int, dict[str, Json]] = {}
    for event in events:
        index = get_count(event, "index") or 0
        delta = get_object(event, "delta")
        match event.get("type"):
            case "message_start":
                message = dict(get_object(event, "message"))
            case "content_block_start":
                blocks[index] = dict(get_object(event, "content_block"))
            case "content_block_delta":
                _add_delta(blocks.setdefault(index, {}), delta)
            case "message_delta":
                usage = {**get_object(message, "usage"), **get_object(event, "usage")}
                message |= {**delta, "usage": usage}
            case _:
                pass
    content: list[Json] = [_finish_block(blocks[index]) for index in sorted(blocks)]
    return {**message, "content": content}


def _add_delta(block: dict[str, Json], delta: JsonObject) -> None:
    names = _DELTAS.get(get_text(delta, "type"))
    if names is not None:
        field, target = names
        block[target] = get_text(block, target) + get_text(delta, field)


def _finish_block(block: JsonObject) -> JsonObject:
    given = block.get("input")
    if not isinstance(given, str):
        return block
    value = parse_json_or_text(given) if given else {}
    return {**block, "input": value}


def make_events(body: JsonObject) -> Iterator[JsonObject]:
    """Make the events of a stream from the body of a response."""
    started = {**body, "content": [], "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": started}
    for index, block in enumerate(get_objects(body, "content")):
        empty, deltas = _split_block(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {key: body.get(key) for key in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": ended, "usage": body.get("usage")}
    yield {"type": "message_stop"}


def _split_block(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """Split a block into its start and the deltas that complete it."""
    empty, deltas = dict(block), list[JsonObject]()
    for kind, (field, target) in _DELTAS.items():
        value = block.get(target)
        if target == "input" and target in block:
            empty[target] = {}
            deltas.append({"type": kind, field: json.dumps(value, ensure_ascii=False)})
        elif isinstance(value, str):
            empty[target] = ""
            deltas.append({"type": kind, field: value})
    return empty, deltas


def format_events(events: Iterable[JsonObject]) -> str:
    """Format events as the service sends them."""
    return "".join(format_event(event, named=True) for event in events)


def make_error(message: str) -> JsonObject:
    """Make the body of an error response."""
    return {"type": "error", "error": {"type": "agentci_record", "message": message}}
