"""JSON that every parser reads: no NaN, no halves of surrogate pairs, nothing too deep."""

import json
import math
from collections.abc import Mapping, Sequence

from agentci.model.json import Json
from agentci.text.escape import encodable

MAX_DEPTH = 100


def dumps(value: Json) -> str:
    r"""One line of pure ASCII for programs.

    NaN and infinities are null, what lies too deep is said to be. ``##[`` is written with an
    escape, so that a file printed to a workflow's log commands nothing.
    """
    text = json.dumps(strict(value), allow_nan=False)
    return text.replace("##[", r"##\u005b")


def readable(value: Json) -> str:
    """One line for people: as ``dumps``, with all letters as they are, and not escaped for logs."""
    return json.dumps(strict(value), ensure_ascii=False)


def strict(value: Json, depth: int = 0) -> Json:
    """``value`` with what JSON cannot say replaced."""
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
