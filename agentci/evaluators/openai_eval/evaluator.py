"""``type: openai_eval``: a grader over every turn, run locally or by an Evals API service."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.text.format import format_count, format_number
from agentci.errors import EvaluatorError
from agentci.evaluators import metrics
from agentci.evaluators.evaluator import Definition, Facts, check_response, extract_judgement
from agentci.evaluators.grader_protocol import (
    ITEM,
    SAMPLE,
    make_item,
    make_sample,
    read_item_columns,
)
from agentci.evaluators.openai_eval.graders import TurnGrade, TurnGrader
from agentci.model.case import Case, Expectation
from agentci.model.requests import (
    Compose,
    ConstantJudgement,
    EvaluatorIdentity,
    GradeWithService,
    Judgement,
    Prerequisite,
    RequiredService,
    Response,
    ServiceGrade,
    ServiceGrades,
    Skip,
    Task,
)
from agentci.model.trace import Turn
from agentci.model.values import JsonObject, replace

# agentevals' names for the two texts.
ACTUAL_FIELD: Final = "actual_response"
EXPECTED_FIELD: Final = "expected_response"
# Fields that always hold what was recorded.
RECORDED_FIELDS: Final = frozenset({ACTUAL_FIELD, SAMPLE})


class GradedTurns(Struct, frozen=True, kw_only=True):
    """The turns of a case that are graded.

    Attributes:
        rows: the template namespaces of each turn.
        counts: counts of unpaired turns; empty if the grader does not compare turns.
    """

    rows: tuple[Mapping[str, JsonObject], ...]
    counts: JsonObject


def select_graded_turns(case: Case, *, compares: bool) -> GradedTurns | Skip:
    """Pair the turns of a case with the expected turns.

    Args:
        compares: whether turns without an expected turn are left out.
    """
    actual, expected = case.trace.turns, case.expected.turns if case.expected else ()
    if compares and not expected:
        return Skip(reason=case.unmatched_reason or metrics.NO_EXPECTED_TURNS)
    graded = actual[: len(expected)] if compares else actual
    return GradedTurns(
        rows=tuple(
            make_template_row(case, turn, expected_turn)
            for turn, expected_turn in zip_longest(graded, expected[: len(graded)])
        ),
        counts=metrics.count_unpaired_turns(actual, expected) if compares else {},
    )


def make_template_row(case: Case, turn: Turn, expected: Turn | None) -> Mapping[str, JsonObject]:
    """Make the template namespaces for one turn of a case; a missing text is empty.

    Dataset columns override the expected response, but not the recorded values.
    """
    eval_case = None
    if case.expected is not None and expected is not None:
        eval_case = replace(case.expected, turns=(expected,))
    one = replace(case, trace=replace(case.trace, turns=(turn,)), expected=eval_case)
    sample = make_sample(one)
    item: JsonObject = {
        EXPECTED_FIELD: (expected and expected.final_text) or "",
        **make_item(one),
        ACTUAL_FIELD: turn.final_text or "",
        SAMPLE: sample,
    }
    return {ITEM: item, SAMPLE: sample}


def read_item_fields(
    expectation: Expectation, names: frozenset[str] | None, *, compares: bool
) -> Facts:
    """Return what ``make_template_row`` takes from the expectation of a case for all turns.

    Args:
        names: the fields of ``item`` that are read; None for all.
        compares: whether turns without an expected turn are left out.
    """
    columns = expectation.columns or {}
    reads_expected = EXPECTED_FIELD not in columns and (names is None or EXPECTED_FIELD in names)

    def read(expected: Turn | None) -> JsonObject:
        text = (expected and expected.final_text) or ""
        own: JsonObject = {EXPECTED_FIELD: text} if reads_expected else {}
        found = {**own, **read_item_columns(expectation, names, expected=expected)}
        return {name: value for name, value in found.items() if name not in RECORDED_FIELDS}

    unpaired, turns = read(None), [read(turn) for turn in expectation.turns]
    while turns and not compares and turns[-1] == unpaired:
        turns.pop()
    return [unpaired, turns]


def combine_turn_grades(
    grades: Sequence[TurnGrade],
    passed: Sequence[bool],
    *,
    threshold: float,
    counts: JsonObject,
    turn_mismatch_fails: bool,
) -> Judgement:
    """Combine grades into a judgement: every turn must pass; the score is the mean.

    Args:
        passed: whether each turn passes, in the order of ``grades``.
        threshold: the passing score.
        counts: counts of unpaired turns.
        turn_mismatch_fails: whether unpaired turns fail the case.
    """
    misses = tuple(
        f"turn {number}: {grade.summary}"
        for number, (grade, passes) in enumerate(zip(grades, passed, strict=True), start=1)
        if not passes
    )
    scores = tuple(each.score for each in grades)
    score = metrics.mean(scores)
    mismatch = metrics.describe_turn_mismatch(len(grades), counts) if turn_mismatch_fails else None
    reason = mismatch
    if misses:
        failed = f"{len(misses)} of {format_count(len(grades), 'turn')} failed"
        reason = failed if score >= threshold else None
    return Judgement(
        score=score,
        passed=not misses and mismatch is None,
        reason=reason,
        turn_scores=scores,
        misses=(*misses, mismatch) if misses and mismatch else misses,
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
        definition: see ``ComparableEvaluator``.
        fields: the fields of ``item`` that the grader reads; None if it may read any.
        needs: the judge models, and the program that calls Python functions.
        threshold: the score that every turn must reach.
        turn_mismatch_fails: whether missing or unexpected turns fail the case at any score, if the
            grader compares with expected turns.
    """

    identity: EvaluatorIdentity
    definition: Definition
    fields: frozenset[str] | None
    grader: TurnGrader
    threshold: float
    needs: tuple[Prerequisite, ...] = ()
    turn_mismatch_fails: bool = True

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return the fields that the grader reads, for every expected turn."""
        compares = self.identity.needs_expected
        return read_item_fields(expectation, self.fields, compares=compares)

    def ask(self, case: Case) -> Compose | Skip:
        """Run the tasks that the grader needs for each turn, then grade the turns."""
        turns = select_graded_turns(case, compares=self.identity.needs_expected)
        if isinstance(turns, Skip):
            return turns
        rows = [(row, self.grader.make_tasks(row)) for row in turns.rows]

        def combine(responses: Sequence[Response]) -> ConstantJudgement:
            grades = [*self._grades(rows, responses)]
            judgement = combine_turn_grades(
                grades,
                [each.score >= self.threshold for each in grades],
                threshold=self.threshold,
                counts=turns.counts,
                turn_mismatch_fails=self.turn_mismatch_fails,
            )
            return ConstantJudgement(judgement=judgement)

        return Compose(
            parts=tuple((self.identity.name, task) for _, tasks in rows for task in tasks),
            then=combine,
        )

    def read(self, response: Response) -> Judgement:
        """Return the judgement."""
        return extract_judgement(response)

    def _grades(
        self, rows: Sequence[RowTasks], responses: Sequence[Response]
    ) -> Iterator[TurnGrade]:
        rest = iter(responses)
        for number, (row, tasks) in enumerate(rows, start=1):
            try:
                yield self.grader.grade(row, tuple(islice(rest, len(tasks))))
            except EvaluatorError as error:
                raise EvaluatorError(f"turn {number}: {error}") from None


class EvalsApiEvaluator(Struct, frozen=True, kw_only=True):
    """Has every turn graded by an Evals API service, which decides what passes.

    Attributes:
        definition, fields: as in ``OpenAIEvaluator``.
        service: the service.
        criterion: the grader as the API defines it.
        low, high: the bounds of the grader's scores.
        threshold, turn_mismatch_fails: as in ``OpenAIEvaluator``.
    """

    identity: EvaluatorIdentity
    definition: Definition
    fields: frozenset[str] | None
    service: RequiredService
    criterion: JsonObject
    timeout_seconds: float
    threshold: float
    low: float = 0.0
    high: float = 1.0
    turn_mismatch_fails: bool = True

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """The service."""
        return (self.service,)

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return the fields that the grader reads, for every expected turn."""
        compares = self.identity.needs_expected
        return read_item_fields(expectation, self.fields, compares=compares)

    def ask(self, case: Case) -> Compose | Skip:
        """Have all turns graded in one request."""
        turns = select_graded_turns(case, compares=self.identity.needs_expected)
        if isinstance(turns, Skip):
            return turns
        request = GradeWithService(
            service=self.service.service,
            name=f"agentci {self.identity.name}",
            criterion=self.criterion,
            items=tuple(map(_make_sent_item, turns.rows)),
            timeout_seconds=self.timeout_seconds,
        )

        def combine(responses: tuple[Response, ...]) -> ConstantJudgement:
            [response] = responses
            grades = check_response(response, ServiceGrades).grades
            judgement = combine_turn_grades(
                [self._grade(each) for each in grades],
                [each.passed for each in grades],
                threshold=self.threshold,
                counts=turns.counts,
                turn_mismatch_fails=self.turn_mismatch_fails,
            )
            return ConstantJudgement(judgement=judgement)

        return Compose(parts=((self.identity.name, request),), then=combine)

    def read(self, response: Response) -> Judgement:
        """Return the judgement."""
        return extract_judgement(response)

    def _grade(self, grade: ServiceGrade) -> TurnGrade:
        if not self.low <= grade.score <= self.high:
            bounds = f"{format_number(self.low)} and {format_number(self.high)}"
            raise EvaluatorError(
                f"the service returned score {format_number(grade.score)}; it must be between"
                f" {bounds}"
            )
        reason = grade.details.get("reason")
        return TurnGrade(
            score=(grade.score - self.low) / (self.high - self.low),
            summary=f"the service returned score {format_number(grade.score)}",
            details=grade.details,
            reasoning=reason if isinstance(reason, str) else "",
        )


def _make_sent_item(row: Mapping[str, JsonObject]) -> JsonObject:
    """Return the part of a row that is sent: its texts and dataset columns, without the sample."""
    return {name: value for name, value in row[ITEM].items() if name != SAMPLE}
