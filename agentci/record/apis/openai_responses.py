"""OpenAI's Responses API."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from agentci.model.values import Json, JsonObject, replace
from agentci.record.apis import openai_chat
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

name: Final = "Responses"
provider: Final = "openai"
# Calls that the client answers; the service itself runs other tools.
_CLIENT_CALLS: Final = ("function_call", "custom_tool_call")
_CLIENT_RESULTS: Final = ("function_call_output", "custom_tool_call_output")
_HOSTED_CALL: Final = re.compile(r"(?P<tool>[a-z_]+)_call")
# Fields of calls of hosted tools that are not arguments.
_CALL_FIELDS: Final = frozenset({"type", "id", "call_id", "status", "output", "results", "error"})
_REFERENCE_FIELDS: Final = frozenset({"type", "id"})
_FINAL_EVENTS: Final = ("response.completed", "response.incomplete", "response.failed")


def matches(path: str) -> bool:
    """Whether a POST to ``path`` asks a model through this API."""
    return path.endswith("/responses")


def read_request(body: JsonObject, path: str) -> ModelRequest:
    """Read the body of a request."""
    del path
    given = body.get("input")
    conversation = body.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    items = [_convert_item(item) for item in given] if isinstance(given, list) else given
    return ModelRequest(
        model=get_text(body, "model"),
        messages=parse_each_message(items, "user"),
        streamed=body.get("stream") is True,
        previous=get_text(body, "previous_response_id") or None,
        conversation=conversation if isinstance(conversation, str) else None,
    )


def resolve_references(body: JsonObject, items: Mapping[str, JsonObject]) -> JsonObject:
    """Return a request with the items of earlier responses that it names by their ids."""
    given = body.get("input")
    if not isinstance(given, list) or not items:
        return body
    return {**body, "input": [_resolve(each, items) for each in given]}


def _resolve(item: Json, items: Mapping[str, JsonObject]) -> Json:
    if not isinstance(item, Mapping) or not item.keys() <= _REFERENCE_FIELDS:
        return item
    return items.get(get_text(item, "id"), item)


def read_reply(body: JsonObject) -> ModelReply:
    """Read the body of a response."""
    items, usage = get_objects(body, "output"), get_object(body, "usage")
    own = [_convert_item(item) for item in items if item.get("type") in _CLIENT_CALLS]
    details = get_object(usage, "input_tokens_details")
    reply = make_reply(
        body,
        parse_each_message([_convert_item(item) for item in items], "assistant"),
        (get_text(get_object(body, "incomplete_details"), "reason") or body.get("status"),),
        TokenCounts(
            input=get_count(usage, "input_tokens"),
            output=get_count(usage, "output_tokens"),
            cache_read=get_count(details, "cached_tokens"),
        ),
    )
    return replace(reply, calls=tuple(extract_tool_calls(parse_each_message(own, "assistant"))))


def _convert_item(item: Json) -> Json:
    """Convert calls of custom and hosted tools, and results, to those of functions."""
    if not isinstance(item, Mapping):
        return item
    kind = get_text(item, "type")
    converted: Json = item
    if kind == "reasoning":
        converted = None  # it has no role
    elif kind == "custom_tool_call":
        given = parse_json_or_text(get_text(item, "input"))
        arguments = given if isinstance(given, dict) else {"input": given}
        converted = {**item, "type": "function_call", "arguments": arguments}
    elif kind in _CLIENT_RESULTS:
        converted = {**item, "type": "function_call_output"}
    elif kind == "mcp_call":
        converted = {**item, "type": "function_call", "call_id": item.get("id")}
    elif kind != "function_call" and (found := _HOSTED_CALL.fullmatch(kind)):
        converted = _convert_hosted_call(item, found["tool"])
    return converted


def _convert_hosted_call(item: JsonObject, tool: str) -> JsonObject:
    fields: Json = {key: each for key, each in item.items() if key not in _CALL_FIELDS and each}
    return {
        "type": "function_call",
        "call_id": item.get("call_id") or item.get("id"),
        "name": tool,
        "arguments": item.get("action") or fields,
    }


def merge_events(events: Sequence[JsonObject]) -> JsonObject:
    """Make the body of a response from the events of a stream."""
    response: JsonObject = {}
    items: list[Json] = []
    for event in events:
        if event.get("type") in _FINAL_EVENTS and get_object(event, "response"):
            return get_object(event, "response")
        response = get_object(event, "response") or response
        if event.get("type") == "response.output_item.done":
            items.append(event.get("item"))
    return {**response, "output": items}


def make_events(body: JsonObject) -> Iterator[JsonObject]:
    """Make the events of a stream from the body of a response."""
    started = {**body, "status": "in_progress", "output": [], "usage": None}
    events: list[JsonObject] = [
        {"type": "response.created", "response": started},
        {"type": "response.in_progress", "response": started},
        *(
            event
            for index, item in enumerate(get_objects(body, "output"))
            for event in _make_item_events(item, index)
        ),
        {"type": f"response.{get_text(body, 'status') or 'completed'}", "response": body},
    ]
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


def _make_item_events(item: JsonObject, index: int) -> Iterator[JsonObject]:
    place: JsonObject = {"output_index": index, "item_id": item.get("id")}
    empty = {
        key: [] if key == "content" else "" if key == "arguments" else value
        for key, value in item.items()
    }
    added = {**empty, "status": "in_progress"} if "status" in item else empty
    yield {"type": "response.output_item.added", "output_index": index, "item": added}
    if item.get("type") == "function_call":
        arguments = item.get("arguments")
        yield {"type": "response.function_call_arguments.delta", "delta": arguments, **place}
        done = {"name": item.get("name"), "arguments": arguments}
        yield {"type": "response.function_call_arguments.done", **done, **place}
    for number, part in enumerate(get_objects(item, "content")):
        yield from _make_part_events(part, {**place, "content_index": number})
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _make_part_events(part: JsonObject, place: JsonObject) -> Iterator[JsonObject]:
    kind = get_text(part, "type")
    field = "refusal" if kind == "refusal" else "text"
    yield {"type": "response.content_part.added", "part": {**part, field: ""}, **place}
    if kind in ("output_text", "refusal"):
        extra: JsonObject = {"logprobs": []} if kind == "output_text" else {}
        text = part.get(field)
        yield {"type": f"response.{kind}.delta", "delta": text, **extra, **place}
        yield {"type": f"response.{kind}.done", field: text, **extra, **place}
    yield {"type": "response.content_part.done", "part": part, **place}


def format_events(events: Iterable[JsonObject]) -> str:
    """Format events as the service sends them."""
    return "".join(format_event(event, named=True) for event in events)


def make_error(message: str) -> JsonObject:
    """Make the body of an error response."""
    return openai_chat.make_error(message)
