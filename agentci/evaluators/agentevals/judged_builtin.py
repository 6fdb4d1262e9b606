"""``type: builtin`` with a metric that a judge model scores: its entry and its evaluator."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from pydantic import JsonValue

from agentci._util.text.format import format_criterion
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentevals.entries import BuiltinEntry
from agentci.evaluators.definition import Definition, Facts
from agentci.evaluators.evaluator import check_response, extract_judgement
from agentci.evaluators.judge_config import JudgeSettings, JudgeSpec, define_judge
from agentci.evaluators.metrics.judged import (
    JUDGED_METRICS,
    JudgedMetric,
    JudgedTurn,
    JudgedTurnScore,
)
from agentci.evaluators.metrics.metric import (
    DEFAULT_THRESHOLD,
    NO_EXPECTED_ANSWER,
    NO_EXPECTED_TURNS,
    count_unpaired_turns,
    define_metric,
    make_metric_judgement,
    pair_turns,
)
from agentci.model.case import Case, Expectation, Rubric
from agentci.model.judges import AggregateVerdict, AskModel, RequiredJudge
from agentci.model.requests import (
    Compose,
    ConstantJudgement,
    EvaluatorIdentity,
    Judgement,
    MetricResult,
    Prerequisite,
    Response,
    Skip,
    Task,
)
from agentci.model.values import JsonObject, Place

NO_RUBRICS = "no rubrics found; add `rubrics` to the evaluator's entry or to the eval cases"
NO_ANSWER = "the agent gave no answer"


class JudgedEvaluator(Struct, frozen=True, kw_only=True):
    """A metric that a judge model scores.

    Attributes:
        metric: its name in ``JUDGED_METRICS``.
        judge: the judge model.
        rubrics: those of its entry, for all turns.
        turn_mismatch_fails: see ``make_metric_judgement``.
    """

    identity: EvaluatorIdentity
    metric: str
    judge: RequiredJudge
    rubrics: tuple[Rubric, ...] = ()
    turn_mismatch_fails: bool = True

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """Its judge."""
        return (self.judge,)

    @property
    def definition(self) -> Definition:
        """See ``ComparableEvaluator``."""
        return {
            **define_metric(self.identity, turn_mismatch_fails=self.turn_mismatch_fails),
            "judge": define_judge(self.judge.judge),
            "rubrics": _define_rubrics(self.rubrics) if self._metric.rubric_type else (),
        }

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return what prompts contain of the expected turns, or the rubrics that they list."""
        read = self._metric.read_expected
        if read is not None:
            return [read(turn) for turn in expectation.turns]
        rubrics = expectation.eval_case.rubrics if expectation.eval_case else ()
        selected = enumerate(map(self._select_rubrics, rubrics))
        return {str(index): _define_rubrics(each) for index, each in selected if each}

    def ask(self, case: Case) -> Compose | Skip:
        """Request a verdict on every turn that the metric applies to.

        Raises:
            EvaluatorError: if two rubrics share an id, or the metric needs rubrics and there are
                none.
        """
        metric = self._metric
        if metric.needs_expected and not (case.expected and case.expected.turns):
            return Skip(reason=case.unmatched_reason or NO_EXPECTED_TURNS)
        turns = [*self._judged_turns(case)]
        prompts = [
            (number, turn, prompt)
            for number, turn in enumerate(turns, start=1)
            if (prompt := metric.make_prompt(turn)) is not None
        ]
        if not prompts:
            return Skip(reason=NO_EXPECTED_ANSWER if metric.needs_expected else NO_ANSWER)
        judge = self.judge.judge
        return Compose(
            parts=tuple(
                (f"{self.identity.name}, turn {number}", AskModel(prompt=prompt, judge=judge))
                for number, _, prompt in prompts
            ),
            then=partial(
                self._make_judgement,
                [(number, turn) for number, turn, _ in prompts],
                len(turns),
                self._counts(case),
            ),
        )

    def read(self, response: Response) -> Judgement:
        """Return the judgement of the verdicts."""
        return extract_judgement(response)

    def _judged_turns(self, case: Case) -> Iterator[JudgedTurn]:
        metric = self._metric
        if metric.needs_expected:
            expected_turns = case.expected.turns if case.expected else ()
            yield from (
                JudgedTurn(turn=turn, expected=expected)
                for turn, expected in pair_turns(case.trace.turns, expected_turns)
            )
            return
        case_rubrics = case.expected.rubrics if case.expected else ()
        for index, turn in enumerate(case.trace.turns):
            own = case_rubrics[index] if index < len(case_rubrics) else ()
            rubrics = (*self.rubrics, *self._select_rubrics(own))
            if metric.rubric_type:
                _check_rubrics(rubrics)
            yield JudgedTurn(turn=turn, rubrics=rubrics)

    @property
    def _metric(self) -> JudgedMetric:
        return JUDGED_METRICS[self.metric]

    def _select_rubrics(self, rubrics: Sequence[Rubric]) -> tuple[Rubric, ...]:
        """Select the rubrics of an eval case that have the type of the metric."""
        kind = self._metric.rubric_type
        return tuple(each for each in rubrics if kind and each.type == kind)

    def _counts(self, case: Case) -> JsonObject:
        """Count the turns without a partner, for metrics that compare turns."""
        if case.expected is None or not self._metric.needs_expected:
            return {}
        return count_unpaired_turns(case.trace.turns, case.expected.turns)

    def _make_judgement(
        self,
        turns: Sequence[tuple[int, JudgedTurn]],
        total: int,
        counts: JsonObject,
        responses: tuple[Response, ...],
    ) -> Task:
        metric = self._metric
        verdicts = [check_response(each, AggregateVerdict) for each in responses]
        grades = [
            metric.grade(verdict, turn) for verdict, (_, turn) in zip(verdicts, turns, strict=True)
        ]
        scores = {number: grade.score for grade, (number, _) in zip(grades, turns, strict=True)}
        measured = MetricResult(
            score=_weighted_mean(grades),
            turn_scores=tuple(scores.get(number) for number in range(1, total + 1)),
            misses=tuple(
                f"turn {number}: {miss}"
                for grade, (number, _) in zip(grades, turns, strict=True)
                for miss in grade.misses
            ),
            details={**_list_split_turns(turns, verdicts), **counts},
        )
        return ConstantJudgement(
            judgement=make_metric_judgement(
                measured, self.identity, turn_mismatch_fails=self.turn_mismatch_fails
            )
        )


def _define_rubrics(rubrics: Sequence[Rubric]) -> Facts:
    return [[each.id, each.text] for each in rubrics]


def _weighted_mean(grades: Sequence[JudgedTurnScore]) -> float:
    weight = sum(grade.weight for grade in grades)
    return sum(grade.score * grade.weight for grade in grades) / weight


def _check_rubrics(rubrics: Sequence[Rubric]) -> None:
    if not rubrics:
        raise EvaluatorError(NO_RUBRICS)
    ids = [each.id for each in rubrics]
    for rubric_id in ids:
        if ids.count(rubric_id) > 1:
            raise EvaluatorError(f"two rubrics of one turn have the id `{rubric_id}`")


def _list_split_turns(
    turns: Sequence[tuple[int, JudgedTurn]], verdicts: Sequence[AggregateVerdict]
) -> JsonObject:
    numbers = [number for each, (number, _) in zip(verdicts, turns, strict=True) if each.is_split]
    return {"split_turns": numbers} if numbers else {}


RUBRIC_HINT = "write it as text, or as {id: ..., text: ...}"


def make_judged_evaluator(
    entry: BuiltinEntry,
    judges: JudgeSettings,
    *,
    place: Place,
    place_of: Callable[[str], Place],
    turn_mismatch_fails: bool,
) -> JudgedEvaluator:
    """Make the evaluator.

    Raises:
        InputError: if no judge is configured or a rubric is invalid.
    """
    judge_place = place_of("judge" if entry.judge is not None else "name")
    if entry.credential_ref is not None:
        raise InputError.from_message(
            "`credential_ref` is not supported: it names a credential stored by agentevals",
            place=place_of("credential_ref"),
            hint="name the environment variable with the key: `judge: {api_key_env: ...}`",
        )
    threshold = DEFAULT_THRESHOLD if entry.threshold is None else entry.threshold
    return JudgedEvaluator(
        identity=EvaluatorIdentity(
            name=entry.name,
            type=entry.type,
            criterion=format_criterion(threshold),
            threshold=threshold,
            required=entry.required,
            place=place,
            needs_expected=JUDGED_METRICS[entry.name].needs_expected,
            repetition=entry.repetition,
        ),
        metric=entry.name,
        judge=judges.require(_make_judge_spec(entry), name=entry.name, place=judge_place),
        rubrics=tuple(_parse_rubrics(entry.rubrics or [], place_of("rubrics"))),
        turn_mismatch_fails=turn_mismatch_fails,
    )


def _make_judge_spec(entry: BuiltinEntry) -> JudgeSpec:
    """Merge the entry's ``judge`` with agentevals' own judge fields; ``judge`` takes precedence."""
    fields = {"model": entry.judge_model, "base_url": entry.judge_base_url}
    compatible = {name: value for name, value in fields.items() if value is not None}
    own = {} if entry.judge is None else entry.judge.model_dump(exclude_none=True)
    return JudgeSpec.model_validate({**compatible, **own})


def _parse_rubrics(given: list[str | dict[str, JsonValue]], place: Place) -> Iterator[Rubric]:
    """Parse rubrics given as in ADK, with `id` and `text`, or as text."""
    for number, each in enumerate(given, start=1):
        if isinstance(each, str):
            yield Rubric(id=f"rubric-{number}", text=each)
            continue
        rubric_id = each.get("rubric_id", each.get("rubricId", each.get("id")))
        content = each.get("rubric_content", each.get("rubricContent"))
        text = (
            content.get("text_property", content.get("textProperty"))
            if isinstance(content, Mapping)
            else each.get("text")
        )
        if not isinstance(rubric_id, str) or not isinstance(text, str):
            message = f"rubric {number} has no {'text' if isinstance(rubric_id, str) else 'id'}"
            raise InputError.from_message(message, place=place, hint=RUBRIC_HINT)
        yield Rubric(id=rubric_id, text=text)
