"""What all model APIs have in common: a request with messages, a response, a stream."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.conventions.api_messages import parse_message_list
from agentci.recordings.telemetry.json_input import parse_json_or_text, parse_nested_json
from agentci.recordings.telemetry.messages import (
    SpanMessages,
    ToolCallPart,
    extract_tool_calls,
)

DONE: Final = "[DONE]"


class ModelRequest(Struct, frozen=True, kw_only=True):
    """The request of a client to a model.

    Attributes:
        messages: the history and the new messages, without instructions.
        previous: id of the response that the request continues, if the service keeps the history.
        conversation: id of a conversation that the service keeps.
    """

    model: str
    messages: SpanMessages
    streamed: bool = False
    previous: str | None = None
    conversation: str | None = None


class TokenCounts(Struct, frozen=True, kw_only=True):
    """Tokens of one model call; None for a counter that was not reported."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None


class ModelReply(Struct, frozen=True, kw_only=True):
    """What a model answered.

    Attributes:
        id, model: empty if not reported.
        calls: the tool calls that the client has to answer, without those that the service runs.
    """

    id: str = ""
    model: str = ""
    messages: SpanMessages = ()
    calls: tuple[ToolCallPart, ...] = ()
    finish_reasons: tuple[str, ...] = ()
    tokens: TokenCounts = TokenCounts()


class ModelApi(Protocol):
    """One API of a vendor; implemented by the modules of this package."""

    @property
    def name(self) -> str:
        """The name in messages."""

    @property
    def provider(self) -> str:
        """The value of ``gen_ai.provider.name``."""

    def matches(self, path: str) -> bool:
        """Whether a POST to ``path``, without the query, asks a model through this API."""

    def read_request(self, body: JsonObject, path: str) -> ModelRequest:
        """Read the body of a request."""

    def read_reply(self, body: JsonObject) -> ModelReply:
        """Read the body of a response."""

    def merge_events(self, events: Sequence[JsonObject]) -> JsonObject:
        """Make the body of a response from the events of a stream, even an incomplete one."""

    def make_events(self, body: JsonObject) -> Iterator[JsonObject]:
        """Make the events of a stream from the body of a response."""

    def format_events(self, events: Iterable[JsonObject]) -> str:
        """Format events as the service sends them."""

    def make_error(self, message: str) -> JsonObject:
        """Make the body of an error response, whose message SDKs show."""


def parse_each_message(items: Json, role: str) -> SpanMessages:
    """Parse a list of messages; those of unknown kinds are dropped.

    Args:
        role: role of messages without one.
    """
    if isinstance(items, str):
        items = [{"role": role, "content": items}]
    if isinstance(items, Mapping):
        items = [items]
    if not isinstance(items, list):
        return ()
    return tuple(one for item in items for one in parse_message_list([item], role))


def make_reply(
    body: JsonObject, messages: SpanMessages, reasons: Iterable[Json], tokens: TokenCounts
) -> ModelReply:
    """Make a reply in which the client has to answer all tool calls."""
    return ModelReply(
        id=get_text(body, "id"),
        model=get_text(body, "model"),
        messages=messages,
        calls=tuple(extract_tool_calls(messages)),
        finish_reasons=tuple(each.lower() for each in reasons if isinstance(each, str)),
        tokens=tokens,
    )


def read_events(text: str) -> tuple[JsonObject, ...]:
    """Read the data of server-sent events; an incomplete event is dropped."""
    events: list[JsonObject] = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        if "{" not in block:
            continue  # a hostile stream may have millions of blocks without an object
        lines = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
        value = parse_json_or_text("\n".join(lines))
        if isinstance(value, dict):
            events.append(value)
    return tuple(events)


def format_event(event: JsonObject, *, named: bool) -> str:
    """Format one server-sent event.

    Args:
        named: whether its type is also the name of the event.
    """
    name = f"event: {event['type']}\n" if named else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n"


def get_text(fields: JsonObject, name: str) -> str:
    """Return a text field; empty if it is missing or not text."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def get_object(fields: JsonObject, name: str) -> JsonObject:
    """Return an object field; empty if it is missing or not an object."""
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}


def get_objects(fields: JsonObject, name: str) -> list[JsonObject]:
    """Return the objects of a list field; empty if it is missing or not a list."""
    value = fields.get(name)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def get_count(fields: JsonObject, *names: str) -> int | None:
    """Return the first of the fields that is a whole number."""
    found = (fields.get(name) for name in names)
    return next((each for each in found if isinstance(each, int)), None)


def parse_body(data: bytes) -> JsonObject | None:
    """Parse the body of a request or a response; None if it is not a JSON object."""
    try:
        value = parse_nested_json(data.decode())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
