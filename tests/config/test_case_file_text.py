"""Eval cases are written so that they are read back as they were."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentci.config.case_file import add_case, list_written_cases, replace_case

TEXTS = st.text(min_size=1, max_size=30) | st.sampled_from(
    [
        "no",
        "1e3",
        "0x1",
        "a: b",
        "- a",
        "a\nb",
        "a\n\n  b",
        "x #y",
        "~",
        "null",
        "ß?",
        "a ",
        " a",
        "a" * 2000,
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CASES = st.fixed_dictionaries(
    {"id": TEXTS, "input": TEXTS, "calls": st.lists(st.dictionaries(TEXTS, VALUES, max_size=2))},
    optional={"answer": TEXTS},
)


def test_long_names_are_read_back_as_written() -> None:
    long = "a" * 5000
    case: dict[str, Any] = {
        "id": "x",
        long: "y",
        "calls": [{long: {long: 1}}, {"f": {long: [1], "b": {}}}],
    }
    text = add_case(add_case("", case, file="c.yaml"), {**case, "calls": {long: {}}}, file="c.yaml")
    assert list_written_cases(text, file="c.yaml") == [case, {**case, "calls": {long: {}}}]


def is_readable(value: Any) -> bool:
    """Whether YAML can hold the texts: no surrogates, which are no characters."""
    try:
        repr(value).encode()
        str(value).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@given(CASES, CASES)
def test_case_is_read_back_as_written(first: Any, second: Any) -> None:
    text = add_case(add_case("", first, file="c.yaml"), second, file="c.yaml")
    assert list_written_cases(text, file="c.yaml") == [first, second]
    text = replace_case(text, 0, second, file="c.yaml")
    assert list_written_cases(text, file="c.yaml") == [second, second]
