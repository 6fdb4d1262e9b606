"""How far a judge agrees with people, and with itself: counts, and what they come to."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from msgspec import Struct

from agentci.gate.statistics import wilson_bounds


class Proportion(Struct, frozen=True, kw_only=True):
    """A share of cases."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        """0 to 1; None of nothing."""
        return self.part / self.whole if self.whole else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's interval at 95 %: where the share lies of all cases that there could be.

        E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference, 1927.
        """
        return wilson_bounds(self.part / self.whole, self.whole) if self.whole else None


class ConfusionMatrix(Struct, frozen=True, kw_only=True):
    """Cases by what people said and what a judge did.

    Attributes:
        true_passes, false_fails: of those that people passed.
        false_passes, true_fails: of those that people failed.
    """

    true_passes: int = 0
    false_fails: int = 0
    false_passes: int = 0
    true_fails: int = 0

    @property
    def true_pass_rate(self) -> Proportion:
        """Of what people passed, what the judge did."""
        return Proportion(part=self.true_passes, whole=self.true_passes + self.false_fails)

    @property
    def true_fail_rate(self) -> Proportion:
        """Of what people failed, what the judge did."""
        return Proportion(part=self.true_fails, whole=self.true_fails + self.false_passes)

    @property
    def agreement(self) -> Proportion:
        """Of all cases, those that both saw alike."""
        whole = self.true_pass_rate.whole + self.true_fail_rate.whole
        return Proportion(part=self.true_passes + self.true_fails, whole=whole)

    @property
    def kappa(self) -> float | None:
        """How far they agree beyond what chance would have them; 1 is always, 0 is by chance.

        None where chance alone would have them agree always. J. Cohen, A Coefficient of Agreement
        for Nominal Scales, 1960.
        """
        agreed = self.agreement
        if agreed.value is None:
            return None
        judge_passes = self.true_passes + self.false_passes
        both_pass = judge_passes * self.true_pass_rate.whole
        both_fail = (agreed.whole - judge_passes) * self.true_fail_rate.whole
        chance = (both_pass + both_fail) / agreed.whole**2
        return None if chance == 1 else (agreed.value - chance) / (1 - chance)


def make_confusion_matrix(pairs: Iterable[tuple[bool, bool]]) -> ConfusionMatrix:
    """Count cases: whether people passed each, and whether the judge did."""
    listed = list(pairs)
    return ConfusionMatrix(
        true_passes=listed.count((True, True)),
        false_fails=listed.count((True, False)),
        false_passes=listed.count((False, True)),
        true_fails=listed.count((False, False)),
    )


def measure_flips(repeats: Iterable[Sequence[bool]]) -> Proportion:
    """How often a judge contradicts itself: pairs of its verdicts on one case that differ.

    Args:
        repeats: the verdicts on each case.
    """
    pairs = [pair for verdicts in repeats for pair in combinations(verdicts, 2)]
    return Proportion(part=sum(one != other for one, other in pairs), whole=len(pairs))


class Calibration(Struct, frozen=True, kw_only=True):
    """How far one evaluator agrees with people.

    Attributes:
        unscored: labelled cases that it gave no verdict on.
        flips: how often it contradicts itself; of nothing where it judged but once.
    """

    evaluator: str
    confusion: ConfusionMatrix
    unscored: int
    flips: Proportion
