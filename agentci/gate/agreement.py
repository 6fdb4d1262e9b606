"""Measure how well a judge agrees with human labels and with itself."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from msgspec import Struct

from agentci.gate.statistics import mean_confidence_interval


class Proportion(Struct, frozen=True, kw_only=True):
    """A share of results: ``part`` of ``whole``.

    Attributes:
        groups: for each case, which of its results count, if a case may have several; results of
            one case are not independent.
    """

    part: int
    whole: int
    groups: tuple[tuple[bool, ...], ...] = ()

    @property
    def value(self) -> float | None:
        """The share, from 0 to 1; None if ``whole`` is 0."""
        return self.part / self.whole if self.whole else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% confidence interval of the share; None for fewer than two cases."""
        single = [(True,)] * self.part + [(False,)] * (self.whole - self.part)
        found = mean_confidence_interval(self.groups or single)
        return None if found is None else (found.low, found.high)


class ConfusionMatrix(Struct, frozen=True, kw_only=True):
    """Counts of cases by human label and by the judge's result.

    Attributes:
        true_passes, false_fails: cases labelled as passed that the judge passed or failed.
        false_passes, true_fails: cases labelled as failed that the judge passed or failed.
    """

    true_passes: int = 0
    false_fails: int = 0
    false_passes: int = 0
    true_fails: int = 0

    @property
    def true_pass_rate(self) -> Proportion:
        """The share of the cases labelled as passed that the judge passed."""
        return Proportion(part=self.true_passes, whole=self.true_passes + self.false_fails)

    @property
    def true_fail_rate(self) -> Proportion:
        """The share of the cases labelled as failed that the judge failed."""
        return Proportion(part=self.true_fails, whole=self.true_fails + self.false_passes)

    @property
    def agreement(self) -> Proportion:
        """The share of all cases in which the label and the judge agree."""
        whole = self.true_pass_rate.whole + self.true_fail_rate.whole
        return Proportion(part=self.true_passes + self.true_fails, whole=whole)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: 1 is full agreement, 0 is the agreement expected by chance.

        None if there are no cases, or if the expected agreement is 1. J. Cohen, A Coefficient of
        Agreement for Nominal Scales, 1960.
        """
        agreed = self.agreement
        if agreed.value is None:
            return None
        judge_passes = self.true_passes + self.false_passes
        both_pass = judge_passes * self.true_pass_rate.whole
        both_fail = (agreed.whole - judge_passes) * self.true_fail_rate.whole
        expected = (both_pass + both_fail) / agreed.whole**2
        return None if expected == 1 else (agreed.value - expected) / (1 - expected)


def make_confusion_matrix(pairs: Iterable[tuple[bool, bool]]) -> ConfusionMatrix:
    """Count the cases.

    Args:
        pairs: for each case, whether its label is passed and whether the judge passed it.
    """
    listed = list(pairs)
    return ConfusionMatrix(
        true_passes=listed.count((True, True)),
        false_fails=listed.count((True, False)),
        false_passes=listed.count((False, True)),
        true_fails=listed.count((False, False)),
    )


def measure_flips(repeats: Iterable[Sequence[bool]]) -> Proportion:
    """Compute the share of pairs of results for the same case that differ.

    Args:
        repeats: the judge's results for each case.
    """
    flips = [tuple(a != b for a, b in combinations(verdicts, 2)) for verdicts in repeats]
    groups = tuple(filter(None, flips))
    return Proportion(part=sum(map(sum, groups)), whole=sum(map(len, groups)), groups=groups)


class Calibration(Struct, frozen=True, kw_only=True):
    """How well one evaluator agrees with human labels.

    Attributes:
        without_result: number of labelled cases without a result.
        flips: share of repeated results that differ; ``whole`` is 0 if no case was repeated.
    """

    evaluator: str
    confusion: ConfusionMatrix
    without_result: int
    flips: Proportion
