"""Requests that call no model, such as for embeddings and lists of models: only for replay."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agentci.model.values import JsonObject
from agentci.record.apis import openai_chat
from agentci.record.apis.model_api import ModelReply, ModelRequest, get_text

name: Final = "other request"
provider: Final = ""


def matches(path: str) -> bool:
    """Return True: any request that is of no API is another request."""
    return bool(path)


def read_request(body: JsonObject, path: str) -> ModelRequest:
    """Read the body of a request; it has no messages."""
    del path
    return ModelRequest(model=get_text(body, "model"), messages=())


def read_reply(body: JsonObject) -> ModelReply:
    """Read the body of a response; it has no messages."""
    del body
    return ModelReply()


def merge_events(events: Sequence[JsonObject]) -> JsonObject:
    """Return nothing: the streams of other requests are not understood."""
    del events
    return {}


def make_events(body: JsonObject) -> Iterator[JsonObject]:
    """Make one event of the whole body."""
    yield body


def format_events(events: Iterable[JsonObject]) -> str:
    """Format events like Chat Completions."""
    return openai_chat.format_events(events)


def make_error(message: str) -> JsonObject:
    """Make the body of an error response."""
    return openai_chat.make_error(message)
