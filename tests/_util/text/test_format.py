"""Numbers in messages."""

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
def test_count_agrees_with_its_noun(amount: int, expected: str) -> None:
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
def test_number_has_no_unneeded_decimals(value: float, expected: str) -> None:
    assert format_number(value) == expected


@pytest.mark.parametrize(
    ("value", "threshold", "expected"),
    [
        pytest.param(5 / 6, 1.0, ("83%", "100%"), id="far apart"),
        pytest.param(0.9999, 1.0, ("99.99%", "100%"), id="close"),
        pytest.param(0.8996, 0.9, ("89.96%", "90%"), id="close to a threshold below 100%"),
        pytest.param(0.9, 0.9, ("90%", "90%"), id="equal"),
    ],
)
def test_different_percentages_look_different(
    value: float, threshold: float, expected: tuple[str, str]
) -> None:
    assert format_distinct_percents(value, threshold) == expected


@given(RATIOS, RATIOS)
def test_different_numbers_look_different(value: float, threshold: float) -> None:
    assume(abs(value - threshold) > 1e-9)
    for shown, other in (
        format_distinct(value, threshold),
        format_distinct_percents(value, threshold),
    ):
        assert (float(shown.rstrip("%")) < float(other.rstrip("%"))) == (value < threshold)


def test_distant_numbers_have_at_most_three_decimals() -> None:
    assert format_distinct(0.71428, 0.8) == ("0.714", "0.8")
    assert format_distinct(0.6999, 0.7) == ("0.6999", "0.7")
