"""``type: builtin`` whose metric asks a model: a question a turn, one score of all answers."""

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import Struct

from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.measurement import judgement_of
from agentci.evaluators.constant import settled
from agentci.evaluators.metrics.judged.judged_metric import Grade, Matter
from agentci.evaluators.metrics.judged.registry import JUDGED_METRICS
from agentci.evaluators.metrics.metric import pairs, turn_counts
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.judging import AskModel, WantedPanel
from agentci.model.requests import Compose, Measurement, Need, Reply, Settled, Skip, Task
from agentci.model.rubric import Rubric
from agentci.model.ruling import Ruling

NO_RUBRICS = "there are no rubrics to judge by: add `rubrics` to its entry, or to golden cases"
NO_ANSWER = "the agent gave no answer that could be judged"


class JudgedEvaluator(Struct, frozen=True, kw_only=True):
    """A metric that a model measures.

    Attributes:
        metric: its name in the table of those that ask a model.
        rubrics: those of its entry, for all turns.
        turn_mismatch_fails: see ``judgement_of``.
    """

    identity: Identity
    metric: str
    wanted: WantedPanel
    rubrics: tuple[Rubric, ...] = ()
    turn_mismatch_fails: bool = True

    @property
    def needs(self) -> tuple[Need, ...]:
        """Who judges."""
        return (self.wanted,)

    def ask(self, case: Case) -> Compose | Skip:
        """Ask about every turn that there is something to judge of.

        Raises:
            EvaluatorError: two rubrics have one id, or there are none where the metric needs some.
        """
        metric = JUDGED_METRICS[self.metric]
        if metric.needs_golden and not (case.golden and case.golden.turns):
            return Skip(reason=case.no_golden_because or "the golden case has no turns")
        asked = [
            (number, matter, question)
            for number, matter in enumerate(self._matters(case), start=1)
            if (question := metric.question(matter)) is not None
        ]
        if not asked:
            return Skip(reason=NO_ANSWER)
        panel = self.wanted.panel
        return Compose(
            parts=tuple(
                (f"{self.identity.name}, turn {number}", AskModel(question=question, panel=panel))
                for number, _, question in asked
            ),
            then=partial(
                self._judged, [(number, matter) for number, matter, _ in asked], self._counts(case)
            ),
        )

    def read(self, reply: Reply) -> Judgement:
        """What the answers came to."""
        return settled(reply)

    def _matters(self, case: Case) -> Iterator[Matter]:
        metric = JUDGED_METRICS[self.metric]
        if metric.needs_golden:
            golden = case.golden.turns if case.golden else ()
            yield from (
                Matter(turn=turn, golden=wanted) for turn, wanted in pairs(case.trace.turns, golden)
            )
            return
        of_golden = case.golden.rubrics if case.golden else ()
        for index, turn in enumerate(case.trace.turns):
            own = of_golden[index] if index < len(of_golden) else ()
            typed = (each for each in own if metric.rubric_type and each.type == metric.rubric_type)
            rubrics = (*self.rubrics, *typed)
            if metric.rubric_type:
                _check(rubrics)
            yield Matter(turn=turn, rubrics=rubrics)

    def _counts(self, case: Case) -> JsonObject:
        """Turns without a partner, for metrics that compare them."""
        if case.golden is None or not JUDGED_METRICS[self.metric].needs_golden:
            return {}
        return turn_counts(case.trace.turns, case.golden.turns)

    def _judged(
        self,
        asked: Sequence[tuple[int, Matter]],
        counts: JsonObject,
        replies: tuple[Reply, ...],
    ) -> Task:
        metric = JUDGED_METRICS[self.metric]
        rulings = [reply for reply in replies if isinstance(reply, Ruling)]
        grades = [
            metric.grade(ruling, matter) for ruling, (_, matter) in zip(rulings, asked, strict=True)
        ]
        measured = Measurement(
            score=_mean(grades),
            turn_scores=tuple(grade.score for grade in grades),
            misses=tuple(
                f"turn {number}: {miss}"
                for grade, (number, _) in zip(grades, asked, strict=True)
                for miss in grade.misses
            ),
            details={**_splits(asked, rulings), **counts},
        )
        return Settled(
            judgement=judgement_of(
                measured, self.identity, turn_mismatch_fails=self.turn_mismatch_fails
            )
        )


def _mean(grades: Sequence[Grade]) -> float:
    weight = sum(grade.weight for grade in grades)
    return sum(grade.score * grade.weight for grade in grades) / weight


def _check(rubrics: Sequence[Rubric]) -> None:
    if not rubrics:
        raise EvaluatorError(NO_RUBRICS)
    ids = [each.id for each in rubrics]
    for rubric_id in ids:
        if ids.count(rubric_id) > 1:
            raise EvaluatorError(f"two rubrics of one turn have the id {rubric_id!r}")


def _splits(asked: Sequence[tuple[int, Matter]], rulings: Sequence[Ruling]) -> JsonObject:
    """The turns that the samples disagreed about, where there are any."""
    numbers = [
        number for ruling, (number, _) in zip(rulings, asked, strict=True) if ruling.is_split
    ]
    return {"split_turns": numbers} if numbers else {}
