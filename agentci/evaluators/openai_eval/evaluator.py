"""``type: openai_eval``: a grader over every turn, run locally or by an Evals API service."""

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
    """Combine grades into a judgement: every turn must pass; the score is the mean.

    Args:
        passed: whether each turn passes, in the order of ``grades``.
        least: the passing score.
        counts: counts of unpaired turns.
        turn_mismatch_fails: whether unpaired turns fail the case.
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
    """Join the models' reasoning, one line per turn if there are several turns."""
    several = len(grades) > 1
    lines = (
        f"turn {number}: {each.reasoning}" if several else each.reasoning
        for number, each in enumerate(grades, start=1)
        if each.reasoning
    )
    return "\n".join(lines) or None


# A row, and the tasks that its grade needs.
RowTasks: TypeAlias = tuple[JsonObject, tuple[Task, ...]]


class OpenAIEvaluator(Struct, frozen=True, kw_only=True):
    """Grades every turn locally.

    Attributes:
        needs: the judge models, and the program that calls Python functions.
        threshold: the score that every turn must reach.
        turn_mismatch_fails: whether missing or unexpected turns fail the case at any score, if the
            grader compares with expected turns.
    """

    identity: EvaluatorIdentity
    grader: TurnGrader
    threshold: float
    needs: tuple[Prerequisite, ...] = ()
    turn_mismatch_fails: bool = True

    def ask(self, case: Case) -> Compose | Skip:
        """Run the tasks that the grader needs for each turn, then grade the turns."""
        lined_up = select_graded_turns(case, compares=self.identity.needs_expected)
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

    def read(self, response: Response) -> Judgement:
        """Return the judgement."""
        return extract_judgement(response)

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
    """Has every turn graded by an Evals API service, which decides what passes.

    Attributes:
        criterion: the grader as the API defines it.
        low, high: the bounds of the grader's scores.
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
        """The service."""
        return (self.wanted,)

    def ask(self, case: Case) -> Compose | Skip:
        """Have all turns graded in one request."""
        lined_up = select_graded_turns(case, compares=self.identity.needs_expected)
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
            [response] = replies
            if not isinstance(response, ServiceGrades):
                raise TypeError(f"a service was asked, and {type(response).__name__} came")
            judgement = combine_turn_grades(
                [self._grade(each) for each in response.grades],
                [each.passed for each in response.grades],
                least=self.threshold,
                counts=lined_up.counts,
                turn_mismatch_fails=self.turn_mismatch_fails,
            )
            return ConstantJudgement(judgement=judgement)

        return Compose(parts=((self.identity.name, request),), then=judge)

    def read(self, response: Response) -> Judgement:
        """Return the judgement."""
        return extract_judgement(response)

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
    """Return what is sent of a turn: its texts and dataset columns, without the sample."""
    return {name: value for name, value in row[ITEM].items() if name != SAMPLE}
