"""Reads JSON: plain values in a third of the time, all others as their reader wants them."""

import json
from typing import Final

import msgspec

from agentci.model.json import Json

_QUICK: Final = msgspec.json.Decoder()


def decoded(text: str, thorough: json.JSONDecoder) -> Json:
    """The value of JSON text; as ``thorough.decode``, with its errors.

    Args:
        thorough: is asked about what cannot be read quickly: broken text, numbers beyond all
            floats or of thousands of digits, names of numbers that JSON does not have.
    """
    try:
        value: Json = _QUICK.decode(text)
    except (ValueError, RecursionError):
        return thorough.decode(text)  # type: ignore[no-any-return]
    return value
