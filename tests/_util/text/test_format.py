"""Numbers in messages."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentci._util.text.format import (
    format_count,
    format_distinct,
    format_distinct_durations,
    format_distinct_percents,
    format_duration,
    format_number,
    format_percent,
    format_score,
    format_score_pair,
    format_score_triple,
    parse_seconds,
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


@pytest.mark.parametrize(
    ("score", "threshold", "expected"),
    [
        pytest.param(0.71428, None, "0.71", id="two decimals"),
        pytest.param(0.5, None, "0.5", id="no unneeded ones"),
        pytest.param(0.9996, None, "0.9996", id="less than 1"),
        pytest.param(0.0004, None, "0.0004", id="more than 0"),
        pytest.param(1.0, 0.7, "1", id="equal to 1"),
        pytest.param(0.6999, 0.7, "0.6999", id="below the threshold"),
        pytest.param(0.704, 0.7, "0.7", id="above the threshold"),
        pytest.param(85.126, 90.0, "85.13", id="on another scale"),
        pytest.param(math.inf, None, "inf", id="infinite"),
    ],
)
def test_score_has_two_decimals_unless_it_looks_like_another(
    score: float, threshold: float | None, expected: str
) -> None:
    assert format_score(score, threshold) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (0.912, 0.5789, "0.91 → 0.58"),
        (0.9, 0.895, "0.9 → 0.895"),
        (1.0, 0.998, "1 → 0.998"),
        (0.5, 0.5, "0.5 → 0.5"),
    ],
)
def test_scores_that_differ_look_different(before: float, after: float, expected: str) -> None:
    assert format_score_pair(before, after) == expected


def test_difference_is_that_of_the_shown_scores() -> None:
    assert format_score_triple(0.9961, 0.9024) == ("0.996", "0.902", "\u22120.094")
    assert format_score_triple(0.914, 0.875) == ("0.91", "0.88", "\u22120.03")


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(2 / 3, "67%"), (1.0, "100%"), (0.0, "0%"), (0.9996, "99.96%"), (0.0004, "0.04%")],
)
def test_rate_looks_like_0_or_100_percent_only_if_it_is(rate: float, expected: str) -> None:
    assert format_percent(rate) == expected


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


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (0, "0 s"),
        (850, "0.85 s"),
        (59_999.9, "1 min"),
        (90_500, "1 min 30.5 s"),
        (7_200_000, "2 h"),
        (3_601_000, "1 h 1 s"),
        (4_000_000_000, "1,111 h 6 min 40 s"),
    ],
)
def test_duration_has_units(milliseconds: float, expected: str) -> None:
    assert format_duration(milliseconds) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300),
        ("1h30m", 5400),
        ("1500ms", 1.5),
        ("120", 120),
        ("0.5", 0.5),
        ("", None),
        ("-1", None),
        ("5 min", None),
        ("nan", None),
        ("1e3", None),
        ("9" * 400, None),
        ("1m\n", None),
    ],
)
def test_times_of_options_have_units_or_are_seconds(text: str, seconds: float | None) -> None:
    assert parse_seconds(text) == seconds


def test_different_durations_look_different() -> None:
    assert format_distinct_durations(60_000.02, 60_000) == ("1 min 0.00002 s", "1 min")
