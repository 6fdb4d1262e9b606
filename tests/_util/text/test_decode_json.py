"""Fast decoding gives the same result as the ``json`` module."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentci._util.text.json_text import decode_json

REFERENCE = json.JSONDecoder(parse_constant=lambda name: f"the constant {name}")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
)
# Tokens of JSON, in any order.
SCRAPS = st.lists(
    st.sampled_from([*'[]{},:"', *" \t\n", "-", "0", "1", "9", ".", "e5", "E+400", "\\", "u"])
    | st.sampled_from(["NaN", "Infinity", "null", "true", "\\ud83d\\ude00", "\x00", "é", "\ufeff"]),
    max_size=12,
).map("".join)


def _outcome(read: Any, text: str) -> tuple[str, Any]:
    try:
        return "read", read(text)
    except ValueError as error:
        return "rejected", str(error)


@given(PLAIN.map(json.dumps) | SCRAPS)
@example("1" * 5_000)
@example("-0")
@example("1e999")
@example('{"a": 1, "a": 2}')
@example('["\\ud83d\\ude00", "\\u00e9", "\\/"]')
@example("18446744073709551616")
@example("2.2250738585072014e-308")
def test_any_text_is_decoded_as_by_json_module(text: str) -> None:
    fast = _outcome(lambda given: decode_json(given, REFERENCE), text)
    assert repr(fast) == repr(_outcome(REFERENCE.decode, text))


def test_fallback_decoder_handles_constants_outside_json() -> None:
    assert decode_json("[1, NaN]", REFERENCE) == [1, "the constant NaN"]
    assert decode_json("1e999", REFERENCE) == math.inf


def test_deep_nesting_raises_recursion_error() -> None:
    with pytest.raises(RecursionError):
        decode_json("[" * 200_000, REFERENCE)
