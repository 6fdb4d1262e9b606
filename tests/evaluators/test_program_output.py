"""The stdout of a program is one JSON object, or an error that describes what was found."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentci.errors import EvaluatorError
from agentci.evaluators.program_output import parse_output
from agentci.model.values import Json

HINT = "print only the result on stdout, and logs on stderr"


@pytest.mark.parametrize(
    "stdout",
    [
        pytest.param(b'{"score": 1.0}', id="only the object"),
        pytest.param(b' \r\n\t{"score":\n1.0}\r\n\n', id="surrounding whitespace"),
        pytest.param(b'\xef\xbb\xbf{"score": 1.0}', id="byte order mark"),
    ],
)
def test_json_object_is_parsed(stdout: bytes) -> None:
    assert parse_output(stdout) == {"score": 1.0}


def test_lone_surrogate_is_replaced() -> None:
    assert parse_output(rb'{"text": "cut \ud83d"}') == {"text": "cut \ufffd"}


@pytest.mark.parametrize(
    ("stdout", "complaint"),
    [
        pytest.param(
            b'loading model\n{"score": 1.0}',
            f"text before the JSON: 'loading model'; {HINT}",
            id="a log line first",
        ),
        pytest.param(
            b'{"level": "info"}\n{"score": 1.0}',
            f'text before the JSON: \'{{"level": "info"}}\'; {HINT}',
            id="a log line in JSON first",
        ),
        pytest.param(
            b'using {x: 1}\n{"score": 1.0}\n',
            f"text before the JSON: 'using {{x: 1}}'; {HINT}",
            id="a log line with braces first",
        ),
        pytest.param(
            b'{"score": 1.0}\n\ndone\n',
            f"text after the JSON on line 3: 'done'; {HINT}",
            id="a log line last",
        ),
        pytest.param(
            b'{"score": 1.0}{"score": 0.0}',
            f"text after the JSON on line 1: '{{\"score\": 0.0}}'; {HINT}",
            id="two results",
        ),
        pytest.param(
            b"x" * 200,
            f"expecting value at line 1, column 1 in '{'x' * 79}…'; {HINT},"
            ' such as {"score": 1.0}',
            id="no JSON, truncated excerpt",
        ),
        pytest.param(
            b"{'score': 1.0}",
            "expecting property name enclosed in double quotes at line 1, column 2"
            " in \"{'score': 1.0}\"; this is Python syntax, use `json.dumps`;"
            f' {HINT}, such as {{"score": 1.0}}',
            id="Python dict literal",
        ),
        pytest.param(
            b'[{"score": 1.0}]',
            'found an array; expected an object such as {"score": 1.0}',
            id="an array",
        ),
        pytest.param(
            b"0.75", 'found a number; expected an object such as {"score": 1.0}', id="number"
        ),
        pytest.param(
            b"true", 'found a boolean; expected an object such as {"score": 1.0}', id="true"
        ),
        pytest.param(b"null", 'found null; expected an object such as {"score": 1.0}', id="null"),
        pytest.param(
            b'"1"', 'found a string; expected an object such as {"score": 1.0}', id="string"
        ),
        pytest.param(
            '{"score": 1.0}'.encode("utf-16"),
            "the encoding is UTF-16 or UTF-32; print UTF-8",
            id="UTF-16",
        ),
        pytest.param(
            '{"score": 1.0}'.encode("utf-16-be"),
            "the encoding is UTF-16 or UTF-32; print UTF-8",
            id="UTF-16 without byte order mark",
        ),
        pytest.param(
            b'{"x": "caf\xe9"}', "byte 11 (0xe9) is not valid UTF-8; print UTF-8", id="Latin-1"
        ),
        pytest.param(b'{"score": NaN}', "`NaN` is not a JSON number; use null", id="NaN"),
        pytest.param(
            b'{"score": 1, "details": {"a": [-Infinity]}}',
            "`-Infinity` is not a JSON number; use null",
            id="infinity in details",
        ),
        pytest.param(
            b'{"score": 1, "x": 1e999}',
            "the number '1e999' is out of range",
            id="number too large for a float",
        ),
        pytest.param(
            b"[" * 100_000,
            "the JSON is nested more than 100 levels deep",
            id="nested deeper than Python can parse",
        ),
        pytest.param(
            b'{"score": 1, "details": ' + b"[" * 101 + b"]" * 101 + b"}",
            "the JSON is nested more than 100 levels deep",
            id="nested too deeply",
        ),
        pytest.param(
            b'{"score": 1' + b"0" * 400 + b"}",
            f"the number '1{'0' * 38}\N{HORIZONTAL ELLIPSIS}' is out of range",
            id="integer too large for a float",
        ),
        pytest.param(
            b'{"score": 0, "details": {"answer": "x"}, "score": 1.0}',
            "the key 'score' appears twice in one object",
            id="duplicate key",
        ),
        pytest.param(
            rb'{"score": 1, "details": [{"a": {"b": 1, "\u0062": 2}}]}',
            "the key 'b' appears twice in one object",
            id="duplicate key inside, escaped",
        ),
        pytest.param(
            b'{"score": NaNN}', "`NaN` is not a JSON number; use null", id="NaN with a letter more"
        ),
    ],
)
def test_invalid_output_error_describes_what_was_found(stdout: bytes, complaint: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        parse_output(stdout)
    assert str(caught.value) == complaint


@pytest.mark.parametrize(
    "stdout",
    [
        pytest.param(b'{"score": 1, "details": {"score": 1}, }', id="trailing comma"),
        pytest.param(b'{"score": 1, "details": {"score": 1}', id="truncated object"),
        pytest.param(b'{"a":' * 100_000, id="unclosed objects"),
        pytest.param(b"log " + b"{" * 1_000_000, id="a million braces"),
    ],
)
def test_malformed_json_is_not_reported_as_surrounding_text(stdout: bytes) -> None:
    with pytest.raises(EvaluatorError) as caught:
        parse_output(stdout)
    assert re.search("text (before|after) the JSON", str(caught.value)) is None


def test_integer_of_million_digits_is_rejected() -> None:
    with pytest.raises(EvaluatorError, match=r"^the number '1{39}\u2026' is out of range$"):
        parse_output(b'{"score": ' + b"1" * 1_000_000 + b"}")


@given(st.binary() | st.text().map(str.encode))
@example(b"\xff\xfe")
@example(b"{}x")
@example(b"\xef\xbb\xbf")
def test_any_output_is_object_or_evaluator_error(stdout: bytes) -> None:
    try:
        document = parse_output(stdout)
    except EvaluatorError:
        return
    assert isinstance(document, dict)


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        ),
        max_size=5,
    ),
    st.booleans(),
)
def test_any_json_object_round_trips(document: dict[str, Json], ascii_only: bool) -> None:
    assert parse_output(json.dumps(document, ensure_ascii=ascii_only).encode()) == document
