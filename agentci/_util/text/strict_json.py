"""JSON that every parser reads: no NaN, no halves of surrogate pairs, nothing too deep."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from agentci._util.text.escape import encodable
from agentci.model.json import Json

MAX_DEPTH = 100

_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")


def dumps(value: Json) -> str:
    r"""As ``readable``, for programs: of pure ASCII.

    ``##[`` is written with an escape, so that a file printed to a workflow's log commands nothing.
    """
    text = readable(value)
    if not text.isascii():  # which only strings can hold
        text = _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    return text.replace("##[", r"##\u005b")


def in_a_page(value: Json) -> str:
    """As ``dumps``; of an element ``script`` it stands in, nothing of it is the end."""
    return dumps(value).replace("<", r"\u003c")


def readable(value: Json) -> str:
    """As ``compact``, with spaces."""
    return msgspec.json.format(compact(value), indent=0)


def compact(value: Json) -> str:
    """``strict(value)`` on one line; what is that already is written as it is, which is quicker."""
    try:
        text = _ENCODER.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return _ENCODER.encode(strict(value)).decode()
    may_be_deep = text.count("[") + text.count("{") > MAX_DEPTH
    return _ENCODER.encode(strict(value)).decode() if may_be_deep else text


def _of_library(value: object) -> Json:
    """A text or number of a class of its own, as a plain one."""
    if isinstance(value, str):
        return str.__str__(value)
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_of_library)


def strict(value: Json, depth: int = 0) -> Json:
    """``value`` with what JSON cannot say replaced: by null, by a mark, or by a remark on it."""
    if isinstance(value, str):
        return value if value.isascii() else encodable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else _inside(value, depth + 1)


def _inside(value: Mapping[str, Json] | Sequence[Json], depth: int) -> Json:
    if depth > MAX_DEPTH:
        return f"(nested more than {MAX_DEPTH} levels deep)"
    if isinstance(value, dict | Mapping):  # quick to tell for most
        return {
            key if key.isascii() else encodable(key): strict(v, depth) for key, v in value.items()
        }
    return [strict(item, depth) for item in value]
