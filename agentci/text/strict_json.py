"""JSON that every parser reads: no NaN, no halves of surrogate pairs, nothing too deep."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Final

from agentci.model.json import Json
from agentci.text.escape import encodable

MAX_DEPTH = 100


def dumps(value: Json) -> str:
    r"""One line of pure ASCII for programs.

    NaN and infinities are null, what lies too deep is said to be. ``##[`` is written with an
    escape, so that a file printed to a workflow's log commands nothing.
    """
    return _written(value, _ASCII).replace("##[", r"##\u005b")


def in_a_page(value: Json) -> str:
    """As ``dumps``; of an element ``script`` it stands in, nothing of it is the end."""
    return dumps(value).replace("<", r"\u003c")


def readable(value: Json) -> str:
    """One line for people: as ``dumps``, with all letters as they are, and not escaped for logs."""
    return _written(value, _LETTERS)


def compact(value: Json) -> str:
    """As ``readable``, without spaces."""
    return _written(value, _COMPACT)


def strict(value: Json, depth: int = 0) -> Json:
    """``value`` with what JSON cannot say replaced."""
    if isinstance(value, str):
        return value if value.isascii() else encodable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else _inside(value, depth + 1)


_ASCII: Final = json.JSONEncoder(allow_nan=False)
_LETTERS: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False)
_COMPACT: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _written(value: Json, encoder: json.JSONEncoder) -> str:
    """``strict(value)``; most values are that already, which is quicker to see in the text."""
    try:
        text = encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        return encoder.encode(strict(value))
    may_be_deep = text.count("[") + text.count("{") > MAX_DEPTH
    may_have_halves = r"\ud" in text or encodable(text) != text
    return encoder.encode(strict(value)) if may_be_deep or may_have_halves else text


def _inside(value: Mapping[str, Json] | Sequence[Json], depth: int) -> Json:
    if depth > MAX_DEPTH:
        return f"(nested more than {MAX_DEPTH} levels deep)"
    if isinstance(value, dict | Mapping):  # quick to tell for most
        return {
            key if key.isascii() else encodable(key): strict(v, depth) for key, v in value.items()
        }
    return [strict(item, depth) for item in value]
