"""``type: openai_eval``: a grader over every turn, run here or by a service of the Evals API."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from msgspec import Struct

from agentci._util.text.format import format_count, format_number
from agentci.errors import EvaluatorError
from agentci.evaluators.evaluator import extract_judgement
from agentci.evaluators.grader_protocol import SAMPLE
from agentci.evaluators.metrics.metric import describe_turn_mismatch, mean
from agentci.evaluators.openai_eval.graders import TurnGrade, TurnGrader
from agentci.evaluators.openai_eval.template_data import ITEM, select_graded_turns
from agentci.model.case import Case
from agentci.model.json import JsonObject
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.requests import (
    Compose,
    ConstantJudgement,
    GradeWithService,
    Prerequisite,
    RequiredService,
    Response,
    ServiceGrade,
    ServiceGrades,
    Skip,
    Task,
)


def combine_turn_grades(
    grades: Sequence[TurnGrade],
    passed: Sequence[bool],
    *,
    least: float,
    counts: JsonObject,
    turn_mismatch_fails: bool,
) -> Judgement:
    """Every turn has to pass; the score is their mean.

    Args:
        passed: a turn each.
        least: the score that passes.
        counts: of turns without a partner.
        turn_mismatch_fails: whether such turns fail the case.
    """
    misses = tuple(
        f"turn {number}: {grade.summary}"
        for number, (grade, passes) in enumerate(zip(grades, passed, strict=True), start=1)
        if not passes
    )
    scores = tuple(each.score for each in grades)
    score = mean(scores)
    mismatch = describe_turn_mismatch(len(grades), counts) if turn_mismatch_fails else None
    reason = mismatch
    if misses:
        short = f"{format_count(len(misses), 'turn')} of {len(grades)} fell short"
        reason = short if score >= least else None
    return Judgement(
        score=score,
        passed=not misses and mismatch is None,
        reason=reason,
        turn_scores=scores,
        misses=(mismatch, *misses) if misses and mismatch else misses,
        reasoning=_join_reasoning(grades),
        details={
            "results": [
                {"score": grade.score, "passed": passes, **grade.details}
                for grade, passes in zip(grades, passed, strict=True)
            ],
            **counts,
        },
    )


def _join_reasoning(grades: Sequence[TurnGrade]) -> str | None:
    """What models said, turn by turn where there are several."""
    several = len(grades) > 1
    lines = (
        f"turn {number}: {each.reasoning}" if several else each.reasoning
        for number, each in enumerate(grades, start=1)
        if each.reasoning
    )
    return "\n".join(lines) or None


# A row, and what is asked to grade it.
RowTasks: TypeAlias = tuple[JsonObject, tuple[Task, ...]]


class OpenAIEvaluator(Struct, frozen=True, kw_only=True):
    """The evaluator.

    Attributes:
        needs: who grades, and what calls functions that do.
        threshold: the score that every turn has to reach.
        turn_mismatch_fails: whether missing or unexpected turns fail a case whatever its score,
            where it compares with golden turns.
    """

    identity: EvaluatorIdentity
    grader: TurnGrader
    threshold: float
    needs: tuple[Prerequisite, ...] = ()
    turn_mismatch_fails: bool = True

    def ask(self, case: Case) -> Compose | Skip:
        """Have done what the grader needs for each turn, then grade them."""
        lined_up = select_graded_turns(case, compares=self.identity.needs_golden)
        if isinstance(lined_up, Skip):
            return lined_up
        asked = [(row, self.grader.make_tasks(row)) for row in lined_up.rows]

        def judge(replies: Sequence[Response]) -> ConstantJudgement:
            grades = [*self._grades(asked, replies)]
            judgement = combine_turn_grades(
                grades,
                [each.score >= self.threshold for each in grades],
                least=self.threshold,
                counts=lined_up.counts,
                turn_mismatch_fails=self.turn_mismatch_fails,
            )
            return ConstantJudgement(judgement=judgement)

        return Compose(
            parts=tuple((self.identity.name, task) for _, tasks in asked for task in tasks),
            then=judge,
        )

    def read(self, reply: Response) -> Judgement:
        """What came of it."""
        return extract_judgement(reply)

    def _grades(
        self, asked: Sequence[RowTasks], replies: Sequence[Response]
    ) -> Iterator[TurnGrade]:
        rest = iter(replies)
        for number, (row, tasks) in enumerate(asked, start=1):
            try:
                yield self.grader.grade(row, tuple(islice(rest, len(tasks))))
            except EvaluatorError as error:
                raise EvaluatorError(f"turn {number}: {error}") from None


class EvalsApiEvaluator(Struct, frozen=True, kw_only=True):
    """The evaluator; what passes is the word of the service.

    Attributes:
        criterion: the grader, as the API writes it.
        low, high: the bounds of its scores.
        threshold, turn_mismatch_fails: as in ``OpenAIEvaluator``.
    """

    identity: EvaluatorIdentity
    wanted: RequiredService
    criterion: JsonObject
    timeout_seconds: float
    threshold: float
    low: float = 0.0
    high: float = 1.0
    turn_mismatch_fails: bool = True

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """Who grades."""
        return (self.wanted,)

    def ask(self, case: Case) -> Compose | Skip:
        """Have all turns graded at once."""
        lined_up = select_graded_turns(case, compares=self.identity.needs_golden)
        if isinstance(lined_up, Skip):
            return lined_up
        request = GradeWithService(
            service=self.wanted.service,
            name=f"agentci {self.identity.name}",
            criterion=self.criterion,
            items=tuple(map(_make_sent_item, lined_up.rows)),
            timeout_seconds=self.timeout_seconds,
        )

        def judge(replies: tuple[Response, ...]) -> ConstantJudgement:
            [reply] = replies
            if not isinstance(reply, ServiceGrades):
                raise TypeError(f"a service was asked, and {type(reply).__name__} came")
            judgement = combine_turn_grades(
                [self._grade(each) for each in reply.grades],
                [each.passed for each in reply.grades],
                least=self.threshold,
                counts=lined_up.counts,
                turn_mismatch_fails=self.turn_mismatch_fails,
            )
            return ConstantJudgement(judgement=judgement)

        return Compose(parts=((self.identity.name, request),), then=judge)

    def read(self, reply: Response) -> Judgement:
        """What came of it."""
        return extract_judgement(reply)

    def _grade(self, grade: ServiceGrade) -> TurnGrade:
        if not self.low <= grade.score <= self.high:
            bounds = f"{format_number(self.low)} to {format_number(self.high)}"
            raise EvaluatorError(
                f"the service gave {format_number(grade.score)}, not a score of {bounds}"
            )
        reason = grade.details.get("reason")
        return TurnGrade(
            score=(grade.score - self.low) / (self.high - self.low),
            summary=f"the service gave {format_number(grade.score)}",
            details=grade.details,
            reasoning=reason if isinstance(reason, str) else "",
        )


def _make_sent_item(row: Mapping[str, JsonObject]) -> JsonObject:
    """What is sent of a turn: texts and columns, without all that the agent did."""
    return {name: value for name, value in row[ITEM].items() if name != SAMPLE}
