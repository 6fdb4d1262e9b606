"""JSON that every parser takes."""

import json
import math
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text.json_text import (
    MAX_DEPTH,
    dumps,
    dumps_compact,
    dumps_readable,
    make_strict,
)

ANY_TEXT = st.text(st.characters(codec=None), max_size=10)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
)


class Words(str):
    """Text of a library, which says more of itself than what it is."""

    __slots__ = ()

    def __str__(self) -> str:
        return "words"


class Half(float):
    """As numpy's ``float64``."""


class Whole(int):
    """As whole numbers of libraries."""


def _refuse(constant: str) -> Any:
    raise AssertionError(constant)


@given(ANY_JSON)
def test_any_value_is_written_and_read_back_as_strict_json(value: Any) -> None:
    for text in (dumps(value), dumps_readable(value), dumps_compact(value)):
        assert json.loads(text, parse_constant=_refuse) == make_strict(value)
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
        pytest.param(MappingProxyType({"a": 1}), '{"a": 1}', id="mappings are objects"),
        pytest.param(
            [Words("é"), Words("\ud800"), Half(0.5), Half("nan"), Whole(2**64)],
            r'["\u00e9", "\ufffd", 0.5, null, 18446744073709551616]',
            id="what libraries make of texts and numbers",
        ),
        pytest.param(
            [{}] * MAX_DEPTH + [r"\ud800"],
            "[" + "{}, " * MAX_DEPTH + r'"\\ud800"]',
            id="what looks deep or like half a pair",
        ),
    ],
)
def test_programs_get(value: Any, expected: str) -> None:
    assert dumps(value) == expected


def test_people_get_letters_as_they_are() -> None:
    assert dumps_readable({"é": [1, "中"]}) == '{"é": [1, "中"]}'
    assert dumps_compact({"é": [1, "中"]}) == '{"é":[1,"中"]}'


def test_what_is_too_deep_is_said_to_be() -> None:
    deep: Any = "bottom"
    for _ in range(5_000):
        deep = [deep]
    for text in (dumps(deep), dumps_readable(deep), dumps_compact(deep)):
        assert text.count("[") == MAX_DEPTH
        assert "nested" in text


def test_what_is_no_json_is_an_error() -> None:
    with pytest.raises(TypeError, match="object"):
        dumps_compact([object()])  # type: ignore[list-item]
