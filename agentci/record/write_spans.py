"""Writes turns as spans in the GenAI conventions, as OTLP JSON, and adds attributes to spans."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from typing import Final

from msgspec import Struct

from agentci._util.text.json_text import dumps_compact
from agentci._util.text.truncate import short
from agentci.evaluators.agentevals.match_eval_case import digest_input
from agentci.model.values import Json, JsonObject, replace
from agentci.record.apis.model_api import get_object, get_objects, get_text, parse_body
from agentci.record.conversations import CallStep, RebuiltTurn
from agentci.record.exchanges import Exchange
from agentci.recordings.otlp import SPAN_ID_BYTES, TRACE_ID_BYTES
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.messages import (
    MessageContent,
    SpanMessages,
    make_call_part,
    make_response_part,
    make_text_part,
)
from agentci.recordings.tool_errors import is_tool_error
from agentci.version import __version__

MAX_NAME: Final = 80
_INTERNAL, _CLIENT, _ERROR = 1, 3, 2


class CaseStamp(Struct, frozen=True, kw_only=True):
    """Attributes that join the spans of a case.

    Attributes:
        id: joins all traces of the case; empty for none.
        is_eval_case: whether the id is that of an eval case, and not generated.
        input: of the case, if it is from a file, else None.
        run: tells its spans from those of another recording of the case; empty for none.
    """

    id: str = ""
    run: str = ""
    is_eval_case: bool = False
    input: str | None = None

    @property
    def attributes(self) -> dict[str, str]:
        """Return the attributes of the resource."""
        if not self.id:
            return {}
        named = {semconv.SESSION_NAME: self.id}
        if self.run:
            named[semconv.RECORDED_RUN] = self.run
        if self.is_eval_case:
            named[semconv.EVAL_CASE_ID] = self.id
        if self.input is not None:
            named[semconv.ASKED] = digest_input(self.input)
        return named


def write_turns(
    turns: Iterable[RebuiltTurn],
    stamp: CaseStamp,
    *,
    seed: bytes,
    redact: Callable[[JsonObject], JsonObject],
) -> Iterator[str]:
    """Write each turn as one trace, on a line of OTLP JSON.

    The turns of a conversation are one case. A trace has the id that the client named, unless
    another turn has it.

    Args:
        seed: random bytes of the recording and the case, from which ids are derived.
        redact: removes keys.
    """
    used: set[str] = set()
    found = tuple(turns)
    names = {} if stamp.id else _name_conversations(found)
    for number, turn in enumerate(found):
        named = turn.steps[0].exchange.trace
        writer = _TraceWriter(seed, number, named if named not in used else "")
        used.add(named)
        writer.add_turn(turn, parent="")
        name = names.get(turn.conversation, stamp.id)
        export = _make_export(writer.spans, replace(stamp, id=name))
        yield dumps_compact(redact(export))


def mark_incomplete(
    lines: Sequence[str],
    reason: str,
    stamp: CaseStamp,
    *,
    seed: bytes,
    redact: Callable[[JsonObject], JsonObject],
) -> tuple[str, ...]:
    """Note in the lines of a case why they cannot be evaluated.

    A case without lines gets a turn with its question, so that it is not just missing.
    """
    attributes = {semconv.INCOMPLETE: reason}
    found = [document for line in lines if (document := parse_body(line.encode())) is not None]
    if not found:
        found = [_make_export(list(_make_question(stamp, seed)), stamp)]
    return tuple(dumps_compact(redact(stamp_resources(one, attributes))) for one in found)


def mark_lines(lines: Sequence[str], attributes: Mapping[str, str]) -> tuple[str, ...]:
    """Set attributes on all resources in lines of OTLP JSON."""
    if not attributes:
        return tuple(lines)
    documents = (parse_body(line.encode()) or {} for line in lines)
    return tuple(dumps_compact(stamp_resources(one, attributes)) for one in documents)


def set_printed(lines: Sequence[str], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Set attributes of what a command printed on the root of the last trace in lines."""
    if not texts:
        return tuple(lines)
    documents = [parse_body(line.encode()) or {} for line in lines]
    spans = [span for document in documents for span in _list_spans(document)]
    known = {get_text(span, "spanId") for span in spans}
    roots = [span for span in spans if get_text(span, "parentSpanId") not in known]
    if not roots:
        return tuple(lines)
    last = max(roots, key=lambda span: int(str(span.get("startTimeUnixNano") or 0)))
    chosen = get_text(last, "traceId"), get_text(last, "spanId")
    added: list[Json] = [{"key": k, "value": {"stringValue": v}} for k, v in texts.items()]

    def change(span: JsonObject) -> JsonObject:
        if (get_text(span, "traceId"), get_text(span, "spanId")) != chosen:
            return span
        return {**span, "attributes": [*get_objects(span, "attributes"), *added]}

    return tuple(dumps_compact(_change_spans(document, change)) for document in documents)


def list_marks(lines: Iterable[str]) -> frozenset[tuple[str, str]]:
    """List what a recording notes of the answers of its cases: warnings, and what they are."""
    found: set[tuple[str, str]] = set()
    for line in lines:
        for batch in get_objects(parse_body(line.encode()) or {}, "resourceSpans"):
            for each in get_objects(get_object(batch, "resource"), "attributes"):
                if (key := get_text(each, "key")) in (semconv.WARNINGS, semconv.ANSWER_SOURCE):
                    found.add((key, get_text(get_object(each, "value"), "stringValue")))
    return frozenset(found)


def _list_spans(document: JsonObject) -> Iterator[JsonObject]:
    for batch in get_objects(document, "resourceSpans"):
        for group in get_objects(batch, "scopeSpans"):
            yield from get_objects(group, "spans")


def _change_spans(document: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    if "resourceSpans" not in document:
        return document
    batches: list[Json] = []
    for batch in get_objects(document, "resourceSpans"):
        groups: list[Json] = [
            {**group, "spans": [change(span) for span in get_objects(group, "spans")]}
            for group in get_objects(batch, "scopeSpans")
        ]
        batches.append({**batch, "scopeSpans": groups})
    return {**document, "resourceSpans": batches}


def _make_question(stamp: CaseStamp, seed: bytes) -> Iterator[Json]:
    """Make the span of a turn with a question and without a model call."""
    writer = _TraceWriter(seed, 0, "")
    attributes: dict[str, Json] = {semconv.OPERATION_NAME: "invoke_agent"}
    if stamp.input:
        message: JsonObject = {"role": "user", "parts": [make_text_part(stamp.input)]}
        attributes[semconv.INPUT_MESSAGES] = dumps_compact([message])
    writer.add("invoke_agent", (0, 0), attributes, parent="", failed=True)
    yield from writer.spans


def stamp_resources(document: JsonObject, attributes: Mapping[str, str]) -> JsonObject:
    """Set attributes on all resources with spans."""
    if not attributes or "resourceSpans" not in document:
        return document
    added: list[Json] = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
    batches: list[Json] = []
    for batch in get_objects(document, "resourceSpans"):
        resource = get_object(batch, "resource")
        own = get_objects(resource, "attributes")
        kept = [each for each in own if each.get("key") not in attributes]
        batches.append({**batch, "resource": {**resource, "attributes": [*kept, *added]}})
    return {**document, "resourceSpans": batches}


def _name_conversations(turns: Sequence[RebuiltTurn]) -> dict[int, str]:
    """Name conversations by their first questions, if one has several turns.

    Equal names get numbers. By the names, all turns of a conversation are one case.
    """
    names: dict[int, str] = {}
    seen: Counter[str] = Counter()
    for turn in turns:
        if turn.conversation not in names:
            question = short(" ".join(turn.question.split()), MAX_NAME) or "conversation"
            seen[question] += 1
            number = f" ({seen[question]})" if seen[question] > 1 else ""
            names[turn.conversation] = f"{question}{number}"
    return names if len(names) < len(turns) else {}


def _make_export(spans: list[Json], stamp: CaseStamp) -> JsonObject:
    resource = _list_attributes({"service.name": "agentci-record", **stamp.attributes})
    scope = {"name": "agentci.record", "version": __version__}
    group: JsonObject = {"scope": scope, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [group]}]}


class _TraceWriter:
    def __init__(self, seed: bytes, number: int, trace_id: str) -> None:
        self._seed = blake2b(seed).digest()
        self._ids = (self._make_id(f"{number}/{each}") for each in count())
        self._trace_id = trace_id or next(self._ids)
        self.spans: list[Json] = []

    def _make_id(self, name: str) -> str:
        return blake2b(name.encode(), key=self._seed, digest_size=TRACE_ID_BYTES).hexdigest()

    def add_turn(self, turn: RebuiltTurn, *, parent: str) -> None:
        """Add a span for the turn, and below it one for each model call and each tool call."""
        attributes = {
            semconv.OPERATION_NAME: "invoke_agent",
            semconv.CONVERSATION_ID: f"{self._make_id('conversation')[:16]}-{turn.conversation}",
        }
        if any(step.unused for step in turn.steps):
            # An unused reply may be the last one.
            answer = _format_messages(_drop_calls(turn.steps[-1].exchange.reply.messages))
            attributes[semconv.OUTPUT_MESSAGES] = dumps_compact(answer)
        failed = turn.steps[-1].exchange.failed
        own = self.add(
            "invoke_agent", (turn.started, turn.ended), attributes, parent=parent, failed=failed
        )
        for step in turn.steps:
            self._add_call(step, step.exchange, own)
            for each in step.unused:
                self._add_call(step, each, own)
            self._add_tools(step, own)

    def _add_call(self, step: CallStep, exchange: Exchange, parent: str) -> None:
        """Add a span for a model call; tool calls of a reply that was not used did not happen."""
        is_used = exchange is step.exchange
        request, reply = exchange.request, exchange.reply
        attributes: dict[str, Json] = {
            semconv.OPERATION_NAME: "chat",
            semconv.PROVIDER_NAME: exchange.api.provider,
            semconv.REQUEST_MODEL: request.model,
            semconv.RESPONSE_MODEL: reply.model,
            semconv.RESPONSE_ID: reply.id,
            semconv.FINISH_REASONS: list(reply.finish_reasons) if is_used else [],
            semconv.INPUT_TOKENS: reply.tokens.input,
            semconv.OUTPUT_TOKENS: reply.tokens.output,
            semconv.CACHE_READ_TOKENS: reply.tokens.cache_read,
            semconv.CACHE_CREATION_TOKENS: reply.tokens.cache_write,
            semconv.INPUT_MESSAGES: dumps_compact(_format_messages(step.messages)),
        }
        if not exchange.failed:
            output = _format_messages(reply.messages if is_used else _drop_calls(reply.messages))
            attributes[semconv.OUTPUT_MESSAGES] = dumps_compact(output)
        if exchange.failed:
            attributes[semconv.ERROR_TYPE] = str(exchange.status or "interrupted")
        times = (exchange.started, exchange.ended)
        name = f"chat {request.model}".strip()
        self.add(name, times, attributes, parent=parent, kind=_CLIENT, failed=exchange.failed)

    def _add_tools(self, step: CallStep, parent: str) -> None:
        """Add a span for each tool call whose result is known, or that started a sub-agent."""
        ended = step.exchange.ended
        for index, call in enumerate(step.exchange.reply.calls):
            result, started = step.results.get(index), step.subagents.get(index, [])
            if result is None and not started:
                continue
            attributes: dict[str, Json] = {
                semconv.OPERATION_NAME: "execute_tool",
                semconv.TOOL_NAME: call.name,
                semconv.TOOL_CALL_ID: call.id,
                semconv.TOOL_ARGUMENTS: dumps_compact(call.arguments),
            }
            if result is not None:
                attributes[semconv.TOOL_RESULT] = dumps_compact(result.value)
            end = max(ended, step.next_started or 0, *(turn.ended for turn in started))
            name = f"execute_tool {call.name}"
            # A nanosecond apart, so that readers sort them as the model made them.
            times = (ended + index, max(end, ended + index))
            failed = None if result is None else result.failed
            if failed is None and result is not None and is_tool_error(result.value):
                failed = True
            if failed is None:
                attributes[semconv.TOOL_STATUS] = "unknown"
            own = self.add(name, times, attributes, parent=parent, failed=failed is True)
            for turn in started:
                self.add_turn(turn, parent=own)

    def add(
        self,
        name: str,
        times: tuple[int, int],
        attributes: Mapping[str, Json],
        *,
        parent: str,
        kind: int = _INTERNAL,
        failed: bool = False,
    ) -> str:
        """Add a span and return its id."""
        span_id = next(self._ids)[: 2 * SPAN_ID_BYTES]
        span: dict[str, Json] = {
            "traceId": self._trace_id,
            "spanId": span_id,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(times[0]),
            "endTimeUnixNano": str(max(times)),
            "attributes": _list_attributes(attributes),
        }
        if parent:
            span["parentSpanId"] = parent
        if failed:
            span["status"] = {"code": _ERROR}
        self.spans.append(span)
        return span_id


def _format_messages(messages: SpanMessages) -> list[Json]:
    return [{"role": one.role, "parts": _format_parts(one.content)} for one in messages]


def _drop_calls(messages: SpanMessages) -> SpanMessages:
    return tuple(replace(one, content=replace(one.content, calls=())) for one in messages)


def _format_parts(content: MessageContent) -> list[Json]:
    parts: list[Json] = [
        make_response_part(one.id, one.name, one.value, failed=one.failed)
        for one in content.responses
    ]
    if content.text:
        parts.append(make_text_part(content.text))
    parts += [make_call_part(one.id, one.name, one.arguments) for one in content.calls]
    return parts


def _list_attributes(attributes: Mapping[str, Json]) -> list[Json]:
    return [
        {"key": key, "value": _make_value(value)}
        for key, value in attributes.items()
        if value not in (None, "", [])
    ]


def _make_value(value: Json) -> JsonObject:
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_make_value(each) for each in value]}}
    return {"stringValue": str(value)}
