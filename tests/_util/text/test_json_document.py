"""JSON files that people write are read strictly, and every refusal says where and why."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text.json_document import read_json
from agentci.errors import InputError
from agentci.model.problem import Place


def complaints(data: bytes) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_json(data, file="f.json")
    return [str(problem) for problem in caught.value.problems]


def test_a_byte_order_mark_is_passed_over() -> None:
    assert read_json(b'\xef\xbb\xbf{"a": 1}', file="f.json").value == {"a": 1}


def test_numbers_with_decimals_are_read() -> None:
    assert read_json(b"[0.25, -1e-3]", file="f.json").value == [0.25, -0.001]


def test_places_are_found_by_path() -> None:
    document = read_json(b'{"a":\n [1,\n  2]}', file="f.json")
    assert document.find_place(["a", 1]) == Place(file="f.json", line=3, column=3)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        pytest.param(b"", "f.json:1: the file is empty", id="empty"),
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
            id="no JSON",
        ),
        pytest.param(
            b"[" * 100_000,
            "f.json:1:1: the file is nested too deeply to be read",
            id="too deep",
        ),
        pytest.param(
            b'{"NaN": "NaN",\n "b": [NaN]}',
            "f.json:2:8: a number is not finite, or has too many digits",
            id="NaN",
        ),
        pytest.param(
            b'[1, true, {"b": -1e999}]',
            "f.json:1:17: a number is not finite, or has too many digits",
            id="a number beyond floats",
        ),
        pytest.param(
            b"[" + b"1" * 5_000 + b"]",
            "f.json:1:2: a number is not finite, or has too many digits",
            id="a number beyond reason",
        ),
        pytest.param(
            rb'["\u00e9 \ud83d\ude00", "\ude00"]',
            "f.json:1:25: an escape is an unpaired surrogate, not a whole character",
            id="half a surrogate pair",
        ),
    ],
)
def test_refuses(data: bytes, complaint: str) -> None:
    assert complaints(data) == [complaint]


def test_every_key_that_stands_twice_is_named() -> None:
    text = rb"""{"a": 1, "b": {"a": 2, "\u0061": 3},
 "a": [{"c": "d"}, {"c": "d"}]}"""
    hint = "(only the last one would be used; remove the others)"
    assert complaints(text) == [
        f"f.json:1:24: the key 'a' appears twice in one object {hint}",
        f"f.json:2:2: the key 'a' appears twice in one object {hint}",
    ]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"}}", id="too many brackets"),
        pytest.param(rb'{"\x": 1}', id="an escape that JSON has not"),
    ],
)
def test_twin_keys_are_named_though_the_rest_is_broken(rest: bytes) -> None:
    [complaint] = complaints(b'[{"a": 1, "a": 2}' + rest)
    assert complaint.startswith("f.json:1:11: the key 'a' appears twice")


@given(st.binary() | st.text(alphabet='{}[]",:a1\\u.e9dN \n').map(str.encode))
def test_anything_is_read_or_refused(data: bytes) -> None:
    try:
        value = read_json(data, file="f.json").value
    except InputError:
        assert complaints(data)
    else:
        assert value == json.loads(data.decode("utf-8-sig"))
