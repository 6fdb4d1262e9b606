"""Rubrics: criteria that a judge model scores one by one, as met or with a grade from 0 to 10."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_number
from agentci.evaluators.agentv.findings import Finding
from agentci.model.judges import AggregateVerdict, ChecklistSchema, ScoreValue
from agentci.model.values import Json, JsonObject


def summarize_votes(name: str, aggregate: AggregateVerdict) -> str | None:
    """Return ``2 of 3 passed`` or all grades in order; None if the model was asked once."""
    values = [each.scores[name].value for each in aggregate.verdicts if name in each.scores]
    asked = len(aggregate.verdicts) + len(aggregate.failures)
    if asked == 1:
        return None
    if all(isinstance(value, bool) for value in values):
        text = f"{values.count(True)} of {len(values)} passed"
    elif all(isinstance(value, str) for value in values):
        text = ", ".join(f"{label} {times}" for label, times in Counter(values).most_common())
    else:
        text = ", ".join(format_number(value) for value in sorted(map(float, values)))
    failed = asked - len(values)
    return f"{text}; {failed} without a verdict" if failed else text


MAX_GRADE: Final = 10
# A criterion at or above this share of the highest grade is a hit.
HIT_SHARE: Final = 0.7


class GradeRange(Struct, frozen=True, kw_only=True):
    """The meaning of grades from ``low`` to ``high``, both included."""

    low: int
    high: int
    meaning: str


class Criterion(Struct, frozen=True, kw_only=True):
    """One rubric item.

    Attributes:
        text: what a good answer does; empty if only ``ranges`` describe it.
        required: whether the evaluator fails if the criterion is not met; None if not set.
        min_share: the share of the highest grade that a graded criterion must reach.
    """

    id: str
    text: str
    weight: float = 1.0
    required: bool | None = None
    min_share: float | None = None
    ranges: tuple[GradeRange, ...] = ()

    @property
    def name(self) -> str:
        """The prefix of lines about the criterion."""
        return f"[{self.id}]"

    @property
    def title(self) -> str:
        """The text; without one the id, as in AgentV."""
        return self.text or self.id

    def get_required_share(self, *, graded: bool) -> float | None:
        """Return the share below which the evaluator fails; None if it does not fail.

        The default for an ungraded criterion is 1.
        """
        if not graded:
            return None if self.required is False else 1.0
        return self.min_share if self.min_share is not None else 1.0 if self.required else None

    def meaning(self, grade: float) -> str:
        """Return the meaning of a grade; a mean grade is rounded down."""
        found = (each.meaning for each in self.ranges if each.low <= int(grade) <= each.high)
        return next(found, "")


class ScoredCriterion(Struct, frozen=True, kw_only=True):
    """A criterion with its result.

    Attributes:
        value: whether the criterion is met, or its grade.
        votes: a summary of the samples' results; None if the model was asked once.
    """

    criterion: Criterion
    value: ScoreValue
    reason: str
    votes: str | None

    @property
    def share(self) -> float:
        """The result as a share from 0 to 1."""
        return float(self.value) / (1 if isinstance(self.value, bool) else MAX_GRADE)

    @property
    def fails(self) -> bool:
        """Whether the criterion makes the evaluator fail."""
        required_share = self.criterion.get_required_share(graded=not isinstance(self.value, bool))
        return required_share is not None and self.share < required_share

    @property
    def is_hit(self) -> bool:
        """Whether the criterion counts as a hit."""
        return not self.fails and self.share >= HIT_SHARE

    @property
    def line(self) -> str:
        """The report line, in AgentV's format."""
        text = f"{self.criterion.name} {self.criterion.title}"
        if not isinstance(self.value, bool):
            grade = float(self.value)
            meaning = self.criterion.meaning(grade)
            text += (
                f" - Score: {format_number(grade)}/{MAX_GRADE}{f' ({meaning})' if meaning else ''}"
            )
        return f"{text}: {self.reason}" if self.reason else text

    @property
    def details(self) -> JsonObject:
        """The result as JSON data."""
        split: JsonObject = {} if self.votes is None else {"samples": self.votes}
        return {"satisfied" if isinstance(self.value, bool) else "score": self.value, **split}


SATISFIED_INSTRUCTIONS: Final = (
    "Check every item of the rubrics on its own, and report it under its id: satisfied is true if"
    " the item is fully met, and false otherwise."
)
GRADE_INSTRUCTIONS: Final = (
    "Grade every item of the rubrics on its own, and report it under its id, with a whole number"
    " from 0 to 10. If an item defines ranges, choose the range that fits and a number in it."
)


class Rubrics(Struct, frozen=True, kw_only=True):
    """Criteria with unique ids; if one of them has ranges, all of them are graded."""

    criteria: tuple[Criterion, ...]

    @property
    def is_graded(self) -> bool:
        """Whether the criteria are graded from 0 to 10 instead of met or not met."""
        return any(each.ranges for each in self.criteria)

    @property
    def form(self) -> ChecklistSchema:
        """The schema of the verdict."""
        names = tuple(each.id for each in self.criteria)
        return ChecklistSchema(
            names=names, kind="number" if self.is_graded else "boolean", high=MAX_GRADE
        )

    @property
    def instructions(self) -> str:
        """The judge model's instructions for the criteria."""
        return GRADE_INSTRUCTIONS if self.is_graded else SATISFIED_INSTRUCTIONS

    @property
    def text(self) -> str:
        """The criteria, one line each, with one line per range."""
        return "\n".join(line for each in self.criteria for line in self._lines(each))

    @property
    def data(self) -> list[Json]:
        """The criteria as JSON data."""
        return [self._data(each) for each in self.criteria]

    def make_finding(self, aggregate: AggregateVerdict) -> Finding:
        """Compute the score from the criteria that the judge model scored.

        A criterion without a result is left out of the score, as in AgentV, but prevents a pass.
        """
        scored = [
            self._score_criterion(each, aggregate)
            for each in self.criteria
            if each.id in aggregate.values
        ]
        missing = [each for each in self.criteria if each.id not in aggregate.values]
        total = sum(each.criterion.weight for each in scored)
        reached = sum(each.criterion.weight * each.share for each in scored)
        failed = [each.criterion for each in scored if each.fails]
        return Finding(
            score=reached / total if total else 0.0,
            hits=tuple(each.line for each in scored if each.is_hit),
            misses=(
                *(each.line for each in scored if not each.is_hit),
                *(f"{each.name} {each.title}: not graded by the judge" for each in missing),
            ),
            reasoning=aggregate.representative_verdict.reason or None,
            details={"criteria": {each.criterion.id: each.details for each in scored}},
            reason=_format_failure(failed, missing),
            fails=bool(failed),
            is_partial=bool(missing),
        )

    def _score_criterion(
        self, criterion: Criterion, aggregate: AggregateVerdict
    ) -> ScoredCriterion:
        name = criterion.id
        return ScoredCriterion(
            criterion=criterion,
            value=aggregate.values[name],
            reason=aggregate.find_score(name).reason,
            votes=summarize_votes(name, aggregate),
        )

    def _lines(self, criterion: Criterion) -> Iterator[str]:
        labels = ""
        required_share = criterion.get_required_share(graded=self.is_graded)
        if required_share is not None:
            least = (
                f": at least {format_number(required_share * MAX_GRADE)}" if self.is_graded else ""
            )
            labels = f" (required{least})"
        if criterion.weight != 1:
            labels += f" (weight: {format_number(criterion.weight)})"
        yield f"- {criterion.name}{labels}: {criterion.title}"
        yield from (f"  - {each.low} to {each.high}: {each.meaning}" for each in criterion.ranges)

    def _data(self, criterion: Criterion) -> JsonObject:
        ranges: JsonObject = {"score_ranges": [_format_range(each) for each in criterion.ranges]}
        return {
            "id": criterion.id,
            **({"outcome": criterion.text} if criterion.text else {}),
            "weight": criterion.weight,
            "required": criterion.get_required_share(graded=self.is_graded) is not None,
            **(ranges if criterion.ranges else {}),
        }


def _format_range(given: GradeRange) -> JsonObject:
    return {"score_range": [given.low, given.high], "outcome": given.meaning}


def _format_failure(failed: Sequence[Criterion], missing: Sequence[Criterion]) -> str | None:
    """Return why the evaluator fails regardless of the score, or None."""
    reasons = [f"required criteria not met: {_format_names(failed)}"] if failed else []
    if missing:
        reasons.append(f"not graded by the judge: {_format_names(missing)}")
    return "; ".join(reasons) or None


def _format_names(criteria: Sequence[Criterion]) -> str:
    return ", ".join(each.name for each in criteria)
