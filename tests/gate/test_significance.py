"""Significance tests, compared with SciPy, with counting, and with their stated error rates."""

import random
from collections.abc import Sequence
from itertools import product
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.gate.statistics import (
    MAX_COUNTED,
    detectable_drop,
    estimate_groups_needed,
    holm_adjust,
    min_groups_for_significance,
    sign_flip_p_value,
)


@pytest.mark.parametrize(
    ("regressions", "improvements", "p_value"), [(5, 0, 0.03125), (4, 0, 0.0625), (6, 1, 0.0625)]
)
def test_one_sided_mcnemar_p_value_is_exact(
    regressions: int, improvements: int, p_value: float
) -> None:
    flips = [-1.0] * regressions + [1.0] * improvements + [0.0] * 3
    assert sign_flip_p_value(flips) == p_value


@pytest.mark.parametrize(
    ("more", "fewer", "exact"),
    [(6, 1, 0.125), (5, 0, 0.0625), (6, 0, 0.03125), (10, 2, 0.038574), (15, 5, 0.041389)],
)
def test_two_sided_mcnemar_p_value_matches_scipy(more: int, fewer: int, exact: float) -> None:
    p_value = sign_flip_p_value([-1.0] * more + [1.0] * fewer)
    assert 2 * p_value == pytest.approx(exact, abs=5e-7)


def test_sign_flip_p_value_matches_scipy() -> None:
    differences = [0.1, -0.2, 0.05, -0.3, -0.1, -0.25, 0, -0.15]
    assert 2 * sign_flip_p_value(differences) == pytest.approx(0.109375)


@given(st.lists(st.integers(-1000, 1000), max_size=10))
def test_sign_flip_test_counts_all_sign_choices(thousandths: list[int]) -> None:
    sums = [
        sum(sign * each for sign, each in zip(signs, thousandths, strict=True))
        for signs in product((1, -1), repeat=len(thousandths))
    ]
    low = sum(each <= sum(thousandths) for each in sums)
    assert sign_flip_p_value([each / 1000 for each in thousandths]) == pytest.approx(
        low / len(sums)
    )


def test_few_large_differences_among_many_small_ones_are_counted_exactly() -> None:
    """A normal approximation gives 0.042 for three of 60 cases that break."""
    jitter = [0.001, -0.001] * 28 + [0.001]
    p_value = sign_flip_p_value([-1.0] * 3 + jitter)
    assert 0.0625 < p_value < 0.125
    assert NormalDist().cdf(-3 / 3**0.5) < 0.05


@pytest.mark.parametrize("breaks", [0, 3])
def test_p_value_of_many_differences_agrees_with_sampled_signs(breaks: int) -> None:
    source = random.Random(7)
    differences = [-1.0] * breaks
    differences += [source.gauss(-0.01, 0.1) for _ in range(2 * MAX_COUNTED)]
    total = sum(differences)
    lower = sum(
        sum(source.choice((-each, each)) for each in differences) <= total for _ in range(1000)
    )
    assert sign_flip_p_value(differences) == pytest.approx(lower / 1000, abs=0.05)


@pytest.mark.parametrize("differences", [[], [0.0, 0.0], [0.0001] * 9])
def test_p_value_is_1_without_differences(differences: list[float]) -> None:
    assert sign_flip_p_value(differences) == 1.0


def test_holm_adjustment_matches_reference_values() -> None:
    p_values = [0.001, 0.02, 0.03, 0.04, 0.2]
    assert holm_adjust(p_values) == pytest.approx((0.005, 0.08, 0.09, 0.09, 0.2))
    assert holm_adjust(list(reversed(p_values))) == tuple(reversed(holm_adjust(p_values)))
    assert sum(each <= 0.05 for each in holm_adjust(p_values)) == 1


@given(p_values=st.lists(st.floats(0, 1), max_size=8))
def test_holm_adjustment_never_lowers_p_value(p_values: Sequence[float]) -> None:
    adjusted = holm_adjust(p_values)
    assert all(after >= before for before, after in zip(p_values, adjusted, strict=True))
    assert all(after <= 1 for after in adjusted)


@pytest.mark.parametrize(
    ("alpha", "groups"), [(0.5, 1), (0.05, 5), (0.05 / 2, 6), (0.05 / 5, 7), (0.05 / 10, 8)]
)
def test_minimum_number_of_groups_reaches_significance(alpha: float, groups: int) -> None:
    assert min_groups_for_significance(alpha) == groups
    assert sign_flip_p_value([-1.0] * groups) <= alpha < sign_flip_p_value([-1.0] * (groups - 1))


def test_estimate_of_groups_needed_is_a_multiple_of_the_groups() -> None:
    assert estimate_groups_needed([-1.0, -1.0] + [0.0] * 8, 0.05) == 30
    assert estimate_groups_needed([0.0] * 99 + [-1.0, 1.0, -0.001], 0.05) is None


def test_detectable_drop_has_80_percent_power_of_a_z_test() -> None:
    assert detectable_drop(0.1, 0.05) == pytest.approx((1.644854 + 0.841621) / 10, abs=1e-6)
