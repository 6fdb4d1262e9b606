"""Formulas of `multi` graders: arithmetic, but no other Python."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.evaluators.openai_eval.graders import parse_formula

SCORES = {"a": 0.5, "b": 0.25, "zero": 0.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        (" a ", 0.5),
        ("a + b - 0.25", 0.5),
        ("2 * a / 4", 0.25),
        ("2 ^ 3 ^ 2", 512.0),  # right-associative
        ("-a ^ 2", -0.25),  # a power binds tighter than a sign
        ("+(a)", 0.5),
        ("min(a, b) + max(a, b, 1)", 1.25),
        ("min(a)", 0.5),
        ("abs(-a) + floor(1.5) + ceil(0.1)", 2.5),
        ("exp(0) + sqrt(b) + log(1)", 1.5),
    ],
)
def test_formula_evaluates_to_expected_value(text: str, value: float) -> None:
    assert parse_formula(text).value(SCORES) == value


def test_formula_lists_its_names() -> None:
    assert parse_formula("a * max(b, c) + 1").names == {"a", "b", "c"}


UNSUPPORTED = "^unsupported expression "


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "invalid formula"),
        ("a +", "invalid formula"),
        ("a; b", "invalid formula"),
        ("a = 1", "invalid formula"),
        ("\0", "invalid formula"),
        ("a " * 1_500, "the limit is 2,000"),
        ("(" * 900 + "a" + ")" * 900, "invalid formula"),
        ("-" * 60 + "a", "more than 50 levels"),
        ("-" * 1_990 + "a", "invalid formula|more than 50 levels"),
        ("9" * 1_000, "too large"),
        ("'a' * 3", f"{UNSUPPORTED}`'a'` in the formula$"),
        ("True", f"{UNSUPPORTED}`True` in the formula$"),
        ("1j", f"{UNSUPPORTED}`1j` in the formula$"),
        ("a.real", f"{UNSUPPORTED}`a.real` in the formula$"),
        ("a // b", f"{UNSUPPORTED}`a // b` in the formula$"),
        ("~a", f"{UNSUPPORTED}`~a` in the formula$"),
        ("a if b else 1", UNSUPPORTED),
        ("lambda: 1", UNSUPPORTED),
        ("[a][0]", UNSUPPORTED),
        ("a < b", UNSUPPORTED),
        ("(x := 1)", UNSUPPORTED),
        ("f(a)(b)", UNSUPPORTED),
        ("max(*a)", UNSUPPORTED),
        ("max(a, key=b)", UNSUPPORTED),
        (
            "__import__('os')",
            "unknown function `__import__` in the formula; the functions are min, max, abs",
        ),
        ("round(a)", "unknown function `round`"),
        ("abs(a, b)", "`abs` takes one number"),
        ("max()", "`max` takes at least one number"),
    ],
)
def test_unsupported_formula_is_rejected(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        parse_formula(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a / zero", "division by zero"),
        ("9 ^ 9 ^ 9 ^ 9", "the result is not a finite number"),
        ("1e308 * 10", "the result is not a finite number"),
        ("sqrt(-a)", "the result is not a finite number"),
        ("log(zero)", "the result is not a finite number"),
        ("(-8) ^ 0.5", "the result is not a finite number"),
        ("zero ^ -1", "the result is not a finite number"),
        ("floor(1e999)", "the result is not a finite number"),
    ],
)
def test_non_finite_result_is_rejected(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_formula(text).value(SCORES)


@given(st.text(alphabet="ab1.+-*/^(), minx_[]{}'\"=:\\0e", max_size=40))
def test_any_text_gives_finite_number_or_value_error(text: str) -> None:
    with suppress(ValueError):
        formula = parse_formula(text)
        assert math.isfinite(formula.value(dict.fromkeys(formula.names, 0.5)))
