"""Reads JSON files of users strictly: values with their places, and fields with all problems.

Of a large object, only a part of the text is in memory: ``read_large_object``.
"""

import codecs
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from json import JSONDecoder
from typing import Final, NamedTuple

from msgspec import Struct

from agentci._util.text.json_text import name_json_error
from agentci._util.text.suggest import find_nearest, quote_name, suggest_name
from agentci._util.workspace import decode_utf8
from agentci.errors import InputError
from agentci.model.values import Json, JsonObject, Place, Problem

Step = str | int

BLANKS: Final = re.compile(r"[ \t\n\r]*")
DECODER: Final = JSONDecoder()


class JsonMember(NamedTuple):
    """One entry of an object or a list; ``offset`` is that of its key, or of the item in a list."""

    key: Step
    offset: int
    value_offset: int


class JsonPositions:
    """Finds positions in one JSON text; each object and list is scanned at most once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._members: dict[int, dict[Step, JsonMember]] = {}

    def find_path(self, path: Sequence[Step]) -> tuple[int, int]:
        """Find the line and column of the value at ``path``, or of its key, counted from 1.

        Never fails: if the path does not exist, returns the place of its last existing step.
        """
        offset = value_offset = _skip_blanks(self._text, 0)
        for step in path:
            if value_offset not in self._members:
                found = iterate_json_members(self._text, value_offset)
                self._members[value_offset] = {member.key: member for member in found}
            member = self._members[value_offset].get(step)
            if member is None:
                break
            offset, value_offset = member.offset, member.value_offset
        return self.find_offset(offset)

    def find_offset(self, offset: int) -> tuple[int, int]:
        """Return the line and column of a character."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


def iterate_json_members(text: str, offset: int) -> Iterator[JsonMember]:
    """List the members of the object or list at ``offset``, as far as it can be parsed.

    Duplicate keys are listed twice; other values have no members.
    """
    opening = text[offset : offset + 1]
    if opening not in ("{", "["):
        return
    position = _skip_blanks(text, offset + 1)
    number = 0
    try:
        while text[position] not in "}]":
            key, start = number, position
            if opening == "{":
                key, position = DECODER.raw_decode(text, position)
                if not isinstance(key, str):
                    return
                position = _skip_blanks(text, position, ":")
            yield JsonMember(key, start, position)
            _, position = DECODER.raw_decode(text, position)
            position = _skip_blanks(text, position, ",")
            number += 1
    except (ValueError, IndexError, RecursionError):
        return


class TooManyBracesError(Exception):
    """A text has so many braces or escapes that its JSON takes too long to find."""


# How many characters a search for JSON may parse per character of a text, and how many take as
# long to parse as raising an error.
MAX_PARSED_PER_CHARACTER: Final = 100
ERROR_CHARACTERS: Final = 100
# An object that is nested too deeply has at least as many characters.
DEEP_CHARACTERS: Final = 10_000
_OBJECT_STARTS: Final = re.compile(r'\{(?=[ \t\n\r]*+["}])')
_ESCAPES: Final = re.compile(r"(?:\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}))++")


def find_json_objects(text: str) -> Iterator[JsonObject]:
    """Find all JSON objects in a text, also in other JSON and in its strings of any level.

    Every brace is tried, so that no other reading of the text around an object hides it. An object
    with a key that appears twice is yielded with the last value, and again with the first.

    Raises:
        TooManyBracesError: it takes too long.
    """
    left = MAX_PARSED_PER_CHARACTER * max(len(text), 100_000)
    before = ""
    while text != before:
        left -= len(text)
        if left < 0:
            raise TooManyBracesError
        for objects, cost in _parse_at_braces(text):
            yield from objects
            left -= cost
            if left < 0:
                raise TooManyBracesError
        # Without one level of escapes, objects in strings are objects in the text.
        before, text = text, _ESCAPES.sub(_unescape, text)


def _parse_at_braces(text: str) -> Iterator[tuple[list[JsonObject], int]]:
    """Parse the object at each brace that can open one; its readings, and the characters parsed."""
    first_of_keys: list[JsonObject] = []

    def make_object(members: list[tuple[str, Json]]) -> JsonObject:
        value = dict(members)
        if len(value) != len(members):
            first_of_keys.append(dict(reversed(members)))
        return value

    decoder = JSONDecoder(object_pairs_hook=make_object, parse_int=float, strict=False)
    for brace in _OBJECT_STARTS.finditer(text):
        start, objects = brace.start(), list[JsonObject]()
        first_of_keys.clear()
        try:
            value, end = decoder.raw_decode(text, start)
            objects = [value, *first_of_keys]
        except json.JSONDecodeError as error:
            # Raising the error takes time to count the lines before it.
            end = error.pos + start // 10
        except RecursionError:
            end = start + DEEP_CHARACTERS
        yield objects, ERROR_CHARACTERS + end - start


def _unescape(escapes: re.Match[str]) -> str:
    return str(json.loads(f'"{escapes[0]}"'))


def _skip_blanks(text: str, position: int, mark: str = "") -> int:
    """Skip blanks and an optional ``mark`` with the blanks after it."""
    position = _end_of_blanks(text, position)
    if mark and text.startswith(mark, position):
        return _end_of_blanks(text, position + 1)
    return position


def _end_of_blanks(text: str, position: int) -> int:
    blanks = BLANKS.match(text, position)
    return blanks.end() if blanks else position


class JsonDocument:
    """The value of a file, and the places of its parts."""

    def __init__(self, *, file: str, text: str, value: Json = None) -> None:
        self.file = file
        self.text = text
        self.value = value

    def find_place(self, path: Sequence[Step]) -> Place:
        """Return the place of the value at ``path``, or of its last existing step."""
        return self._place(*self._places.find_path(path))

    def find_offset_place(self, offset: int) -> Place:
        """Return the place of a character."""
        return self._place(*self._places.find_offset(offset))

    @cached_property
    def _places(self) -> JsonPositions:
        return JsonPositions(self.text)

    def _place(self, line: int, column: int) -> Place:
        return Place(file=self.file, line=line, column=column)


def read_json(data: bytes, *, file: str) -> JsonDocument:
    """Read UTF-8, with or without a byte order mark.

    Raises:
        InputError: it is not JSON, a key appears twice in an object, or it contains a number or an
            unpaired surrogate that other programs could not read.
    """
    text = decode_utf8(data, file=file)
    if not text.strip():
        raise InputError.from_message("the file is empty", place=Place(file=file))
    try:
        value: Json = STRICT_DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise InputError(_make_problems(error, JsonDocument(file=file, text=text))) from None
    document = JsonDocument(file=file, text=text, value=value)
    if halved := _find_lone_surrogate(text):
        message = "an escape is an unpaired surrogate, not a whole character"
        raise InputError.from_message(message, place=document.find_offset_place(halved.start()))
    return document


LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
TOKEN: Final = re.compile(
    # A string that is not closed reaches to the end, so that it is scanned only once.
    r'(?P<text>"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))\s*(?P<colon>:?)|[-+.\w]+|[{}]',
    re.DOTALL,
)


class _DuplicateKeyError(ValueError):
    """A key appears twice in one object."""


def _make_object(members: list[tuple[str, Json]]) -> JsonObject:
    value = dict(members)
    if len(value) != len(members):
        raise _DuplicateKeyError
    return value


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _parse_int(text: str) -> int:
    _parse_finite(text)
    return int(text)


# Raises ValueError for duplicate keys and for numbers that are not finite floats.
STRICT_DECODER: Final = JSONDecoder(
    object_pairs_hook=_make_object,
    parse_constant=_parse_finite,
    parse_float=_parse_finite,
    parse_int=_parse_int,
)


def has_lone_surrogate(text: str) -> bool:
    """Whether an escape in valid JSON is an unpaired surrogate."""
    return _find_lone_surrogate(text) is not None


def _find_lone_surrogate(text: str) -> re.Match[str] | None:
    return _find_token(text, _has_lone_surrogate) if r"\u" in text else None


def _make_problems(error: ValueError | RecursionError, document: JsonDocument) -> list[Problem]:
    if isinstance(error, _DuplicateKeyError):
        return [
            Problem(
                message=f"the key {key!r} appears twice in one object",
                place=document.find_offset_place(offset),
                hint="only the last one would be used; remove the others",
            )
            for key, offset in _find_duplicate_keys(document.text)
        ]
    offset = 0
    if isinstance(error, json.JSONDecodeError):
        message = f"the file is not JSON: {name_json_error(error)}"
        offset = error.pos
    elif isinstance(error, RecursionError):
        message = "the file is nested too deeply to be read"
    else:
        message = "a number is not finite, or has too many digits"
        token = _find_token(document.text, _is_invalid_number)
        offset = token.start() if token else 0
    return [Problem(message=message, place=document.find_offset_place(offset))]


def _find_duplicate_keys(text: str) -> Iterator[tuple[str, int]]:
    """List every duplicate key and its offset, as far as the text is valid JSON."""
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


def _find_token(text: str, is_sought: Callable[[re.Match[str]], bool]) -> re.Match[str] | None:
    return next(filter(is_sought, TOKEN.finditer(text)), None)


def _is_invalid_number(token: re.Match[str]) -> bool:
    if token["text"] or token[0] in ("{", "}", "true", "false", "null"):
        return False
    try:
        return not math.isfinite(float(token[0]))
    except ValueError:  # such as `NaNN`
        return True


def _has_lone_surrogate(token: re.Match[str]) -> bool:
    text = token["text"] or ""
    return r"\u" in text and bool(LONE_SURROGATE.search(json.loads(text)))


MAX_DEPTH: Final = 64

JSON_TYPE_NAMES: Mapping[type, str] = {
    type(None): "null",
    bool: "a boolean",
    str: "a string",
    int: "a number",
    float: "a number",
    dict: "an object",
    list: "a list",
}


class JsonFieldProblem(Struct, frozen=True, kw_only=True):
    """Something wrong with the value at ``path``."""

    path: tuple[Step, ...]
    message: str
    hint: str | None = None


class JsonFields:
    """The fields of one object, each known by a name in snake_case.

    A file may use camelCase instead, and null means that the field is missing. A value of the
    wrong type is reported and counts as missing.

    Attributes:
        path: path of the object in its file.
        problems: of the whole file, shared by all of its objects.
    """

    def __init__(
        self,
        value: JsonObject,
        *,
        noun: str,
        path: tuple[Step, ...],
        complaints: list[JsonFieldProblem],
    ) -> None:
        self.path = path
        self.problems = complaints
        self._value = value
        self._noun = noun
        self._names: dict[str, None] = {}

    def require(self, *names: str) -> None:
        """Report each of ``names`` that is missing."""
        for name in names:
            if not self.has(name):
                given = [key for key, value in self._value.items() if value is not None]
                close = find_nearest(name, given)
                hint = None if close is None else f"it has {close!r}"
                self.add_problem(f"{self._noun} needs {name!r}", hint=hint)

    def has(self, name: str) -> bool:
        """Whether ``name`` has a value."""
        return self._take(name) is not None

    def text(self, name: str) -> str | None:
        """Return a string field."""
        value = self._take(name)
        if isinstance(value, str):
            return value
        self._add_type_problem(name, "a string")
        return None

    def number(self, name: str) -> float | None:
        """Return a number field."""
        value = self._take(name)
        if isinstance(value, int | float):
            return value
        self._add_type_problem(name, "a number")
        return None

    def mapping(self, name: str) -> JsonObject | None:
        """Return an object field with arbitrary keys."""
        value = self._take(name)
        if not isinstance(value, Mapping):
            self._add_type_problem(name, "an object")
            return None
        if _is_nested_deeper(value, MAX_DEPTH):
            self.add_problem(f"{name!r} is nested deeper than {MAX_DEPTH} levels", name)
            return None
        return value

    def object(self, name: str, *, noun: str, hint: str | None = None) -> "JsonFields | None":
        """Return an object field with known fields.

        Args:
            noun: what it is, for problems: "an invocation".
            hint: what the user can do if the type is wrong.
        """
        value = self._take(name)
        if isinstance(value, Mapping):
            return self._inner(value, noun, self._key(name))
        self._add_type_problem(name, "an object", hint)
        return None

    def objects(self, name: str, *, noun: str) -> Iterator["JsonFields"]:
        """Iterate over a list of objects with known fields; ``noun`` names one of them."""
        items = self._take(name)
        if not isinstance(items, list):
            self._add_type_problem(name, "a list")
            return
        for index, value in enumerate(items):
            if isinstance(value, Mapping):
                yield self._inner(value, noun, self._key(name), index)
            else:
                self.add_problem(f"{noun} is {_format_type(value)}, not an object", name, index)

    def check_unknown_keys(self, *others: str) -> None:
        """Report every key that was not read and is not in ``others``."""
        for name in others:
            self._take(name)
        known = [*self._names, *map(to_camel_case, self._names)]
        for key in self._value:
            if key not in known:
                hint = suggest_name(key, known)
                self.add_problem(f"{self._noun} has no key {quote_name(key)}", key, hint=hint)

    def add_problem(self, message: str, *steps: Step, hint: str | None = None) -> None:
        """Report a problem of this object, or of the value at ``steps``."""
        first, rest = steps[:1], steps[1:]
        key = (self._key(step) if isinstance(step, str) else step for step in first)
        self.problems.append(
            JsonFieldProblem(path=(*self.path, *key, *rest), message=message, hint=hint)
        )

    def _take(self, name: str) -> Json:
        if name not in self._names:
            self._names[name] = None
            if (
                name in self._value
                and to_camel_case(name) != name
                and to_camel_case(name) in self._value
            ):
                self.add_problem(
                    f"{name!r} and {to_camel_case(name)!r} are the same key", to_camel_case(name)
                )
        return self._value.get(self._key(name))

    def _key(self, name: str) -> str:
        """Return the spelling of ``name`` in the file."""
        return name if name in self._value else to_camel_case(name)

    def _inner(self, value: JsonObject, noun: str, *steps: Step) -> "JsonFields":
        return JsonFields(value, noun=noun, path=(*self.path, *steps), complaints=self.problems)

    def _add_type_problem(self, name: str, kind: str, hint: str | None = None) -> None:
        value = self._take(name)
        if value is not None:
            self.add_problem(
                f"{self._key(name)!r} is {_format_type(value)}, not {kind}", name, hint=hint
            )


@cache
def to_camel_case(name: str) -> str:
    """Convert ``user_content`` to ``userContent``."""
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _format_type(value: Json) -> str:
    return JSON_TYPE_NAMES[type(value)]


def _is_nested_deeper(value: Json, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_nested_deeper(each, levels - 1) for each in inner)


_NUMBER_CHARACTERS: Final = re.compile(r"[-+.eE0-9]*")
_SURROGATES: Final = ("\\ud", "\\uD")


def read_large_object(
    chunks: Iterable[bytes], arrays: Mapping[str, Callable[[Json], object]]
) -> dict[str, Json]:
    """Read an object in UTF-8 as strictly as ``read_json``.

    Args:
        arrays: called with each item of the top-level arrays of these names, in file order; an
            array is then empty in the result.

    Raises:
        ValueError: the text is not such an object; ``read_json`` says why.
        RecursionError: it is nested too deeply.
    """
    text = _Text(chunks)
    members: dict[str, Json] = {}
    for key in text.iterate_items("{", "}"):
        if not isinstance(key, str) or key in members or text.next_character() != ":":
            raise ValueError
        text.skip()
        if key in arrays and text.next_character() == "[":
            members[key] = ()
            for item in text.iterate_items("[", "]"):
                arrays[key](item)
        else:
            members[key] = text.read_value()
    if text.next_character():
        raise ValueError
    return members


class _Text:
    """The text of a file, with a window of it in memory, and a position in it."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = _decode_chunks(chunks)
        self._window = ""
        self._position = 0

    def next_character(self) -> str:
        """Skip blanks and return the character there; empty at the end."""
        while True:
            blanks = BLANKS.match(self._window, self._position)
            self._position = blanks.end() if blanks else self._position
            if self._position < len(self._window):
                return self._window[self._position]
            if not self._extend():
                return ""

    def skip(self) -> None:
        """Skip one character."""
        self._position += 1

    def iterate_items(self, opening: str, closing: str) -> Iterator[Json]:
        """Yield the items of an array, or the keys of an object, whose values the caller reads."""
        if self.next_character() != opening:
            raise ValueError
        self.skip()
        if self.next_character() != closing:
            yield self.read_value()
            while self.next_character() == ",":
                self.skip()
                yield self.read_value()
        if self.next_character() != closing:
            raise ValueError
        self.skip()

    def read_value(self) -> Json:
        """Read the value at the position; extends the window as needed."""
        self.next_character()
        while True:
            value: Json
            try:
                value, end = STRICT_DECODER.raw_decode(self._window, self._position)
            except ValueError:
                if not self._extend():
                    raise
                continue
            # A number may go on in the next chunk: "1." and "1e-" are read as 1.
            may_go_on = isinstance(value, int | float) and self._is_number_at_end(end)
            if may_go_on and self._extend():
                continue
            start, self._position = self._position, end
            has_escape = any(self._window.find(each, start, end) >= 0 for each in _SURROGATES)
            if has_escape and has_lone_surrogate(self._window[start:end]):
                raise ValueError
            return value

    def _is_number_at_end(self, position: int) -> bool:
        rest = _NUMBER_CHARACTERS.match(self._window, position)
        return rest is not None and rest.end() == len(self._window)

    def _extend(self) -> bool:
        """Double the rest of the window, so that a long value is parsed only a few times."""
        rest = self._window[self._position :]
        parts, size = [rest], 0
        for chunk in self._chunks:
            parts.append(chunk)
            size += len(chunk)
            if size and size >= len(rest):
                break
        self._window, self._position = "".join(parts), 0
        return size > 0


def _decode_chunks(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)
