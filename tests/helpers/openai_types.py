"""The types of OpenAI's own client, which describe the requests and responses of its API."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter


def theirs(module: str, name: str) -> Any:
    """Import a type, on demand because the import takes half a second."""
    return getattr(import_module(f"openai.types.{module}"), name)


def sent_as(kind: Any, body: object) -> object:
    """Parse a request body as ``kind``; members that the API does not know are dropped.

    Raises:
        ValidationError: something is missing or wrong.
    """
    adapter = TypeAdapter(kind)  # required for lists that are parsed lazily
    return _whole(adapter.validate_python(body))


def answered_as(kind: Any, body: object) -> Any:
    """Parse a response body as ``kind`` and return it as the client writes it.

    Raises:
        ValidationError: the API would not respond with this body.
    """
    return kind.model_validate(body).model_dump(mode="json", by_alias=True)


def _whole(value: Any) -> object:
    """Convert a value completely: lazily parsed lists are validated item by item."""
    if isinstance(value, Mapping):
        return {name: _whole(each) for name, each in value.items()}
    if isinstance(value, str | int | float | None):
        return value
    return [_whole(each) for each in value]
