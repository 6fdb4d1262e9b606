"""Formulas of `multi`: arithmetic, and nothing else of Python."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.evaluators.openai_eval.formula import parse_formula

SCORES = {"a": 0.5, "b": 0.25, "zero": 0.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        (" a ", 0.5),
        ("a + b - 0.25", 0.5),
        ("2 * a / 4", 0.25),
        ("2 ^ 3 ^ 2", 512.0),  # from the right
        ("-a ^ 2", -0.25),  # powers before signs
        ("+(a)", 0.5),
        ("min(a, b) + max(a, b, 1)", 1.25),
        ("min(a)", 0.5),
        ("abs(-a) + floor(1.5) + ceil(0.1)", 2.5),
        ("exp(0) + sqrt(b) + log(1)", 1.5),
    ],
)
def test_a_formula_comes_to(text: str, value: float) -> None:
    assert parse_formula(text).value(SCORES) == value


def test_a_formula_tells_its_names() -> None:
    assert parse_formula("a * max(b, c) + 1").names == {"a", "b", "c"}


NOTHING = "is nothing that a formula may say"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no formula"),
        ("a +", "no formula"),
        ("a; b", "no formula"),
        ("a = 1", "no formula"),
        ("\0", "no formula"),
        ("a " * 1_500, "at most 2,000 characters"),
        ("(" * 900 + "a" + ")" * 900, "no formula"),
        ("-" * 60 + "a", "at most 50 levels"),
        ("-" * 1_990 + "a", "no formula|at most 50 levels"),
        ("9" * 1_000, "too large"),
        ("'a' * 3", f"`'a'` {NOTHING}"),
        ("True", f"`True` {NOTHING}"),
        ("1j", f"`1j` {NOTHING}"),
        ("a.real", f"`a.real` {NOTHING}"),
        ("a // b", f"`a // b` {NOTHING}"),
        ("~a", f"`~a` {NOTHING}"),
        ("a if b else 1", NOTHING),
        ("lambda: 1", NOTHING),
        ("[a][0]", NOTHING),
        ("a < b", NOTHING),
        ("(x := 1)", NOTHING),
        ("f(a)(b)", NOTHING),
        ("max(*a)", NOTHING),
        ("max(a, key=b)", NOTHING),
        ("__import__('os')", "there is no function '__import__'; there is min, max, abs"),
        ("round(a)", "there is no function 'round'"),
        ("abs(a, b)", "abs takes one number"),
        ("max()", "max takes numbers"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        parse_formula(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a / zero", "divides by zero"),
        ("9 ^ 9 ^ 9 ^ 9", "no finite number"),
        ("1e308 * 10", "no finite number"),
        ("sqrt(-a)", "no finite number"),
        ("log(zero)", "no finite number"),
        ("(-8) ^ 0.5", "no finite number"),
        ("zero ^ -1", "no finite number"),
        ("floor(1e999)", "no finite number"),
    ],
)
def test_what_comes_to_no_number_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_formula(text).value(SCORES)


@given(st.text(alphabet="ab1.+-*/^(), minx_[]{}'\"=:\\0e", max_size=40))
def test_any_text_is_a_formula_that_comes_to_a_number_or_refused(text: str) -> None:
    with suppress(ValueError):
        formula = parse_formula(text)
        assert math.isfinite(formula.value(dict.fromkeys(formula.names, 0.5)))
