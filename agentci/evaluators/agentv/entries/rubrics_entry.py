"""Entries of ``rubrics``, and the criteria that they, ``llm_judge`` and cases list."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, JsonValue, model_validator

from agentci._util.text.suggest import quoted
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import Surroundings, identity_of, standard_of
from agentci.evaluators.agentv.criteria import MOST, Criterion, Range
from agentci.evaluators.agentv.entries.judge_entry import wanted_panel
from agentci.evaluators.agentv.entry_fields import JudgeEntry, NonNegative
from agentci.evaluators.agentv.llm_judge import LlmJudge
from agentci.evaluators.agentv.rubrics import Rubrics
from agentci.evaluators.fields import Name, Share, Strict, Text
from agentci.evaluators.judge_config import JudgeSpec
from agentci.evaluators.repeat import Repeated
from agentci.model.place import Place

Grade: TypeAlias = Annotated[int, Field(ge=0, le=MOST)]
Bounds: TypeAlias = Annotated[list[Grade], Field(min_length=2, max_length=2)]


class RangeSpec(Strict):
    """What grades of one range mean."""

    score_range: Bounds = Field(description="Its first and its last grade.")
    outcome: Text = Field(description="What they mean.")


class CriterionSpec(Strict):
    """One criterion, which is met or not; or graded, where one of the list has `score_ranges`."""

    id: Name | None = Field(default=None, description="By default `rubric-1` and so on.")
    outcome: Text | None = Field(default=None, description="What a good answer does.")
    criteria: Text | None = Field(default=None, description="The same.")
    expected_outcome: Text | None = Field(default=None, description="The same, in older files.")
    description: Text | None = Field(default=None, description="The same, in the oldest files.")
    operator: JsonValue = Field(default=None, description="Not used, as in most of AgentV.")
    weight: NonNegative = Field(default=1.0, description="How much it counts.")
    required: bool | None = Field(
        default=None,
        description="Whether the evaluator fails without it: by default it does, but not where "
        "criteria are graded; there `true` asks for the best grade.",
    )
    min_score: Share | None = Field(
        default=None, description="Share of the best grade without which the evaluator fails."
    )
    required_min_score: Grade | None = Field(
        default=None, description="The same as a grade from 0 to 10, in older files."
    )
    score_ranges: list[RangeSpec] | dict[str, Text] | None = Field(
        default=None,
        description="What grades from 0 to 10 mean: ranges that leave none out, or the first "
        "grade of each with its meaning.",
    )

    @property
    def text(self) -> str:
        """What it asks for."""
        told = (self.outcome, self.criteria, self.expected_outcome, self.description)
        return next((each for each in told if each), "")

    @property
    def least(self) -> float | None:
        """See ``Criterion``."""
        if self.min_score is not None or self.required_min_score is None:
            return self.min_score
        return self.required_min_score / MOST

    @property
    def ranges(self) -> tuple[Range, ...]:
        """See ``Criterion``."""
        return tuple(_ranges(self.score_ranges or []))

    @model_validator(mode="after")
    def _as_it_should_be(self) -> Self:
        if not self.text:
            raise ValueError("a criterion needs an `outcome`: what a good answer does")
        ranges = self.ranges
        covered = [each.low for each in ranges[:1]] == [0] and ranges[-1].high == MOST
        in_turn = all(one.high + 1 == other.low for one, other in pairwise(ranges))
        if self.score_ranges is not None and not (covered and in_turn):
            raise ValueError(f"score_ranges must go from 0 to {MOST}, with no grade in two or none")
        return self


# A text is a criterion by itself.
Criteria: TypeAlias = Annotated[list[Text | CriterionSpec], Field(min_length=1)]


class RubricsEntry(Repeated, JudgeEntry):
    """A language model that judges each of several criteria."""

    type: Literal["rubrics"] = Field(
        description="A language model that judges each of several criteria."
    )
    rubrics: Criteria | None = Field(default=None, description="The criteria.")
    criteria: Criteria | None = Field(default=None, description="The same.")
    judge: JudgeSpec | None = Field(
        default=None, description="Which model judges, where that is not the one of the file."
    )

    @model_validator(mode="after")
    def _with_criteria(self) -> Self:
        if (self.rubrics is None) == (self.criteria is None):
            raise ValueError("it needs its criteria, once: `criteria`, or `rubrics`")
        return self


def build_rubrics(entry: RubricsEntry, surroundings: Surroundings) -> LlmJudge:
    """Make the evaluator.

    Raises:
        InputError: nobody said who judges, or two criteria have the same id.
    """
    field = "rubrics" if entry.criteria is None else "criteria"
    listed = entry.criteria or entry.rubrics or []
    return LlmJudge(
        identity=identity_of(entry, surroundings),
        standard=standard_of(entry, surroundings),
        wanted=wanted_panel(entry.name, entry.judge, surroundings),
        scale=rubrics_of(listed, surroundings.place_of(field)),
    )


def rubrics_of(listed: Sequence[str | CriterionSpec], place: Place) -> Rubrics:
    """The criteria that are listed at ``place``.

    Raises:
        InputError: two have the same id.
    """
    criteria = tuple(_criterion(each, index + 1) for index, each in enumerate(listed))
    [(most, times)] = Counter(each.id for each in criteria).most_common(1)
    if times > 1:
        hint = "give one of them another id"
        raise InputError.of(f"two criteria have the id {quoted(most)}", place=place, hint=hint)
    return Rubrics(criteria=criteria)


def _criterion(given: str | CriterionSpec, number: int) -> Criterion:
    spec = CriterionSpec(outcome=given) if isinstance(given, str) else given
    return Criterion(
        id=spec.id or f"rubric-{number}",
        text=spec.text,
        weight=spec.weight,
        required=spec.required,
        least=spec.least,
        ranges=spec.ranges,
    )


def _ranges(given: Sequence[RangeSpec] | dict[str, str]) -> Iterator[Range]:
    """The ranges in order; of a mapping, each ends where the next one begins."""
    if isinstance(given, dict):
        if not all(each.isdecimal() for each in given):
            raise ValueError("the keys of score_ranges must be grades from 0 to 10")
        firsts = sorted((int(each), meaning) for each, meaning in given.items())
        ends = [first - 1 for first, _ in firsts[1:]] + [MOST]
        for (first, meaning), last in zip(firsts, ends, strict=True):
            yield Range(low=first, high=last, meaning=meaning)
        return
    for each in sorted(given, key=lambda spec: spec.score_range):
        low, high = each.score_range
        yield Range(low=low, high=high, meaning=each.outcome)
