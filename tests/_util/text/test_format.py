"""Numbers as people read them."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentci._util.text.format import (
    format_count,
    format_distinct,
    format_distinct_percents,
    format_number,
)

RATIOS = st.floats(0, 1)


@pytest.mark.parametrize(
    ("amount", "expected"), [(0, "0 checks"), (1, "1 check"), (12_345, "12,345 checks")]
)
def test_a_count_agrees_with_its_noun(amount: int, expected: str) -> None:
    assert format_count(amount, "check") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.7, "0.7"),
        (1.0, "1"),
        (0.0, "0"),
        (-0.0001, "0"),
        (1 / 3, "0.333"),
        (100.0, "100"),
        (1e-7, "0"),
        (math.nan, "nan"),
        (math.inf, "inf"),
    ],
)
def test_a_number_has_no_more_decimals_than_it_needs(value: float, expected: str) -> None:
    assert format_number(value) == expected


@pytest.mark.parametrize(
    ("value", "bar", "expected"),
    [
        pytest.param(5 / 6, 1.0, ("83%", "100%"), id="far apart"),
        pytest.param(0.9999, 1.0, ("99.99%", "100%"), id="close"),
        pytest.param(0.8996, 0.9, ("89.96%", "90%"), id="close to a bar below all"),
        pytest.param(0.9, 0.9, ("90%", "90%"), id="equal"),
    ],
)
def test_percentages_show_that_they_differ(
    value: float, bar: float, expected: tuple[str, str]
) -> None:
    assert format_distinct_percents(value, bar) == expected


@given(RATIOS, RATIOS)
def test_numbers_that_differ_by_more_than_the_gates_tolerance_look_different(
    value: float, bar: float
) -> None:
    assume(abs(value - bar) > 1e-9)
    for shown, other in (format_distinct(value, bar), format_distinct_percents(value, bar)):
        assert (float(shown.rstrip("%")) < float(other.rstrip("%"))) == (value < bar)


def test_numbers_far_apart_keep_three_decimals() -> None:
    assert format_distinct(0.71428, 0.8) == ("0.714", "0.8")
    assert format_distinct(0.6999, 0.7) == ("0.6999", "0.7")
