"""Strict JSON for programs and readable JSON for people."""

import json
import math
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from agentci._util.text.json_text import (
    MAX_DEPTH,
    EncodedObject,
    dumps,
    dumps_compact,
    dumps_readable,
    make_strict,
)
from agentci.model.values import Json

ANY_TEXT = st.text(st.characters(codec=None), max_size=10)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
)


class LibraryString(str):
    """A string subclass with another ``str()``."""

    __slots__ = ()

    def __str__(self) -> str:
        return "words"


class LibraryFloat(float):
    """A float subclass, such as numpy's ``float64``."""


class LibraryInt(int):
    """An int subclass."""


def _refuse(constant: str) -> Any:
    raise AssertionError(constant)


@given(ANY_JSON)
def test_any_value_is_written_as_strict_json(value: Any) -> None:
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
        pytest.param({"\ud800": "\udfff"}, r'{"\ufffd": "\ufffd"}', id="unpaired surrogate"),
        pytest.param("é", r'"\u00e9"', id="letters are escaped"),
        pytest.param("##[error]", r'"##\u005berror]"', id="workflow command"),
        pytest.param((1, True, None), "[1, true, null]", id="tuples are arrays"),
        pytest.param(MappingProxyType({"a": 1}), '{"a": 1}', id="mappings are objects"),
        pytest.param(
            [
                LibraryString("é"),
                LibraryString("\ud800"),
                LibraryFloat(0.5),
                LibraryFloat("nan"),
                LibraryInt(2**64),
            ],
            r'["\u00e9", "\ufffd", 0.5, null, 18446744073709551616]',
            id="subclasses of strings and numbers",
        ),
        pytest.param(
            [{}] * MAX_DEPTH + [r"\ud800"],
            "[" + "{}, " * MAX_DEPTH + r'"\\ud800"]',
            id="neither deep nor a surrogate",
        ),
    ],
)
def test_value_is_written_for_programs(value: Any, expected: str) -> None:
    assert dumps(value) == expected


def test_readable_json_keeps_unicode_letters() -> None:
    assert dumps_readable({"é": [1, "中"]}) == '{"é": [1, "中"]}'
    assert dumps_compact({"é": [1, "中"]}) == '{"é":[1,"中"]}'


def test_deep_nesting_is_cut_with_note() -> None:
    deep: Any = "bottom"
    for _ in range(5_000):
        deep = [deep]
    for text in (dumps(deep), dumps_readable(deep), dumps_compact(deep)):
        assert text.count("[") == MAX_DEPTH
        assert "nested" in text


def test_value_outside_json_raises_type_error() -> None:
    with pytest.raises(TypeError, match="object"):
        dumps_compact([object()])  # type: ignore[list-item]


def test_encoded_object_is_like_its_value() -> None:
    value: dict[str, Any] = {"a": [1, {"b": "\u00e9"}], "c": None}
    encoded = EncodedObject(value)
    assert encoded == value
    assert (len(encoded), [*encoded], encoded["a"]) == (2, ["a", "c"], value["a"])
    assert dumps({"details": encoded}) == dumps({"details": value})
    assert make_strict(encoded) == value
    assert (bool(encoded), bool(EncodedObject({}))) == (True, False)


class _Documented(Struct, omit_defaults=True):
    args: Json = None
    id: str | None = None
    notes: tuple[str, ...] = ()


def test_deep_struct_with_values_of_json_is_encoded() -> None:
    many: Json = [{} for _ in range(MAX_DEPTH + 1)]
    assert json.loads(dumps_compact(_Documented(args=many))) == {"args": many}
