"""Exchanges with a model API: what was sent and received, and what it means."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from agentci.model.json import JsonObject
from agentci.record.apis import openai_responses
from agentci.record.apis.model_api import (
    ModelApi,
    ModelReply,
    ModelRequest,
    get_objects,
    get_text,
    parse_body,
    read_events,
)
from agentci.record.message_forms import convert_reply, convert_request
from agentci.recordings.telemetry.json_input import parse_json_or_text

FIRST_ERROR: Final = 400
MAX_UNPACKED_BYTES: Final = 64 * 1024**2
_EVENT_STREAM: Final = "text/event-stream"
_FAILED: Final = "failed"
_RUNNING: Final = frozenset({"in_progress", "queued"})
_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class RawExchange(Struct, frozen=True, kw_only=True):
    """One request to a model API and its response, as received.

    Attributes:
        case: id of the case that it belongs to; empty without cases.
        trace: id of the trace that it belongs to; empty if the client named none.
        path: of the API, without the proxy's own beginning and without the query.
        status: HTTP status; 0 if there was no response.
        content_type, encoding: headers of the response.
        started, answered, ended: nanoseconds since 1970: of the request, of the first byte of the
            response and of its last.
        finished: whether the whole response arrived.
    """

    case: str
    api: ModelApi
    method: str
    path: str
    request: bytes
    response: bytes
    status: int
    content_type: str
    encoding: str
    started: int
    answered: int
    ended: int
    finished: bool
    trace: str = ""


class Exchange(Struct, frozen=True, kw_only=True):
    """A model call: the request and the reply.

    Attributes:
        body: of the request.
        response: body of the response, also of a stream; empty if it failed.
        failed: whether there is no complete reply.
        trace: as in ``RawExchange``.
        error: message of the service that answered with an error; empty if unknown.
    """

    api: ModelApi
    method: str
    path: str
    body: JsonObject
    response: JsonObject
    request: ModelRequest
    reply: ModelReply
    started: int
    answered: int
    ended: int
    status: int
    failed: bool
    error: str = ""
    trace: str = ""


def parse_exchanges(found: Iterable[RawExchange]) -> Iterator[Exchange]:
    """Parse exchanges in their order, without those whose request is not a JSON object.

    Requests may refer to items of earlier responses, which the service keeps.
    """
    items: dict[str, JsonObject] = {}
    for raw in found:
        exchange = parse_exchange(raw, items)
        if exchange is not None:
            outputs = get_objects(exchange.response, "output")
            items |= {get_text(each, "id"): each for each in outputs}
            yield exchange


def parse_exchange(raw: RawExchange, items: Mapping[str, JsonObject]) -> Exchange | None:
    """Parse an exchange; None if its request is not a JSON object.

    Args:
        items: of earlier responses, by id.
    """
    body = parse_body(raw.request) if raw.request else {}
    if body is None:
        return None
    response = _parse_response(raw)
    succeeded = 0 < raw.status < FIRST_ERROR
    reply = convert_reply(raw.api.read_reply(response)) if succeeded else ModelReply()
    asked = openai_responses.resolve_references(body, items)
    return Exchange(
        api=raw.api,
        method=raw.method,
        path=raw.path,
        body=body,
        response=response if succeeded else {},
        request=convert_request(raw.api.read_request(asked, raw.path)),
        reply=reply,
        started=raw.started,
        answered=raw.answered,
        ended=raw.ended,
        status=raw.status,
        trace=raw.trace,
        failed=not (succeeded and _is_complete(reply, response, finished=raw.finished)),
        error="" if succeeded else _find_error(response),
    )


def _parse_response(raw: RawExchange) -> JsonObject:
    """Return the response's body, also of a stream; empty if it cannot be read."""
    content = decompress(raw.response, raw.encoding)
    text = content.decode("utf-8", "replace")
    if raw.content_type.partition(";")[0].strip().lower() == _EVENT_STREAM:
        return raw.api.merge_events(read_events(text))
    value = parse_json_or_text(text)
    if isinstance(value, list):  # a stream of Gemini without `alt=sse`
        return raw.api.merge_events([each for each in value if isinstance(each, dict)])
    return value if isinstance(value, dict) else {}


def _is_complete(reply: ModelReply, response: JsonObject, *, finished: bool) -> bool:
    """Whether a reply is whole: clients may stop reading at the last event of a stream."""
    reasons = set(reply.finish_reasons)
    if _FAILED in reasons or not response:
        return False
    return finished or not reasons <= _RUNNING


def decompress(content: bytes, encoding: str) -> bytes:
    """Decompress a body as far as it arrived, up to a limit; unknown encodings stay as they are."""
    bits = _WINDOW_BITS.get(encoding.strip().lower())
    if bits is None:
        return content
    try:
        return zlib.decompressobj(bits).decompress(content, MAX_UNPACKED_BYTES)
    except zlib.error:
        return b""


def _find_error(response: JsonObject) -> str:
    error = response.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""
