"""Exchanges with a model API: what was sent and received, and what it means.

The log keeps what passes through the proxy, on disk beyond a size; threads share it. Messages of
frameworks are converted to those that the model APIs intend. Two differ: an answer that is the
argument of a tool call (smolagents, Pydantic AI), and tool calls and results that a history repeats
as text (smolagents).
"""

import ast
import json
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from agentci._util.files import SpooledChunks
from agentci._util.text.json_text import decode_strict_json, dumps_readable
from agentci.model.values import Json, JsonObject, replace
from agentci.record.apis import openai_responses, other_requests
from agentci.record.apis.model_api import (
    ModelApi,
    ModelReply,
    ModelRequest,
    get_objects,
    get_text,
    parse_body,
    read_events,
)
from agentci.record.http_server import ServerRequest
from agentci.recordings.telemetry.json_input import parse_json_or_text
from agentci.recordings.telemetry.messages import (
    MessageContent,
    SpanMessage,
    SpanMessages,
    ToolCallPart,
    ToolResponsePart,
)

_ANSWER_TOOL: Final = re.compile(r"final_answer|final_result(_.*)?")
_ANSWER: Final = "answer"
_ENDED: Final = ("stop",)
_ASSISTANT, _USER = "assistant", "user"
# As smolagents writes them.
_CALLS: Final = re.compile(r"(?:\A|\n)Calling tools:\n(?=\[)")
_RESULTS: Final = re.compile(r"Observation:\n|(?=Call id: |Error:\n)")
_TASK: Final = "New task:\n"
# Longer texts stay text: parsed, they take a hundred times as much memory.
MAX_LITERAL_CHARACTERS: Final = 1024**2


def convert_request(request: ModelRequest) -> ModelRequest:
    """Return a request whose messages have the form of the APIs."""
    messages = _convert_answers(tuple(_read_text_calls(request.messages)))
    return replace(request, messages=messages) if messages != request.messages else request


def convert_reply(reply: ModelReply) -> ModelReply:
    """Return a reply whose answer is text."""
    if not any(_is_answer(call) for call in reply.calls):
        return reply
    left = tuple(call for call in reply.calls if not _is_answer(call))
    return replace(
        reply,
        messages=_convert_answers(reply.messages),
        calls=left,
        finish_reasons=reply.finish_reasons if left else _ENDED,
    )


def _is_answer(call: ToolCallPart) -> bool:
    return _ANSWER_TOOL.fullmatch(call.name) is not None


def _convert_answers(messages: SpanMessages) -> SpanMessages:
    """Convert calls that are answers to text, and drop their results."""
    answers = [call for each in messages for call in each.content.calls if _is_answer(call)]
    if not answers:
        return messages
    converted = (_convert_message(each, answers) for each in messages)
    return tuple(one for one in converted if one.content.is_present or one.fallback.is_present)


def _convert_message(message: SpanMessage, answers: Sequence[ToolCallPart]) -> SpanMessage:
    content = message.content
    texts = [_get_answer(call) for call in content.calls if _is_answer(call)]
    return replace(
        message,
        content=replace(
            content,
            text="\n".join(filter(None, (content.text, *texts))) or None,
            calls=tuple(call for call in content.calls if not _is_answer(call)),
            responses=tuple(
                one for one in content.responses if not any(_answers(one, x) for x in answers)
            ),
        ),
    )


def _answers(result: ToolResponsePart, call: ToolCallPart) -> bool:
    return result.id == call.id if call.id else result.name == call.name


def _get_answer(call: ToolCallPart) -> str:
    arguments = call.arguments
    if isinstance(arguments, str):
        arguments = parse_json_or_text(arguments)
    if call.name == "final_answer" and isinstance(arguments, dict) and _ANSWER in arguments:
        arguments = arguments[_ANSWER]
    return arguments if isinstance(arguments, str) else dumps_readable(arguments)


def _read_text_calls(messages: SpanMessages) -> Iterator[SpanMessage]:
    """Yield messages, with calls and results in place of text that lists them."""
    open_calls: tuple[ToolCallPart, ...] = ()
    for message in messages:
        text = message.content.text or ""
        if message.role == _ASSISTANT:
            before, open_calls = _split_calls(text)
            yield from _replace_text(message, text, before)
            if open_calls:
                yield _make_message(_ASSISTANT, calls=open_calls)
        elif message.role == _USER:
            results, task = _split_results(text, open_calls)
            open_calls = ()
            if results:
                yield _make_message("tool", responses=results)
            yield from _replace_text(message, text, task)
        else:
            yield message


def _replace_text(message: SpanMessage, old: str, new: str) -> Iterator[SpanMessage]:
    if new == old:
        yield message
    elif new:
        yield replace(message, content=replace(message.content, text=new))


def _make_message(
    role: str,
    *,
    calls: tuple[ToolCallPart, ...] = (),
    responses: tuple[ToolResponsePart, ...] = (),
) -> SpanMessage:
    return SpanMessage(role=role, content=MessageContent(calls=calls, responses=responses))


def _split_calls(text: str) -> tuple[str, tuple[ToolCallPart, ...]]:
    """Split an assistant's text into the calls that it lists, and the text before them."""
    found = list(_CALLS.finditer(text))
    if not found or len(text) - found[-1].end() > MAX_LITERAL_CHARACTERS:
        return text, ()
    try:
        listed: Any = _read_literal(text[found[-1].end() :])
        calls = tuple(
            ToolCallPart(
                name=str(each["function"]["name"]),
                id=str(each["id"]),
                arguments=each["function"]["arguments"],
            )
            for each in listed
        )
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError):
        return text, ()
    return text[: found[-1].start()], calls


def _read_literal(text: str) -> Json:
    """Read a Python literal that a model wrote, if JSON can represent its value.

    Raises:
        ValueError, TypeError, SyntaxError, MemoryError, RecursionError: it is not.
    """
    return decode_strict_json(json.dumps(ast.literal_eval(text)))


def _split_results(
    text: str, calls: Sequence[ToolCallPart]
) -> tuple[tuple[ToolResponsePart, ...], str]:
    """Split a user's text into the results of calls, and the question after them."""
    start = _RESULTS.match(text) if calls else None
    if start is None:
        return (), text.removeprefix(_TASK)
    given, _, task = text[start.end() :].partition(f"\n{_TASK}")
    lines: list[str] = given.splitlines()
    # One text has the results of all calls; without one line per call, each gets the whole text.
    values: list[Json] = list(lines) if len(lines) == len(calls) else [given] * len(calls)
    pairs = zip(calls, values, strict=True)
    return tuple(ToolResponsePart(name=c.name, id=c.id, value=v) for c, v in pairs), task


# No model's response is larger; the rest is passed on, and the call counts as incomplete.
MAX_RESPONSE_BYTES: Final = 64 * 1024**2
_CONTENT_TYPE, _ENCODING = "content-type", "content-encoding"
_TRACE_PARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*")
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
        path: of the API, without the proxy's own prefix and without the query.
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


def find_trace_id(request: ServerRequest) -> str:
    """Return the trace that a request belongs to, by its ``traceparent``; empty if it names none.

    Instrumented servers pass on the ``traceparent`` of the request that they handle.
    """
    found = _TRACE_PARENT.fullmatch(request.get_header("traceparent").strip())
    return found[1] if found and found[1].strip("0") else ""


class OpenExchange:
    """An exchange while it happens; what was received of it counts even if it never ends."""

    def __init__(self, request: ServerRequest, api: ModelApi) -> None:
        self.case = request.case
        self.trace = find_trace_id(request)
        self.method = request.method
        self.api = api
        self.path = request.path
        self.request = decompress(request.body, request.get_header("content-encoding"))
        self.started = time.time_ns()
        self.answered = self.ended = 0
        self.status = 0
        self.content_type = self.encoding = ""
        self.response = bytearray()
        self.finished = self.is_cut = False

    def begin_response(self, status: int, headers: Mapping[str, str]) -> None:
        """Note the head of the response.

        Args:
            headers: by name in lower case.
        """
        self.status = status
        self.content_type = headers.get(_CONTENT_TYPE, "")
        self.encoding = headers.get(_ENCODING, "")
        self.answered = time.time_ns()

    def add_content(self, chunk: bytes) -> None:
        """Add content of the response, before the client gets it.

        A client sends the next request as soon as it has the last byte, so an exchange ends when
        that byte arrives, not when it was passed on.
        """
        self.is_cut = self.is_cut or len(self.response) + len(chunk) > MAX_RESPONSE_BYTES
        if not self.is_cut:
            self.response += chunk
        self.ended = time.time_ns()

    def freeze(self, request: bytes, response: bytes) -> RawExchange:
        """Return the exchange as received so far."""
        ended = self.ended or time.time_ns()
        return RawExchange(
            case=self.case,
            trace=self.trace,
            api=self.api,
            method=self.method,
            path=self.path,
            request=request,
            response=response,
            status=self.status,
            content_type=self.content_type,
            encoding=self.encoding,
            started=self.started,
            answered=self.answered or ended,
            ended=ended,
            finished=self.finished and not self.is_cut,
        )


class ExchangeLog:
    """All exchanges of a recording, by case."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spool = SpooledChunks()
        self._open: dict[str, list[OpenExchange]] = {}
        self._closed: dict[str, list[tuple[OpenExchange, int, int]]] = {}
        self._model_calls: Counter[str] = Counter()

    def begin(self, request: ServerRequest, api: ModelApi) -> OpenExchange:
        """Begin an exchange."""
        exchange = OpenExchange(request, api)
        with self._lock:
            self._open.setdefault(request.case, []).append(exchange)
            self._model_calls[request.case] += api is not other_requests
        return exchange

    def end(self, exchange: OpenExchange, *, finished: bool) -> None:
        """End an exchange, and move its content out of memory.

        Args:
            finished: whether the whole response arrived.
        """
        exchange.ended, exchange.finished = exchange.ended or time.time_ns(), finished
        with self._lock:
            numbers = (
                self._spool.append(exchange.request),
                self._spool.append(bytes(exchange.response)),
            )
            self._closed.setdefault(exchange.case, []).append((exchange, *numbers))
            self._open[exchange.case].remove(exchange)
            exchange.request, exchange.response = b"", bytearray()

    def count_model_calls(self, case: str) -> int:
        """Count the exchanges of a case that asked a model; without an id, those of all cases."""
        with self._lock:
            return self._model_calls[case] if case else self._model_calls.total()

    def list_exchanges(self, case: str) -> list[RawExchange]:
        """Return the exchanges of a case, also those that have not ended, sorted by start."""
        with self._lock:
            found = [
                one.freeze(self._spool.read(request), self._spool.read(response))
                for one, request, response in self._closed.get(case, ())
            ]
            found += [
                one.freeze(one.request, bytes(one.response)) for one in self._open.get(case, ())
            ]
        return sorted(found, key=lambda one: one.started)

    def list_cases(self) -> list[str]:
        """Return the ids of the cases that have exchanges, in the order of their first one."""
        with self._lock:
            return list(self._open)
