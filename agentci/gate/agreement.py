"""How far a judge agrees with people, and with itself: counts, and what they come to."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from msgspec import Struct

from agentci.gate.statistics import wilson


class Rate(Struct, frozen=True, kw_only=True):
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
        return wilson(self.part / self.whole, self.whole) if self.whole else None


class Confusion(Struct, frozen=True, kw_only=True):
    """Cases by what people said and what a judge did.

    Attributes:
        right_passes, wrong_fails: of those that people passed.
        wrong_passes, right_fails: of those that people failed.
    """

    right_passes: int = 0
    wrong_fails: int = 0
    wrong_passes: int = 0
    right_fails: int = 0

    @property
    def passed(self) -> Rate:
        """Of what people passed, what the judge did."""
        return Rate(part=self.right_passes, whole=self.right_passes + self.wrong_fails)

    @property
    def failed(self) -> Rate:
        """Of what people failed, what the judge did."""
        return Rate(part=self.right_fails, whole=self.right_fails + self.wrong_passes)

    @property
    def agreed(self) -> Rate:
        """Of all cases, those that both saw alike."""
        whole = self.passed.whole + self.failed.whole
        return Rate(part=self.right_passes + self.right_fails, whole=whole)

    @property
    def kappa(self) -> float | None:
        """How far they agree beyond what chance would have them; 1 is always, 0 is by chance.

        None where chance alone would have them agree always. J. Cohen, A Coefficient of Agreement
        for Nominal Scales, 1960.
        """
        agreed = self.agreed
        if agreed.value is None:
            return None
        judge_passes = self.right_passes + self.wrong_passes
        both_pass = judge_passes * self.passed.whole
        both_fail = (agreed.whole - judge_passes) * self.failed.whole
        chance = (both_pass + both_fail) / agreed.whole**2
        return None if chance == 1 else (agreed.value - chance) / (1 - chance)


def confusion_of(pairs: Iterable[tuple[bool, bool]]) -> Confusion:
    """Count cases: whether people passed each, and whether the judge did."""
    listed = list(pairs)
    return Confusion(
        right_passes=listed.count((True, True)),
        wrong_fails=listed.count((True, False)),
        wrong_passes=listed.count((False, True)),
        right_fails=listed.count((False, False)),
    )


def flips(repeats: Iterable[Sequence[bool]]) -> Rate:
    """How often a judge contradicts itself: pairs of its verdicts on one case that differ.

    Args:
        repeats: the verdicts on each case.
    """
    pairs = [pair for verdicts in repeats for pair in combinations(verdicts, 2)]
    return Rate(part=sum(one != other for one, other in pairs), whole=len(pairs))


class Calibration(Struct, frozen=True, kw_only=True):
    """How far one evaluator agrees with people.

    Attributes:
        unjudged: labelled cases that it gave no verdict on.
        flips: how often it contradicts itself; of nothing where it judged but once.
    """

    evaluator: str
    confusion: Confusion
    unjudged: int
    flips: Rate
