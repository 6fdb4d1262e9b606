"""Whether the cases of a run prove a pass rate, and how many more it would take."""

from collections.abc import Iterable

from msgspec import Struct

from agentci._util.text.format import count, number, percents_apart
from agentci.gate.statistics import TOLERANCE, at_least, cases_needed, lower_bound
from agentci.model.result import Result

PERCENT = 100


class Proof(Struct, frozen=True, kw_only=True):
    """Independent cases, held against a rate that they are to prove.

    Attributes:
        rate: that has to be proven, above 0 and below 1.
        confidence: how sure that has to be: the exact one-sided lower bound of the pass rate, at
            this confidence, has to reach the rate.
    """

    passed: int
    total: int
    rate: float
    confidence: float

    @property
    def holds(self) -> bool:
        """Whether as many would hardly pass if the rate were any lower."""
        return at_least(self.passed, self.total, self.rate) <= 1 - self.confidence + TOLERANCE

    @property
    def words(self) -> str:
        """What they prove; where that is too little, what it would take."""
        bound, rate = percents_apart(
            lower_bound(self.passed, self.total, self.confidence), self.rate
        )
        sure = f"{number(self.confidence * PERCENT)}%"
        proven = f"proves a pass rate of at least {bound} with {sure} confidence"
        cases = f"{self.passed:,} of {count(self.total, 'case')} passed"
        told = f"{cases}, which {proven}; {rate} is asked"
        if self.holds:
            return told
        needed = cases_needed(self.total - self.passed, self.rate, self.confidence)
        return f"{told}: it takes {count(needed - self.total, 'more case')}, all passing"


def proof_of(passes: Iterable[bool], rate: float | None, confidence: float | None) -> Proof | None:
    """None where nothing is to be proven: of all, or of none, no number of cases proves anything.

    Args:
        passes: of independent cases.
        confidence: as in ``Proof``; None asks for no proof.
    """
    votes = [*passes]
    if confidence is None or rate is None or not 0 < rate < 1 or not votes:
        return None
    return Proof(passed=sum(votes), total=len(votes), rate=rate, confidence=confidence)


def by_group(results: Iterable[Result]) -> Iterable[bool]:
    """Whether all checks passed of those that belong together: they tell one thing, not many."""
    groups: dict[str, bool] = {}
    for result in results:
        passed = groups.get(result.case.group, True) and result.status == "passed"
        groups[result.case.group] = passed
    return groups.values()
