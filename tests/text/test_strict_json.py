"""JSON that every parser takes."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.text.strict_json import MAX_DEPTH, dumps, readable, strict

ANY_TEXT = st.text(st.characters(codec=None), max_size=10)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
)


def _refuse(constant: str) -> Any:
    raise AssertionError(constant)


@given(ANY_JSON)
def test_any_value_is_written_and_read_back_as_strict_json(value: Any) -> None:
    for text in (dumps(value), readable(value)):
        assert json.loads(text, parse_constant=_refuse) == strict(value)
        assert "\n" not in text
        assert text.encode()
    assert dumps(value).isascii()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(math.nan, "null", id="not a number"),
        pytest.param([math.inf, -math.inf], "[null, null]", id="infinities"),
        pytest.param({"\ud800": "\udfff"}, r'{"\ufffd": "\ufffd"}', id="half a pair"),
        pytest.param("é", r'"\u00e9"', id="letters are escaped"),
        pytest.param("##[error]", r'"##\u005berror]"', id="a command of the runner"),
        pytest.param((1, True, None), "[1, true, null]", id="tuples are arrays"),
    ],
)
def test_programs_get(value: Any, expected: str) -> None:
    assert dumps(value) == expected


def test_people_get_letters_as_they_are() -> None:
    assert readable({"é": "中"}) == '{"é": "中"}'


def test_what_is_too_deep_is_said_to_be() -> None:
    deep: Any = "bottom"
    for _ in range(5_000):
        deep = [deep]
    text = dumps(deep)
    assert text.count("[") == MAX_DEPTH
    assert "nested" in text
