"""OTLP's attributes and values, in every shape that files hold, as plain JSON values."""

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from agentci.model.json import Json
from agentci.recordings.telemetry.json_input import MAX_DEPTH, is_shallow, objects_in, real, whole
from agentci.recordings.telemetry.semconv import Names

MAX_INTERNED_CHARS: Final = 40


def attributes(raw: Json, names: Names) -> dict[str, Json]:
    """The attributes that are read, by name.

    Args:
        raw: OTLP's list of keys and values, of which the last of a key wins, or a (nested) object
            that is flattened to dotted names.
        names: what is read; values of other attributes are never decoded.
    """
    if isinstance(raw, list):
        return _listed(raw, names)
    return dict(_flattened(raw, names, "", 0)) if isinstance(raw, dict) else {}


def any_value(raw: Json, depth: int = 0) -> Json:
    """The value of an OTLP AnyValue; None where it has none or is nested too deeply."""
    if depth > MAX_DEPTH or not isinstance(raw, dict):
        return None
    kind = _kind(raw)
    return None if kind is None else _DECODERS[kind](raw[kind], depth)


def interned(value: str) -> str:
    """The value itself; one string for all its copies where it is short and likely repeated."""
    return sys.intern(value) if len(value) <= MAX_INTERNED_CHARS else value


def _listed(raw: list[Json], names: Names) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for entry in objects_in(raw):
        name, value = entry.get("key"), entry.get("value")
        if isinstance(name, str) and names.has(name) and isinstance(value, dict):
            text = value.get("stringValue")
            if isinstance(text, str):
                found[interned(name)] = interned(text)
            elif (kind := _kind(value)) is not None:
                found[interned(name)] = _DECODERS[kind](value[kind], 0)
    return found


def _flattened(
    raw: Mapping[str, Json], names: Names, prefix: str, depth: int
) -> Iterator[tuple[str, Json]]:
    for key, value in raw.items():
        name = prefix + key
        # Tool arguments given as an object are a value, not a level of names.
        if isinstance(value, dict) and name not in names.exact and depth < MAX_DEPTH:
            yield from _flattened(value, names, f"{name}.", depth + 1)
        elif names.has(name):
            yield interned(name), plain(value)


def plain(value: Json) -> Json:
    """A value as it stands in the file, None where it is nested too deeply."""
    if isinstance(value, str):
        return interned(value)
    return value if is_shallow(value) else None


def _kind(raw: Mapping[str, Json]) -> str | None:
    return next((kind for kind in _DECODERS if raw.get(kind) is not None), None)


def _string(raw: Json, _: int) -> Json:
    return raw if isinstance(raw, str) else str(raw)


def _array(raw: Json, depth: int) -> Json:
    values = raw.get("values") if isinstance(raw, dict) else None
    return [any_value(value, depth + 1) for value in objects_in(values)]


def _object(raw: Json, depth: int) -> Json:
    values = raw.get("values") if isinstance(raw, dict) else None
    return {
        key: any_value(entry.get("value"), depth + 1)
        for entry in objects_in(values)
        if isinstance(key := entry.get("key"), str)
    }


# In the order of precedence. Bytes stay base64: no rule reads them, and JSON has no better form.
_DECODERS: Final[Mapping[str, Callable[[Json, int], Json]]] = {
    "stringValue": _string,
    "boolValue": lambda raw, _: bool(raw),
    "intValue": lambda raw, _: whole(raw) or 0,
    "doubleValue": lambda raw, _: real(raw),
    "bytesValue": _string,
    "arrayValue": _array,
    "kvlistValue": _object,
}
