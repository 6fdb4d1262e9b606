"""JSON is read quickly, and means what a thorough reader makes of it."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentci._util.text.json_text import decode_json

THOROUGH = json.JSONDecoder(parse_constant=lambda name: f"the constant {name}")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
)
# What JSON is made of, in any order.
SCRAPS = st.lists(
    st.sampled_from([*'[]{},:"', *" \t\n", "-", "0", "1", "9", ".", "e5", "E+400", "\\", "u"])
    | st.sampled_from(["NaN", "Infinity", "null", "true", "\\ud83d\\ude00", "\x00", "é", "\ufeff"]),
    max_size=12,
).map("".join)


def _outcome(read: Any, text: str) -> tuple[str, Any]:
    try:
        return "read", read(text)
    except ValueError as error:
        return "refused", str(error)


@given(PLAIN.map(json.dumps) | SCRAPS)
@example("1" * 5_000)
@example("-0")
@example("1e999")
@example('{"a": 1, "a": 2}')
@example('["\\ud83d\\ude00", "\\u00e9", "\\/"]')
@example("18446744073709551616")
@example("2.2250738585072014e-308")
def test_any_text_is_read_as_by_the_thorough_reader(text: str) -> None:
    quick = _outcome(lambda given: decode_json(given, THOROUGH), text)
    assert repr(quick) == repr(_outcome(THOROUGH.decode, text))


def test_the_thorough_reader_says_what_becomes_of_what_json_does_not_have() -> None:
    assert decode_json("[1, NaN]", THOROUGH) == [1, "the constant NaN"]
    assert decode_json("1e999", THOROUGH) == math.inf


def test_what_is_nested_too_deeply_is_refused_as_by_it() -> None:
    with pytest.raises(RecursionError):
        decode_json("[" * 200_000, THOROUGH)
