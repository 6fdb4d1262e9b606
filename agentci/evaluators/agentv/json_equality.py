"""Equality of JSON values and lookup by path, as AgentV defines them."""

import re
from collections.abc import Mapping

from agentci.model.json import Json


def equal_json(one: Json, other: Json) -> bool:
    """Compare deeply: 1 equals 1.0 but not true; lists compare in order, objects by key."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping):
        same = isinstance(other, Mapping) and one.keys() == other.keys()
        return same and all(equal_json(value, other[key]) for key, value in one.items())  # type: ignore[index,call-overload]  # (a mapping, by `same`)
    if isinstance(one, list | tuple):
        same = isinstance(other, list | tuple) and len(one) == len(other)
        return same and all(map(equal_json, one, other))  # type: ignore[arg-type]  # (a list, by `same`)
    return get_javascript_type(one) == get_javascript_type(other) and one == other


def get_javascript_type(value: Json) -> str:
    """Return the value's type as JavaScript's ``typeof`` names it."""
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "object"


def find_at_path(value: Json, path: str) -> tuple[bool, Json]:
    """Return whether a path such as ``items[0].price`` exists, and its value."""
    for step in filter(None, re.split(r"[.\[\]]", path)):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return False, None
    return True, value
