"""A JSON file that people write: read strictly, with a place for everything in it."""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from agentci._util.text.json_place import Places, Step
from agentci._util.text.utf8 import decode
from agentci.errors import InputError
from agentci.model.json import Json, JsonObject
from agentci.model.place import Place
from agentci.model.problem import Problem


class JsonDocument:
    """The value of a file, and where its parts stand."""

    def __init__(self, *, file: str, text: str, value: Json = None) -> None:
        self.file = file
        self.text = text
        self.value = value

    def place_of(self, path: Sequence[Step]) -> Place:
        """Where the value at ``path`` stands, or the last of its steps that exists."""
        return self._place(*self._places.at(path))

    def place_at(self, offset: int) -> Place:
        """Where a character stands."""
        return self._place(*self._places.of_offset(offset))

    @cached_property
    def _places(self) -> Places:
        return Places(self.text)

    def _place(self, line: int, column: int) -> Place:
        return Place(file=self.file, line=line, column=column)


def read_json(data: bytes, *, file: str) -> JsonDocument:
    """Read UTF-8, with or without a byte order mark.

    Raises:
        InputError: it is not JSON, a key stands twice in an object, or it holds a number or half
            a character that no other program could read.
    """
    text = decode(data, file=file)
    if not text.strip():
        raise InputError.of("the file is empty", place=Place(file=file))
    try:
        value: Json = json.loads(
            text, object_pairs_hook=_object, parse_constant=_finite, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise InputError(_problems(error, JsonDocument(file=file, text=text))) from None
    document = JsonDocument(file=file, text=text, value=value)
    if r"\u" in text and (halved := _first(text, _is_half_a_character)):
        message = "an escape stands for half a character, and the other half is missing"
        raise InputError.of(message, place=document.place_at(halved.start()))
    return document


LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
TOKEN: Final = re.compile(
    r'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*")\s*(?P<colon>:?)|[-+.\w]+|[{}]', re.DOTALL
)


class _TwinKeysError(ValueError):
    """A key appears twice in one object."""


def _object(members: list[tuple[str, Json]]) -> JsonObject:
    value = dict(members)
    if len(value) != len(members):
        raise _TwinKeysError
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _problems(error: ValueError | RecursionError, document: JsonDocument) -> list[Problem]:
    if isinstance(error, _TwinKeysError):
        return [
            Problem(
                message=f"the key {key!r} appears twice in one object",
                place=document.place_at(offset),
                hint="only the last one would count; remove the others",
            )
            for key, offset in _twin_keys(document.text)
        ]
    offset = 0
    if isinstance(error, json.JSONDecodeError):
        message = f"the file is not JSON: {error.msg[0].lower()}{error.msg[1:]}"
        offset = error.pos
    elif isinstance(error, RecursionError):
        message = "the file is nested too deeply to be read"
    else:
        message = "a number is not finite, or has too many digits"
        token = _first(document.text, _is_no_number)
        offset = token.start() if token else 0
    return [Problem(message=message, place=document.place_at(offset))]


def _twin_keys(text: str) -> Iterator[tuple[str, int]]:
    """Every key that its object has already, and where it stands, as far as the text is JSON."""
    objects: list[set[str]] = []
    for token in TOKEN.finditer(text):
        if token[0] == "{":
            objects.append(set())
        elif not objects:
            return
        elif token[0] == "}":
            objects.pop()
        elif token["colon"]:
            try:
                key = json.loads(token["text"])
            except ValueError:
                return
            if key in objects[-1]:
                yield key, token.start()
            objects[-1].add(key)


def _first(text: str, is_sought: Callable[[re.Match[str]], bool]) -> re.Match[str] | None:
    return next(filter(is_sought, TOKEN.finditer(text)), None)


def _is_no_number(token: re.Match[str]) -> bool:
    if token["text"] or token[0] in ("{", "}", "true", "false", "null"):
        return False
    return not math.isfinite(float(token[0]))


def _is_half_a_character(token: re.Match[str]) -> bool:
    text = token["text"] or ""
    return r"\u" in text and bool(LONE_SURROGATE.search(json.loads(text)))
