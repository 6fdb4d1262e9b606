"""Every value in decoded JSON has only one reading."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text.json_document import TooManyBracesError, find_json_objects
from agentci._util.text.json_text import (
    MAX_DEPTH,
    StrictJsonError,
    decode_strict_json,
    describe_json_error,
    name_json_error,
)
from agentci.model.values import Json


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
        ("9" * 308, int("9" * 308)),
        ("-" + "9" * 307, -int("9" * 307)),
        ("[{}, {}]", [{}, {}]),
    ],
)
def test_value_is_decoded(text: str, value: Json) -> None:
    assert decode_strict_json(text) == value


def test_nesting_is_limited() -> None:
    assert decode_strict_json(nested(MAX_DEPTH + 1)) is not None
    with pytest.raises(StrictJsonError, match="nested more than 100 levels deep"):
        decode_strict_json(nested(MAX_DEPTH + 2))


JSON_TEXTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
).map(json.dumps)
BROKEN_TEXTS = st.text(alphabet='{}[]",:0123456789NaInfity+-.e\\ud8')


@given(JSON_TEXTS | BROKEN_TEXTS)
def test_any_text_is_decoded_or_refused(text: str) -> None:
    with suppress(StrictJsonError, json.JSONDecodeError):
        decoded = decode_strict_json(text)
        assert decoded == json.loads(text)
        assert json.loads(json.dumps(decoded, allow_nan=False)) == decoded


FINITE_TEXTS = JSON_TEXTS.filter(lambda text: "NaN" not in text and "Infinity" not in text)


@given(before=st.text(alphabet='{}[]"a\\:, '), text=FINITE_TEXTS)
def test_all_objects_after_unclosed_text_are_found(before: str, text: str) -> None:
    objects: list[Json] = []
    json.loads(text, object_pairs_hook=lambda pairs: objects.append(dict(pairs)), parse_int=float)
    found = list(find_json_objects(f"{before}\n{text}"))
    # The hook returns None, so that these are the objects without lists, objects and null.
    flat = [each for each in objects if isinstance(each, dict) and None not in each.values()]
    assert all(each in found for each in flat if not any(map(_is_list, each.values())))


def _is_list(value: Json) -> bool:
    return isinstance(value, list)


def test_objects_in_strings_are_found() -> None:
    text = json.dumps({"a": json.dumps([{"b": "{"}])})
    assert {"b": "{"} in list(find_json_objects(f"so: {text}."))


@pytest.mark.parametrize("opened", ['{"a":', '{"a":[', '{"a"', "{"])
def test_time_to_find_objects_is_limited(opened: str) -> None:
    with suppress(TooManyBracesError):
        assert list(find_json_objects(opened * (200_000 // len(opened)))) == []


@pytest.mark.parametrize(
    ("text", "name", "column"),
    [
        pytest.param('"a\nb"', "invalid control character", 3, id="control character"),
        pytest.param('["a', "unterminated string", 2, id="unterminated string"),
        pytest.param('["\\x"]', "invalid \\escape", 3, id="escape"),
        pytest.param('["\\uD"]', "invalid \\uXXXX escape", 4, id="unicode escape"),
        pytest.param('{"a" 1}', "expecting ':' delimiter", 6, id="colon"),
        pytest.param("[1 2]", "expecting ',' delimiter", 4, id="comma"),
        pytest.param("1 2", "extra data", 3, id="extra data"),
        pytest.param("x", "expecting value", 1, id="no value"),
    ],
)
def test_json_error_is_a_whole_phrase_with_and_without_its_place(
    text: str, name: str, column: int
) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        decode_strict_json(text)
    assert name_json_error(caught.value) == name
    assert describe_json_error(caught.value) == f"{name} at line 1, column {column}"
