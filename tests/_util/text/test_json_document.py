"""Strict reading of JSON files, with places and reasons in error messages."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text.json_document import read_json
from agentci.errors import InputError
from agentci.model.values import Place


def errors(data: bytes) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_json(data, file="f.json")
    return [str(problem) for problem in caught.value.problems]


def test_byte_order_mark_is_ignored() -> None:
    assert read_json(b'\xef\xbb\xbf{"a": 1}', file="f.json").value == {"a": 1}


def test_decimal_numbers_are_read() -> None:
    assert read_json(b"[0.25, -1e-3]", file="f.json").value == [0.25, -0.001]


def test_place_is_found_by_path() -> None:
    document = read_json(b'{"a":\n [1,\n  2]}', file="f.json")
    assert document.find_place(["a", 1]) == Place(file="f.json", line=3, column=3)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(b"", "f.json:1: the file is empty", id="empty"),
        pytest.param(
            b'{"a": "b\n"}',
            "f.json:1:9: the file is not JSON: invalid control character",
            id="control character",
        ),
        pytest.param(b"\xef\xbb\xbf \n", "f.json:1: the file is empty", id="blank"),
        pytest.param(
            '{"a": 1}'.encode("utf-16"),
            "f.json:1: the file is UTF-16 or UTF-32, not UTF-8 (save it as UTF-8)",
            id="UTF-16",
        ),
        pytest.param(
            b"\x00\x01\x02",
            "f.json:1:1: the file is binary, not text: it contains a NUL byte",
            id="binary",
        ),
        pytest.param(
            b'{\n"a": "\xe9"}',
            "f.json:2:7: the byte 0xE9 is not UTF-8 (it looks like Latin-1; save it as UTF-8)",
            id="Latin-1",
        ),
        pytest.param(
            b'{"a" 1}',
            "f.json:1:6: the file is not JSON: expecting ':' delimiter",
            id="invalid JSON",
        ),
        pytest.param(
            b"[" * 100_000,
            "f.json:1:1: the file is nested too deeply to be read",
            id="too deeply nested",
        ),
        pytest.param(
            b'{"NaN": "NaN",\n "b": [NaN]}',
            "f.json:2:8: a number is not finite, or has too many digits",
            id="NaN",
        ),
        pytest.param(
            b'{"a": "NaNN", "b": NaNN}',
            "f.json:1:20: a number is not finite, or has too many digits",
            id="NaN with a letter more",
        ),
        pytest.param(
            b'[1, true, {"b": -1e999}]',
            "f.json:1:17: a number is not finite, or has too many digits",
            id="float overflow",
        ),
        pytest.param(
            b"[" + b"1" * 5_000 + b"]",
            "f.json:1:2: a number is not finite, or has too many digits",
            id="too many digits",
        ),
        pytest.param(
            rb'["\u00e9 \ud83d\ude00", "\ude00"]',
            "f.json:1:25: an escape is an unpaired surrogate, not a whole character",
            id="unpaired surrogate",
        ),
    ],
)
def test_invalid_document_is_rejected(data: bytes, error: str) -> None:
    assert errors(data) == [error]


def test_every_duplicate_key_is_reported() -> None:
    text = rb"""{"a": 1, "b": {"a": 2, "\u0061": 3},
 "a": [{"c": "d"}, {"c": "d"}]}"""
    hint = "(only the last one would be used; remove the others)"
    assert errors(text) == [
        f"f.json:1:24: the key 'a' appears twice in one object {hint}",
        f"f.json:2:2: the key 'a' appears twice in one object {hint}",
    ]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"}}", id="too many brackets"),
        pytest.param(rb'{"\x": 1}', id="invalid escape"),
    ],
)
def test_duplicate_key_is_reported_before_syntax_error(rest: bytes) -> None:
    [error] = errors(b'[{"a": 1, "a": 2}' + rest)
    assert error.startswith("f.json:1:11: the key 'a' appears twice")


@given(st.binary() | st.text(alphabet='{}[]",:a1\\u.e9dN \n').map(str.encode))
def test_any_bytes_are_read_or_rejected(data: bytes) -> None:
    try:
        value = read_json(data, file="f.json").value
    except InputError:
        assert errors(data)
    else:
        assert value == json.loads(data.decode("utf-8-sig"))


def test_time_to_explain_duplicate_keys_is_linear() -> None:
    # Of quadratic time, this would take hours.
    unclosed = b'[{"a":1,"a":2},"' + rb"\"" * 1_000_000
    [error] = errors(unclosed)
    assert "f.json:1:9: the key 'a' appears twice in one object" in error
