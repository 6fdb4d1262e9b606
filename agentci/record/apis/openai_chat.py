"""OpenAI's Chat Completions, which many other services offer as well."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.record.apis.model_api import (
    DONE,
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

name: Final = "Chat Completions"
provider: Final = "openai"
_TEXTS: Final = ("content", "refusal", "reasoning_content")


def matches(path: str) -> bool:
    """Whether a POST to ``path`` asks a model through this API."""
    return path.endswith("/chat/completions")


def read_request(body: JsonObject, path: str) -> ModelRequest:
    """Read the body of a request."""
    del path
    return ModelRequest(
        model=get_text(body, "model"),
        messages=parse_each_message(body.get("messages"), "user"),
        streamed=body.get("stream") is True,
    )


def read_reply(body: JsonObject) -> ModelReply:
    """Read the body of a response; of several choices, the first."""
    choices = get_objects(body, "choices")[:1]
    usage = get_object(body, "usage")
    return make_reply(
        body,
        parse_each_message([get_object(choice, "message") for choice in choices], "assistant"),
        (choice.get("finish_reason") for choice in choices),
        TokenCounts(
            input=get_count(usage, "prompt_tokens"),
            output=get_count(usage, "completion_tokens"),
            cache_read=get_count(get_object(usage, "prompt_tokens_details"), "cached_tokens"),
        ),
    )


def merge_events(events: Sequence[JsonObject]) -> JsonObject:
    """Make the body of a response from the chunks of a stream."""
    head: dict[str, Json] = {}
    choices: dict[int, dict[str, Json]] = {}
    for event in events:
        head |= {key: value for key, value in event.items() if key != "choices" and value}
        for choice in get_objects(event, "choices"):
            index = get_count(choice, "index") or 0
            merged = choices.setdefault(index, {"index": index, "message": {"role": "assistant"}})
            merged["message"] = _merge_delta(get_object(merged, "message"), choice)
            if choice.get("finish_reason"):
                merged["finish_reason"] = choice["finish_reason"]
    listed: list[Json] = [_finish_choice(choices[index]) for index in sorted(choices)]
    return {**head, "object": "chat.completion", "choices": listed}


def _merge_delta(message: JsonObject, choice: JsonObject) -> JsonObject:
    delta = get_object(choice, "delta")
    merged = {"content": None, **message}
    for key in _TEXTS:
        if get_text(delta, key):
            merged[key] = get_text(merged, key) + get_text(delta, key)
    if function := get_object(delta, "function_call"):
        merged["function_call"] = _merge_function(get_object(merged, "function_call"), function)
    if added := get_objects(delta, "tool_calls"):
        merged["tool_calls"] = _merge_calls(get_objects(merged, "tool_calls"), added)
    return merged


def _merge_calls(calls: Sequence[JsonObject], added: Iterable[JsonObject]) -> list[Json]:
    """Merge parts of tool calls; a part without index and id continues the last call."""
    merged = list(calls)
    for delta in added:
        given, name = get_count(delta, "index"), get_text(delta, "id")
        last = len(merged) - 1 if merged and not name else len(merged)
        found = (i for i, call in enumerate(merged) if get_count(call, "index") == given)
        place = last if given is None else next(found, len(merged))
        old = merged[place] if place < len(merged) else {}
        merged[place : place + 1] = [
            {
                "index": get_count(old, "index") if given is None else given,
                "id": name or get_text(old, "id"),
                "type": "function",
                "function": _merge_function(
                    get_object(old, "function"), get_object(delta, "function")
                ),
            }
        ]
    return list(merged)


def _finish_choice(choice: JsonObject) -> JsonObject:
    """Sort the tool calls of a choice, and remove their indexes."""
    message = get_object(choice, "message")
    calls = get_objects(message, "tool_calls")
    if not calls:
        return choice
    ordered = sorted(calls, key=lambda call: get_count(call, "index") or 0)
    listed = [{k: v for k, v in call.items() if k != "index"} for call in ordered]
    return {**choice, "message": {**message, "tool_calls": listed}}


def _merge_function(old: JsonObject, delta: JsonObject) -> JsonObject:
    return {
        "name": get_text(old, "name") or get_text(delta, "name"),
        "arguments": get_text(old, "arguments") + get_text(delta, "arguments"),
    }


def make_events(body: JsonObject) -> Iterator[JsonObject]:
    """Make the chunks of a stream from the body of a response."""
    head = {key: value for key, value in body.items() if key not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    for choice in get_objects(body, "choices"):
        message, index = get_object(choice, "message"), choice.get("index", 0)
        deltas = [{k: v for k, v in message.items() if v is not None and k != "tool_calls"}]
        # One call in each chunk, as services send them: LlamaIndex reads only the first.
        for number, call in enumerate(get_objects(message, "tool_calls")):
            deltas.append({"tool_calls": [{"index": number, **call}]})
        for delta in deltas:
            yield {**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]}
        reason = choice.get("finish_reason")
        yield {**head, "choices": [{"index": index, "delta": {}, "finish_reason": reason}]}
    if body.get("usage"):
        yield {**head, "choices": [], "usage": body["usage"]}


def format_events(events: Iterable[JsonObject]) -> str:
    """Format chunks as the service sends them."""
    return "".join(format_event(event, named=False) for event in events) + f"data: {DONE}\n\n"


def make_error(message: str) -> JsonObject:
    """Make the body of an error response."""
    return {"error": {"message": message, "type": "agentci_record", "code": None, "param": None}}
