"""What a program printed is one JSON object, or an error that says what it was."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentci.errors import EvaluatorError
from agentci.evaluators.program_output import parse_output
from agentci.model.json import Json

WAY_OUT = "print only the result on stdout, and logs on stderr"


@pytest.mark.parametrize(
    "stdout",
    [
        pytest.param(b'{"score": 1.0}', id="alone"),
        pytest.param(b' \r\n\t{"score":\n1.0}\r\n\n', id="with white space around it"),
        pytest.param(b'\xef\xbb\xbf{"score": 1.0}', id="after a byte order mark"),
        pytest.param(b'{"score": 0, "score": 1.0}', id="with a key twice, of which the last wins"),
    ],
)
def test_an_object_is_read(stdout: bytes) -> None:
    assert parse_output(stdout) == {"score": 1.0}


def test_half_a_character_is_replaced() -> None:
    assert parse_output(rb'{"text": "cut \ud83d"}') == {"text": "cut \ufffd"}


@pytest.mark.parametrize(
    ("stdout", "complaint"),
    [
        pytest.param(
            b'loading model\n{"score": 1.0}',
            f"text before the JSON: 'loading model'; {WAY_OUT}",
            id="a log line first",
        ),
        pytest.param(
            b'{"level": "info"}\n{"score": 1.0}',
            f'text before the JSON: \'{{"level": "info"}}\'; {WAY_OUT}',
            id="a log line in JSON first",
        ),
        pytest.param(
            b'using {x: 1}\n{"score": 1.0}\n',
            f"text before the JSON: 'using {{x: 1}}'; {WAY_OUT}",
            id="a log line with braces first",
        ),
        pytest.param(
            b'{"score": 1.0}\n\ndone\n',
            f"text after the JSON on line 3: 'done'; {WAY_OUT}",
            id="a log line last",
        ),
        pytest.param(
            b'{"score": 1.0}{"score": 0.0}',
            f"text after the JSON on line 1: '{{\"score\": 0.0}}'; {WAY_OUT}",
            id="two results",
        ),
        pytest.param(
            b"x" * 200,
            f"Expecting value: line 1 column 1 (char 0) in '{'x' * 79}…'; {WAY_OUT},"
            ' such as {"score": 1.0}',
            id="no JSON at all, clipped",
        ),
        pytest.param(
            b"{'score': 1.0}",
            "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
            " in \"{'score': 1.0}\"; this is Python syntax, use `json.dumps`;"
            f' {WAY_OUT}, such as {{"score": 1.0}}',
            id="a dict as Python prints it",
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
            id="UTF-16 without a mark",
        ),
        pytest.param(
            b'{"x": "caf\xe9"}', "byte 11 (0xe9) is not valid UTF-8; print UTF-8", id="Latin-1"
        ),
        pytest.param(b'{"score": NaN}', "`NaN` is not a JSON number; use null", id="NaN"),
        pytest.param(
            b'{"score": 1, "details": {"a": [-Infinity]}}',
            "`-Infinity` is not a JSON number; use null",
            id="infinity inside of details",
        ),
        pytest.param(
            b'{"score": 1, "x": 1e999}',
            "`1e999` is not a JSON number; use null",
            id="a number that is too large",
        ),
        pytest.param(b"[" * 100_000, "the JSON is nested too deeply", id="nested too deeply"),
    ],
)
def test_anything_else_is_explained(stdout: bytes, complaint: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        parse_output(stdout)
    assert str(caught.value) == complaint


@pytest.mark.parametrize(
    "stdout",
    [
        pytest.param(b'{"score": 1, "details": {"score": 1}, }', id="a comma too many"),
        pytest.param(b'{"score": 1, "details": {"score": 1}', id="cut off"),
        pytest.param(b'{"a":' * 100_000, id="without end"),
        pytest.param(b"log " + b"{" * 1_000_000, id="a million braces"),
    ],
)
def test_broken_json_is_not_taken_for_text_around_a_result(stdout: bytes) -> None:
    with pytest.raises(EvaluatorError) as caught:
        parse_output(stdout)
    assert re.search("text (before|after) the JSON", str(caught.value)) is None


def test_an_integer_of_a_million_digits_is_refused() -> None:
    with pytest.raises(EvaluatorError, match=r"^an integer has thousands of digits$"):
        parse_output(b'{"score": ' + b"1" * 1_000_000 + b"}")


@given(st.binary() | st.text().map(str.encode))
@example(b"\xff\xfe")
@example(b"{}x")
@example(b"\xef\xbb\xbf")
def test_whatever_is_printed_is_an_object_or_an_error_of_the_evaluator(stdout: bytes) -> None:
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
def test_every_object_comes_through_unharmed(document: dict[str, Json], ascii_only: bool) -> None:
    assert parse_output(json.dumps(document, ensure_ascii=ascii_only).encode()) == document
