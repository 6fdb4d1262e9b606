"""Encodes JSON that every parser can read, and decodes JSON, quickly or strictly."""

import json
import math
import re
from collections import Counter
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from agentci._util.text.escape import replace_surrogates
from agentci._util.text.suggest import quote_name
from agentci.model.values import Json, JsonObject

MAX_DEPTH = 100
# Every integer with as many digits is less than the largest float.
MAX_INTEGER_DIGITS: Final = 308

_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")


def dumps(value: "Json | Struct") -> str:
    r"""Encode for programs: like ``dumps_readable``, in ASCII.

    ``##[`` is escaped, so that a file printed to a workflow log runs no command.
    """
    return _escape(dumps_readable(value))


def _escape(text: str) -> str:
    if not text.isascii():  # only strings can contain other characters
        text = _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    return text.replace("##[", r"##\u005b")


def dumps_for_html(value: "Json | Struct") -> str:
    """Encode like ``dumps``, without spaces and so that it cannot end a ``script`` element."""
    return _escape(dumps_compact(value)).replace("<", r"\u003c")


def dumps_readable(value: "Json | Struct") -> str:
    """Encode like ``dumps_compact``, with spaces."""
    return msgspec.json.format(dumps_compact(value), indent=0)


def dumps_compact(value: "Json | Struct") -> str:
    """Encode ``make_strict(value)`` on one line; most values are strict and need no conversion."""
    try:
        text = _ENCODER.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return _ENCODER.encode(make_strict(value)).decode()
    # Each level takes two characters.
    may_be_deep = len(text) > 2 * MAX_DEPTH and text.count("[") + text.count("{") > MAX_DEPTH
    return _ENCODER.encode(make_strict(value)).decode() if may_be_deep else text


class EncodedObject(Mapping[str, Json]):
    """A JSON object that is kept as text, which takes a tenth of the memory."""

    __slots__ = ("_text",)

    def __init__(self, value: Mapping[str, Json]) -> None:
        self._text = dumps_compact(value)

    def __getitem__(self, key: str) -> Json:
        return self._decode()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decode())

    def __len__(self) -> int:
        return len(self._decode())

    def __bool__(self) -> bool:
        return self._text != "{}"

    def items(self) -> ItemsView[str, Json]:
        """Decode once, not once per member."""
        return self._decode().items()

    @property
    def raw(self) -> msgspec.Raw:
        """The text, for an encoder."""
        return msgspec.Raw(self._text)

    def _decode(self) -> dict[str, Json]:
        value: dict[str, Json] = _QUICK.decode(self._text)
        return value


def _convert_subclass(value: object) -> "Json | msgspec.Raw":
    """Convert an encoded object, or an instance of a str or number subclass, to the plain type."""
    if isinstance(value, EncodedObject):
        return value.raw
    if isinstance(value, str):
        return str.__str__(value)
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_convert_subclass)


def format_array(items: Iterable[str], *, indent: str = "") -> Iterator[str]:
    """Yield an array with one item of JSON per line, which is fast to write and easy to diff."""
    before = "["
    for item in items:
        yield f"{before}\n{indent * 2}{item}"
        before = ","
    yield "[]" if before == "[" else f"\n{indent}]"


def make_strict(value: "Json | Struct", depth: int = 0) -> Json:
    """Replace what JSON cannot represent: by null, by U+FFFD, or by a note.

    A struct becomes an object.
    """
    if isinstance(value, str):
        return value if value.isascii() else replace_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return (
        value if value is None or isinstance(value, int) else _make_strict_inside(value, depth + 1)
    )


def _make_strict_inside(value: "Mapping[str, Json] | Sequence[Json] | Struct", depth: int) -> Json:
    if depth > MAX_DEPTH:
        return f"(nested more than {MAX_DEPTH} levels deep)"
    if isinstance(value, Struct):
        defaults = _list_omitted(type(value))
        members = msgspec.structs.asdict(value).items()
        value = {name: v for name, v in members if name not in defaults or v != defaults[name]}
    if isinstance(value, dict | Mapping):  # dict first, as it is faster
        return {
            key if key.isascii() else replace_surrogates(key): make_strict(v, depth)
            for key, v in value.items()
        }
    return [make_strict(item, depth) for item in value]


@lru_cache
def _list_omitted(kind: type[Struct]) -> Mapping[str, object]:
    """List the fields that are not encoded if they have their default."""
    if not kind.__struct_config__.omit_defaults:
        return {}
    # Without `msgspec.structs.fields`, which evaluates annotations: those of JSON name types that
    # the module of the struct does not import.
    defaults = kind.__struct_defaults__
    names = kind.__struct_fields__[len(kind.__struct_fields__) - len(defaults) :]
    return {name: _make_default(value) for name, value in zip(names, defaults, strict=True)}


def _make_default(default: object) -> object:
    """Return the default that a struct keeps, or makes for each new value, such as a list."""
    make = getattr(default, "factory", None)
    return default if make is None else make()


def is_shallow(value: Json, levels: int) -> bool:
    """Return whether a value is nested at most ``levels`` deep."""
    level: list[Json] = [value]
    for _ in range(levels + 1):
        level = [inner for outer in level for inner in _iterate_children(outer)]
        if not level:
            return True
    return False


def _iterate_children(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


_LONG_INTEGER: Final = b"0" * (MAX_INTEGER_DIGITS + 1)
_ZEROS_FOR_DIGITS: Final = bytes.maketrans(b"123456789", b"0" * 9)


def _mask_digits(text: str) -> bytes:
    """Replace all digits by 0, so that one quick search finds any long integer."""
    return text.encode("utf-8", "surrogatepass").translate(_ZEROS_FOR_DIGITS)


_QUICK: Final = msgspec.json.Decoder()


def decode_json(text: str, thorough: json.JSONDecoder) -> Json:
    """Decode JSON text like ``thorough.decode``, with its errors.

    Args:
        thorough: used if the fast decoder fails or may return an integer beyond the range of
            floats: for invalid text, numbers with hundreds of digits, and names such as NaN.
    """
    if len(text) > MAX_INTEGER_DIGITS and _LONG_INTEGER in _mask_digits(text):
        return thorough.decode(text)  # type: ignore[no-any-return]
    try:
        value: Json = _QUICK.decode(text)
    except (ValueError, RecursionError):
        return thorough.decode(text)  # type: ignore[no-any-return]
    return value


class StrictJsonError(ValueError):
    """The text is JSON, but not every parser would read it alike; the message names the part."""


def decode_strict_json(text: str) -> Json:
    """Decode JSON text in which every value has only one reading.

    Raises:
        json.JSONDecodeError: it is not JSON.
        StrictJsonError: a key appears twice in one object, a number is not finite or beyond the
            range of floats, or the value is nested more than ``MAX_DEPTH`` levels deep.
    """
    try:
        value: Json = _DECODER.decode(text)
    except RecursionError:
        raise StrictJsonError(_TOO_DEEP) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and not is_shallow(value, MAX_DEPTH):
        raise StrictJsonError(_TOO_DEEP)
    return value


_TOO_DEEP: Final = f"the JSON is nested more than {MAX_DEPTH} levels deep"


def name_json_error(error: json.JSONDecodeError) -> str:
    """Name what is wrong, to stand after its place: Python's messages expect the place behind."""
    text = error.msg.removesuffix(" at").removesuffix(" starting")
    return f"{text[:1].lower()}{text[1:]}"


def describe_json_error(error: Exception) -> str:
    """Describe why a text could not be decoded, with the line and column in it."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    return f"{name_json_error(error)} at line {error.lineno}, column {error.colno}"


def _make_object(members: list[tuple[str, Json]]) -> JsonObject:
    value = dict(members)
    if len(value) != len(members):
        [(twice, _)] = Counter(name for name, _ in members).most_common(1)
        raise StrictJsonError(f"the key {quote_name(twice)} appears twice in one object")
    return value


def _parse_float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _reject_number(digits)


def _parse_int(digits: str) -> int:
    # An integer beyond the range of floats cannot be compared with one, and with more digits than
    # Python parses it has no value at all.
    if len(digits) > MAX_INTEGER_DIGITS:
        _reject_number(digits)
    return int(digits)


def _reject_number(digits: str) -> float:
    raise StrictJsonError(f"the number {quote_name(digits)} is out of range")


def _reject_constant(name: str) -> float:
    raise StrictJsonError(f"`{name}` is not a JSON number; use null")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_make_object,
    parse_float=_parse_float,
    parse_int=_parse_int,
    parse_constant=_reject_constant,
)
