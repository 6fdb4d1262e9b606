"""One view of a span, whichever generation of conventions recorded it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci.model.json import Json
from agentci.recordings.telemetry import (
    adk,
    indexed_attributes,
    message_events,
    semconv,
)
from agentci.recordings.telemetry.json_input import whole
from agentci.recordings.telemetry.message import Messages, is_captured, is_overlooked
from agentci.recordings.telemetry.message_attributes import parse
from agentci.recordings.telemetry.source_layer import Layer
from agentci.recordings.telemetry.span import Event, Span
from agentci.recordings.telemetry.span_kinds import Kind

# The names of today, each beside the one that it had before.
_RENAMED: Final = (
    (semconv.INPUT_TOKENS, semconv.PROMPT_TOKENS),
    (semconv.OUTPUT_TOKENS, semconv.COMPLETION_TOKENS),
    (semconv.CACHE_WRITE_TOKENS, semconv.CACHE_CREATION_TOKENS),
)


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one model call; None for a counter that was not recorded."""

    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None


class ToolFacts(Struct, frozen=True, kw_only=True):
    """What a tool span says of the call, as recorded; None for what it leaves out."""

    name: str | None = None
    id: str | None = None
    arguments: Json = None
    result: Json = None


NO_TOOL: Final = ToolFacts()
# How attributes begin that hold one message each, or a part of one.
_INDEXED: Final = (semconv.PROMPT, semconv.COMPLETION)
# What can be shown as text; a union would be made anew each time that it is looked at.
_SCALARS: Final = (str, int, float)


class View(Struct, frozen=True, kw_only=True):
    """What is known of a span, from all its sources.

    Attributes:
        input, output: messages to and from the model; empty where they were not captured.
        usage: None where neither input nor output tokens were counted.
    """

    span: Span
    kind: Kind
    input: Messages
    output: Messages
    request_model: str | None
    response_model: str | None
    usage: Usage | None
    finish_reasons: tuple[str, ...]
    tool: ToolFacts


def view(span: Span, kind: Kind, logs: Sequence[Event]) -> View:
    """What is known of a span, to which ``logs`` belong."""
    layers = tuple(_layers(span, logs))
    return View(
        span=span,
        kind=kind,
        input=_messages([layer.input for layer in layers]),
        output=_messages([layer.output for layer in layers]),
        request_model=_text(layers, semconv.REQUEST_MODEL),
        response_model=_text(layers, semconv.RESPONSE_MODEL),
        usage=_usage(layers),
        finish_reasons=_finish_reasons(layers),
        tool=_tool(layers) if kind == "tool" else NO_TOOL,
    )


def _layers(span: Span, logs: Sequence[Event]) -> Iterator[Layer]:
    attributes = span.attributes
    yield _stated(attributes)
    renamed = {now: attributes[before] for now, before in _RENAMED if before in attributes}
    if reason := attributes.get(semconv.FINISH_REASON):
        renamed[semconv.FINISH_REASONS] = reason if isinstance(reason, list) else [reason]
    if renamed:
        yield Layer(values=renamed)
    if span.events or logs:
        yield from _event_layers(span.events, logs)
    if span.adk:
        yield adk.layer(attributes)
    if any(name.startswith(_INDEXED) for name in attributes):
        yield indexed_attributes.layer(attributes)


def _stated(attributes: Mapping[str, Json]) -> Layer:
    """What attributes say under the names of today."""
    return Layer(
        values=attributes,
        input=parse(attributes.get(semconv.INPUT)),
        output=parse(attributes.get(semconv.OUTPUT)),
    )


def _event_layers(events: Sequence[Event], logs: Sequence[Event]) -> Iterator[Layer]:
    for event in (*events, *logs):
        if event.name == semconv.DETAILS_EVENT:
            yield _stated(event.payload)
    for source in (events, sorted(logs, key=lambda log: log.time)):
        messages = [event for event in source if event.name in semconv.MESSAGE_EVENTS]
        if messages:
            yield message_events.layer(messages)
            return


def _tool(layers: Sequence[Layer]) -> ToolFacts:
    return ToolFacts(
        name=_text(layers, semconv.TOOL_NAME),
        id=_text(layers, semconv.TOOL_CALL_ID),
        arguments=_first(layers, semconv.TOOL_ARGUMENTS),
        result=_first(layers, semconv.TOOL_RESULT),
    )


def _messages(candidates: Sequence[Messages]) -> Messages:
    """The first list with content, whole; else the first whose content is easily overlooked."""
    return next(filter(is_captured, candidates), None) or next(
        filter(is_overlooked, candidates), ()
    )


def _first(layers: Sequence[Layer], name: str) -> Json:
    """The first value that says something, else the first that is there."""
    there: Json = None
    for layer in layers:
        value = layer.values.get(name)
        if value is not None and value not in ("", []):
            return value
        there = value if there is None else there
    return there


def _text(layers: Sequence[Layer], name: str) -> str | None:
    value = _first(layers, name)
    if value == semconv.NOT_SPECIFIED or not isinstance(value, _SCALARS):
        return None
    return str(value)


def _usage(layers: Sequence[Layer]) -> Usage | None:
    counted = Usage(
        input=_tokens(layers, semconv.INPUT_TOKENS),
        output=_tokens(layers, semconv.OUTPUT_TOKENS),
        cache_read=_tokens(layers, semconv.CACHE_READ_TOKENS),
        cache_write=_tokens(layers, semconv.CACHE_WRITE_TOKENS),
    )
    return None if counted.input is None and counted.output is None else counted


def _tokens(layers: Sequence[Layer], name: str) -> int | None:
    count = whole(_first(layers, name))
    return None if count is None else max(count, 0)


def _finish_reasons(layers: Sequence[Layer]) -> tuple[str, ...]:
    reasons = _first(layers, semconv.FINISH_REASONS)
    listed = reasons if isinstance(reasons, list) else []
    return tuple(reason for reason in listed if isinstance(reason, str))
