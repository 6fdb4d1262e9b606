"""Agreement of evaluators with human labels; expected figures are computed by hand."""

import pytest

from agentci.gate.statistics import (
    ConfusionMatrix,
    Proportion,
    make_confusion_matrix,
    measure_flips,
)

# 35 of 50 pairs agree, 25 are expected by chance, so kappa is (0.7 - 0.5) / (1 - 0.5).
COHEN = ConfusionMatrix(true_passes=20, false_fails=5, false_passes=10, true_fails=15)


def test_confusion_matrix_counts_each_pair_of_verdicts() -> None:
    pairs = [(True, True), (True, False), (False, True), (False, False), (True, True)]
    assert make_confusion_matrix(pairs) == ConfusionMatrix(
        true_passes=2, false_fails=1, false_passes=1, true_fails=1
    )


def test_agreement_and_true_rates_are_proportions() -> None:
    assert COHEN.agreement == Proportion(part=35, whole=50)
    assert COHEN.true_pass_rate == Proportion(part=20, whole=25)
    assert COHEN.true_fail_rate == Proportion(part=15, whole=25)
    assert COHEN.agreement.value == 0.7


@pytest.mark.parametrize(
    ("confusion", "kappa"),
    [
        (COHEN, 0.4),
        (ConfusionMatrix(true_passes=5, true_fails=5), 1.0),
        (ConfusionMatrix(false_fails=5, false_passes=5), -1.0),
        # An evaluator that always passes agrees only by chance.
        (ConfusionMatrix(true_passes=8, false_passes=2), 0.0),
        # Observed agreement 0.6, expected by chance 0.54 (unequal marginals).
        (
            ConfusionMatrix(true_passes=45, false_fails=15, false_passes=25, true_fails=15),
            0.06 / 0.46,
        ),
    ],
)
def test_kappa_corrects_agreement_for_chance(confusion: ConfusionMatrix, kappa: float) -> None:
    assert confusion.kappa == pytest.approx(kappa, abs=1e-12)


@pytest.mark.parametrize("confusion", [ConfusionMatrix(), ConfusionMatrix(true_passes=9)])
def test_kappa_is_undefined_without_variation(confusion: ConfusionMatrix) -> None:
    assert confusion.kappa is None


@pytest.mark.parametrize("part", [0, 8, 10])
def test_interval_contains_the_share(part: int) -> None:
    found = Proportion(part=part, whole=10).interval
    assert found is not None
    assert 0 <= found[0] <= part / 10 <= found[1] <= 1
    assert found[1] - found[0] > 0.2


def test_empty_proportion_has_no_value() -> None:
    assert (Proportion(part=0, whole=0).value, Proportion(part=0, whole=0).interval) == (None, None)


def test_flips_are_differing_verdict_pairs_of_one_case() -> None:
    flips = measure_flips([[True, True, False], [False, False, False], [True]])
    assert (flips.part, flips.whole) == (2, 6)
    assert measure_flips([[True], [False]]) == Proportion(part=0, whole=0)


def test_interval_of_flips_counts_cases_not_pairs() -> None:
    """Ten pairs of results of one case are not ten independent observations."""
    steady, flaky = [True] * 5, [True, False, True, False, True]
    flips = measure_flips([steady, steady, steady, flaky])
    single = Proportion(part=flips.part, whole=flips.whole)
    assert flips.interval is not None
    assert single.interval is not None
    assert flips.interval[1] > 2 * single.interval[1]
