"""Google's Gemini API: ``generateContent`` and ``streamGenerateContent``."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeGuard

from agentci.model.values import Json, JsonObject
from agentci.record.apis.model_api import (
    ModelReply,
    ModelRequest,
    TokenCounts,
    format_event,
    get_count,
    get_object,
    get_objects,
    make_reply,
    parse_each_message,
)

name: Final = "Gemini generateContent"
provider: Final = "gcp.gemini"
_PATH: Final = re.compile(r".*/models/([^/:]+):(generateContent|streamGenerateContent)")


def matches(path: str) -> bool:
    """Whether a POST to ``path`` asks a model through this API."""
    return _PATH.fullmatch(path) is not None


def read_request(body: JsonObject, path: str) -> ModelRequest:
    """Read the body of a request; the path names the model."""
    found = _PATH.fullmatch(path)
    return ModelRequest(
        model=found[1] if found else "",
        messages=parse_each_message(_add_roles(body.get("contents")), "user"),
        streamed=found is not None and found[2].startswith("stream"),
    )


def _add_roles(contents: Json) -> Json:
    """Add the role to contents that lack it, which the API takes for the user's."""
    listed = contents if isinstance(contents, list) else [contents]
    return [{"role": "user", **one} if isinstance(one, Mapping) else one for one in listed]


def read_reply(body: JsonObject) -> ModelReply:
    """Read the body of a response; of several candidates, the first."""
    candidates, usage = get_objects(body, "candidates")[:1], get_object(body, "usageMetadata")
    renamed = {"id": body.get("responseId"), "model": body.get("modelVersion")}
    answered, thought = (
        get_count(usage, "candidatesTokenCount"),
        get_count(usage, "thoughtsTokenCount"),
    )
    return make_reply(
        renamed,
        parse_each_message([get_object(one, "content") for one in candidates], "assistant"),
        (one.get("finishReason") for one in candidates),
        TokenCounts(
            input=get_count(usage, "promptTokenCount"),
            output=None if answered is None else answered + (thought or 0),
            cache_read=get_count(usage, "cachedContentTokenCount"),
        ),
    )


def merge_events(events: Sequence[JsonObject]) -> JsonObject:
    """Make the body of a response from the parts of a stream."""
    body: dict[str, Json] = {}
    candidate: dict[str, Json] = {}
    parts: list[JsonObject] = []
    for event in events:
        body |= event
        for one in get_objects(event, "candidates")[:1]:
            candidate |= one
            for part in get_objects(get_object(one, "content"), "parts"):
                _add_part(parts, part)
    merged: list[Json] = list(parts)
    content = {"role": "model", **get_object(candidate, "content"), "parts": merged}
    return {**body, "candidates": [{**candidate, "content": content}]}


def _add_part(parts: list[JsonObject], part: JsonObject) -> None:
    """Append a part, or only its text if the last part is equal otherwise."""
    last = parts[-1] if parts else {}
    text, last_text = part.get("text"), last.get("text")
    if isinstance(text, str) and isinstance(last_text, str) and {**last, "text": text} == part:
        parts[-1] = {**last, "text": last_text + text}
    else:
        parts.append(part)


def join_contents(contents: Sequence[Json]) -> list[Json]:
    """Join consecutive contents of one role: clients keep each part of a stream."""
    joined: list[Json] = []
    for content in contents:
        last = joined[-1] if joined else None
        if _has_parts(last) and _has_parts(content) and last.get("role") == content.get("role"):
            parts = get_objects(last, "parts")
            for part in get_objects(content, "parts"):
                _add_part(parts, part)
            listed: list[Json] = [*parts]
            joined[-1] = {**last, "parts": listed}
        else:
            joined.append(content)
    return joined


def _has_parts(content: Json) -> TypeGuard[JsonObject]:
    return isinstance(content, Mapping) and isinstance(content.get("parts"), list)


def make_events(body: JsonObject) -> Iterator[JsonObject]:
    """Make the parts of a stream from the body of a response."""
    yield body


def format_events(events: Iterable[JsonObject]) -> str:
    """Format parts as the service sends them with ``alt=sse``."""
    return "".join(format_event(event, named=False) for event in events)


def make_error(message: str) -> JsonObject:
    """Make the body of an error response."""
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
