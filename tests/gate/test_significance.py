"""Significance tests, compared with values from SciPy."""

from collections.abc import Sequence
from itertools import product
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.gate.comparison import (
    MAX_EXACT_PAIRS,
    holm_adjust,
    min_pairs_for_significance,
    permutation_test_p_value,
    sign_test_p_value,
)


@pytest.mark.parametrize(
    ("regressions", "improvements", "p_value"), [(5, 0, 0.03125), (4, 0, 0.0625), (6, 1, 0.0625)]
)
def test_one_sided_mcnemar_p_value_is_exact(
    regressions: int, improvements: int, p_value: float
) -> None:
    assert sign_test_p_value(regressions, regressions + improvements) == p_value
    flips = [-1.0] * regressions + [1.0] * improvements + [0.0] * 3
    assert permutation_test_p_value(flips) == p_value


@pytest.mark.parametrize(
    ("more", "fewer", "exact"),
    [(6, 1, 0.125), (5, 0, 0.0625), (6, 0, 0.03125), (10, 2, 0.038574), (15, 5, 0.041389)],
)
def test_two_sided_mcnemar_p_value_matches_scipy(more: int, fewer: int, exact: float) -> None:
    assert 2 * sign_test_p_value(more, more + fewer) == pytest.approx(exact, abs=5e-7)


def test_sign_flip_p_value_matches_scipy() -> None:
    differences = [0.1, -0.2, 0.05, -0.3, -0.1, -0.25, 0, -0.15]
    assert 2 * permutation_test_p_value(differences) == pytest.approx(0.109375)


@given(differences=st.lists(st.sampled_from([-0.5, -0.25, -0.1, 0, 0.1, 0.3]), max_size=9))
def test_permutation_test_enumerates_all_sign_choices(differences: list[float]) -> None:
    sizes = [abs(each) for each in differences if each]
    flipped = [
        fsum(sign * size for sign, size in zip(signs, sizes, strict=True))
        for signs in product((1, -1), repeat=len(sizes))
    ]
    low = sum(each <= fsum(differences) + 1e-9 for each in flipped)
    assert permutation_test_p_value(differences) == pytest.approx(low / len(flipped))


@pytest.mark.parametrize("down", [20, 24, 30])
def test_p_value_of_many_pairs_is_between_0_and_1(down: int) -> None:
    few = [-0.1] * (down // 2) + [0.2] * (MAX_EXACT_PAIRS // 2 - down // 4)
    many = [each for each in few for _ in range(3)]
    assert len(many) > MAX_EXACT_PAIRS
    assert 0 < permutation_test_p_value(many) < 1


def test_p_value_is_1_without_differences() -> None:
    assert permutation_test_p_value([]) == permutation_test_p_value([0.0, 0.0]) == 1.0


def test_holm_adjustment_matches_reference_values() -> None:
    p_values = [0.001, 0.02, 0.03, 0.04, 0.2]
    assert holm_adjust(p_values) == pytest.approx((0.005, 0.08, 0.09, 0.09, 0.2))
    assert holm_adjust(list(reversed(p_values))) == tuple(reversed(holm_adjust(p_values)))
    assert sum(each <= 0.05 for each in holm_adjust(p_values)) == 1


@given(p_values=st.lists(st.floats(0, 1), max_size=8))
def test_holm_adjustment_never_lowers_p_value(p_values: Sequence[float]) -> None:
    assert all(
        after >= before for before, after in zip(p_values, holm_adjust(p_values), strict=True)
    )
    assert all(after <= 1 for after in holm_adjust(p_values))


@pytest.mark.parametrize(("alpha", "pairs"), [(0.5, 1), (0.05, 5), (0.01, 7), (0.999, 1)])
def test_minimum_number_of_pairs_reaches_significance(alpha: float, pairs: int) -> None:
    assert min_pairs_for_significance(alpha) == pairs
    assert sign_test_p_value(pairs, pairs) <= alpha
