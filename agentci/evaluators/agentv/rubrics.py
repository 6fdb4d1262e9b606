"""Rubrics: criteria that are judged each by itself, as met or on a scale from 0 to 10."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text.format import number
from agentci.evaluators.agentv.criteria import MOST, Criterion, Marked, Range
from agentci.evaluators.agentv.verdict import Finding
from agentci.evaluators.vote_summary import votes_on
from agentci.model.json import Json, JsonObject
from agentci.model.judging import Checklist
from agentci.model.ruling import Ruling

MET_OR_NOT: Final = (
    "Judge each item of the rubrics by itself, under its id, and leave none out: satisfied is true"
    " where it is met, and false where it is not, or only in part."
)
GRADED: Final = (
    "Grade each item of the rubrics by itself, under its id, and leave none out: a whole number"
    " from 0 to 10. Where an item describes ranges, take the one that fits, and a number in it."
)


class Rubrics(Struct, frozen=True, kw_only=True):
    """Criteria, each with an id of its own; if one has ranges, all of them are graded."""

    criteria: tuple[Criterion, ...]

    @property
    def is_graded(self) -> bool:
        """Whether they are graded, not met or missed."""
        return any(each.ranges for each in self.criteria)

    @property
    def form(self) -> Checklist:
        """Of the verdict."""
        names = tuple(each.id for each in self.criteria)
        return Checklist(names=names, kind="number" if self.is_graded else "boolean", high=MOST)

    @property
    def instructions(self) -> str:
        """What to do with them."""
        return GRADED if self.is_graded else MET_OR_NOT

    @property
    def told(self) -> str:
        """The criteria, a line each, with a line for each range."""
        return "\n".join(line for each in self.criteria for line in self._lines(each))

    @property
    def listed(self) -> list[Json]:
        """The criteria as data."""
        return [self._data(each) for each in self.criteria]

    def find(self, ruling: Ruling) -> Finding:
        """Score by the criteria that the judge marked.

        What it says nothing of is not in the score, as in AgentV, but keeps it from passing.
        """
        marked = [self._marked(each, ruling) for each in self.criteria if each.id in ruling.values]
        unsaid = [each for each in self.criteria if each.id not in ruling.values]
        total = sum(each.criterion.weight for each in marked)
        reached = sum(each.criterion.weight * each.share for each in marked)
        failed = [each.criterion for each in marked if each.fails]
        return Finding(
            score=reached / total if total else 0.0,
            hits=tuple(each.line for each in marked if each.is_hit),
            misses=(
                *(each.line for each in marked if not each.is_hit),
                *(f"{each.name} {each.text}: the judge said nothing of it" for each in unsaid),
            ),
            reasoning=ruling.spokesman.reason or None,
            details={"criteria": {each.criterion.id: each.details for each in marked}},
            reason=_reason(failed, unsaid),
            falls_short=bool(failed),
            is_partial=bool(unsaid),
        )

    def _marked(self, criterion: Criterion, ruling: Ruling) -> Marked:
        name = criterion.id
        return Marked(
            criterion=criterion,
            value=ruling.values[name],
            reason=ruling.mark(name).reason,
            votes=votes_on(name, ruling),
        )

    def _lines(self, criterion: Criterion) -> Iterator[str]:
        labels = ""
        wanted = criterion.wanted(graded=self.is_graded)
        if wanted is not None:
            least = f": at least {number(wanted * MOST)}" if self.is_graded else ""
            labels = f" (required{least})"
        if criterion.weight != 1:
            labels += f" (weight: {number(criterion.weight)})"
        yield f"- {criterion.name}{labels}: {criterion.text}"
        yield from (f"  - {each.low} to {each.high}: {each.meaning}" for each in criterion.ranges)

    def _data(self, criterion: Criterion) -> JsonObject:
        ranges: JsonObject = {"score_ranges": [_range(each) for each in criterion.ranges]}
        return {
            "id": criterion.id,
            "outcome": criterion.text,
            "weight": criterion.weight,
            "required": criterion.wanted(graded=self.is_graded) is not None,
            **(ranges if criterion.ranges else {}),
        }


def _range(given: Range) -> JsonObject:
    return {"score_range": [given.low, given.high], "outcome": given.meaning}


def _reason(failed: Sequence[Criterion], unsaid: Sequence[Criterion]) -> str | None:
    """Why it does not pass, whatever the score."""
    said = [f"required, and not reached: {_names(failed)}"] if failed else []
    if unsaid:
        said.append(f"the judge said nothing of {_names(unsaid)}")
    return "; ".join(said) or None


def _names(criteria: Sequence[Criterion]) -> str:
    return ", ".join(each.name for each in criteria)
