"""When two JSON values are the same, and what lies at a path in one, as AgentV sees it."""

import re
from collections.abc import Mapping

from agentci.model.json import Json


def equal_json(one: Json, other: Json) -> bool:
    """Deep equality: 1 is 1.0 and not true; lists in order, objects with the same keys."""
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
    """JavaScript's ``typeof``."""
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
    """Whether there is something at a path such as ``items[0].price``, and what."""
    for step in filter(None, re.split(r"[.\[\]]", path)):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return False, None
    return True, value
