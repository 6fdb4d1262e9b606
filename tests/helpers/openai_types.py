"""The types of OpenAI's own client, which say what its API takes and answers."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter


def theirs(module: str, name: str) -> Any:
    """A type; imported only here, as that takes half a second."""
    return getattr(import_module(f"openai.types.{module}"), name)


def sent_as(kind: Any, body: object) -> object:
    """What is left of a body that is read as ``kind``: without members that the API does not know.

    Raises:
        ValidationError: something is missing or wrong.
    """
    adapter = TypeAdapter(kind)  # lists that are still to be read need it
    return _whole(adapter.validate_python(body))


def answered_as(kind: Any, body: object) -> Any:
    """What the API answers, as its client would have read and written it.

    Raises:
        ValidationError: the API would not answer that.
    """
    return kind.model_validate(body).model_dump(mode="json", by_alias=True)


def _whole(value: Any) -> object:
    """Lists are checked when they are read, item by item."""
    if isinstance(value, Mapping):
        return {name: _whole(each) for name, each in value.items()}
    if isinstance(value, str | int | float | None):
        return value
    return [_whole(each) for each in value]
