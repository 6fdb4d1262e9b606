"""Trace and span ids, read leniently as agentevals 0.11.0 reads them from files."""

import binascii
import re
from functools import lru_cache
from typing import Final

from agentci.model.json import Json

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8
_HEX: Final = re.compile(r"[0-9a-f]+")


def trace_id(raw: Json) -> str | None:
    """The trace id in lower case, None where there is none that can be used."""
    return _id(raw, TRACE_ID_BYTES) if isinstance(raw, str) else None


def span_id(raw: Json) -> str | None:
    """The span id in lower case, None where there is none that can be used."""
    return _id(raw, SPAN_ID_BYTES) if isinstance(raw, str) else None


def why_rejected(trace: Json, span: Json) -> str:
    """Why a span with these ids, one of which cannot be used, is left out."""
    if trace in (None, "") or span in (None, ""):
        return "no traceId or spanId field"
    return "invalid trace or span id"


# Neighbours in a file share their ids: the cache saves work, and one string serves them all.
@lru_cache(maxsize=1024)
def _id(raw: str, size: int) -> str | None:
    text = raw.strip()
    lower = text.lower()
    if len(text) == 2 * size and _HEX.fullmatch(lower):
        return lower if lower.strip("0") else None
    return _hex_of_base64(text, size) or lower or None


def _hex_of_base64(text: str, size: int) -> str | None:
    try:
        decoded = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None
    return decoded.hex() if len(decoded) == size and any(decoded) else None
