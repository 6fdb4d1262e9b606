"""Decodes the attributes, values, ids and times of spans to plain values."""

import binascii
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from agentci._util.text.json_text import is_shallow
from agentci.model.json import Json
from agentci.recordings.telemetry import json_input, semconv
from agentci.recordings.telemetry.json_input import parse_int64
from agentci.recordings.telemetry.semconv import AttributeNames

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8
_HEX: Final = re.compile(r"[0-9a-f]+")


def parse_trace_id(raw: Json) -> str | None:
    """Return the trace id in lower case; None if it is missing or invalid."""
    return _parse_id(raw, TRACE_ID_BYTES) if isinstance(raw, str) else None


def parse_span_id(raw: Json) -> str | None:
    """Return the span id in lower case; None if it is missing or invalid."""
    return _parse_id(raw, SPAN_ID_BYTES) if isinstance(raw, str) else None


def explain_rejected_ids(trace: Json, span: Json) -> str:
    """Explain why a span is rejected that has a missing or invalid id."""
    if trace in (None, "") or span in (None, ""):
        return "no traceId or spanId field"
    return "invalid trace or span id"


# Neighbouring spans share ids: the cache saves work, and all of them share one string.
@lru_cache(maxsize=1024)
def _parse_id(raw: str, size: int) -> str | None:
    text = raw.strip()
    lower = text.lower()
    if len(text) == 2 * size and _HEX.fullmatch(lower):
        return lower if lower.strip("0") else None
    return _base64_to_hex(text, size) or lower or None


def _base64_to_hex(text: str, size: int) -> str | None:
    try:
        decoded = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None
    return decoded.hex() if len(decoded) == size and any(decoded) else None


MAX_INTERNED_CHARS: Final = 40


def decode_attributes(raw: Json, names: AttributeNames) -> dict[str, Json]:
    """Decode the attributes that agentci reads, by name.

    Args:
        raw: OTLP's list of keys and values, where the last value of a key wins and
            ``REPEATED_ATTRIBUTE`` names one with two values, or a (nested) object, which is
            flattened to dotted names.
        names: the attributes to decode; others are skipped.
    """
    if isinstance(raw, list):
        found: dict[str, Json] = {}
        for entry in json_input.iterate_objects(raw):
            name, value = entry.get("key"), entry.get("value")
            if isinstance(name, str) and names.has(name) and isinstance(value, dict):
                text = value.get("stringValue")
                if isinstance(text, str):
                    decoded: Json = intern_short_text(text)
                elif (kind := _find_value_type(value)) is not None:
                    decoded = _DECODERS[kind](value[kind], 0)
                else:
                    continue
                if name in found and found[name] != decoded:
                    found[semconv.REPEATED_ATTRIBUTE] = name
                found[intern_short_text(name)] = decoded
        return found
    return dict(_flatten_attributes(raw, names, "", 0)) if isinstance(raw, dict) else {}


def decode_any_value(raw: Json, depth: int = 0) -> Json:
    """Decode an OTLP AnyValue; None if it is empty or nested too deeply."""
    if depth > json_input.MAX_DEPTH or not isinstance(raw, dict):
        return None
    kind = _find_value_type(raw)
    return None if kind is None else _DECODERS[kind](raw[kind], depth)


def intern_short_text(value: str) -> str:
    """Return the same text, interned if it is short and so likely repeated."""
    return sys.intern(value) if len(value) <= MAX_INTERNED_CHARS else value


def _flatten_attributes(
    raw: Mapping[str, Json], names: AttributeNames, prefix: str, depth: int
) -> Iterator[tuple[str, Json]]:
    for key, value in raw.items():
        name = prefix + key
        # Tool arguments given as an object are a value, so they are not flattened.
        if isinstance(value, dict) and name not in names.exact and depth < json_input.MAX_DEPTH:
            yield from _flatten_attributes(value, names, f"{name}.", depth + 1)
        elif names.has(name):
            yield intern_short_text(name), clean_json_value(value)


def clean_json_value(value: Json) -> Json:
    """Return a plain JSON value; None if it is nested too deeply."""
    if isinstance(value, str):
        return intern_short_text(value)
    return value if is_shallow(value, json_input.MAX_DEPTH) else None


def _find_value_type(raw: Mapping[str, Json]) -> str | None:
    return next((kind for kind in _DECODERS if raw.get(kind) is not None), None)


def _decode_string(raw: Json, _: int) -> Json:
    return raw if isinstance(raw, str) else str(raw)


def _decode_array(raw: Json, depth: int) -> Json:
    values = raw.get("values") if isinstance(raw, dict) else None
    return [decode_any_value(value, depth + 1) for value in json_input.iterate_objects(values)]


def _decode_object(raw: Json, depth: int) -> Json:
    values = raw.get("values") if isinstance(raw, dict) else None
    return {
        key: decode_any_value(entry.get("value"), depth + 1)
        for entry in json_input.iterate_objects(values)
        if isinstance(key := entry.get("key"), str)
    }


# In order of precedence. Bytes stay base64: no rule reads them, and JSON has no bytes.
_DECODERS: Final[Mapping[str, Callable[[Json, int], Json]]] = {
    "stringValue": _decode_string,
    "boolValue": lambda raw, _: bool(raw),
    "intValue": lambda raw, _: json_input.parse_int64(raw) or 0,
    "doubleValue": lambda raw, _: json_input.parse_finite_float(raw),
    "bytesValue": _decode_string,
    "arrayValue": _decode_array,
    "kvlistValue": _decode_object,
}


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Numbers below are seconds, milliseconds and microseconds since 1970 of years before 5000.
_UNITS: Final = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))


def parse_timestamp(value: Json) -> int:
    """Return the nanoseconds since 1970; 0 if it is no point in time.

    Args:
        value: an ISO 8601 text, by default in UTC, or a number of seconds, milliseconds,
            microseconds or nanoseconds.
    """
    if isinstance(value, str) and not value.isdigit():
        return _parse_text(value)
    number = parse_int64(value) or 0
    return number * next((factor for limit, factor in _UNITS if number < limit), 1)


def _parse_text(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
        passed = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    except ValueError:
        return 0
    return passed // timedelta(microseconds=1) * 1000
