"""Metrics that a judge model scores, turn by turn, and the evaluator of ``type: builtin`` for them.

A new metric is a section and a line in ``JUDGED_METRICS``. Scores are those of Google's Agent
Development Kit 2.13; the wording of the prompts is ours.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Final

from msgspec import Struct
from pydantic import JsonValue

from agentci._util.text.format import format_criterion
from agentci._util.text.json_text import dumps_readable
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentevals.builtin_entry import BuiltinEntry
from agentci.evaluators.evaluator import (
    Definition,
    Facts,
    check_response,
    check_tool_calls_recorded,
    extract_judgement,
)
from agentci.evaluators.judge_config import JudgeSettings, JudgeSpec, define_judge
from agentci.evaluators.metrics import (
    DEFAULT_THRESHOLD,
    NO_EXPECTED_ANSWER,
    NO_EXPECTED_TURNS,
    count_unpaired_turns,
    define_metric,
    make_metric_judgement,
    pair_turns,
)
from agentci.evaluators.prompts import make_question
from agentci.model.case import Case, Expectation, Rubric
from agentci.model.judges import (
    AggregateVerdict,
    AskModel,
    ChecklistSchema,
    JudgePrompt,
    RequiredJudge,
    ScoreSchema,
)
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
from agentci.model.trace import Turn
from agentci.model.values import Json, JsonObject, Place, TurnScore

NO_STEPS: Final = "No tools were used."
UNKNOWN_STEPS: Final = "The recording does not say which tools were used."


class JudgedTurn(Struct, frozen=True, kw_only=True):
    """A turn that a judge model scores.

    Attributes:
        expected: the expected turn; None for metrics that compare nothing.
        rubrics: the rubrics of the turn, for metrics that use them.
    """

    turn: Turn
    expected: Turn | None = None
    rubrics: tuple[Rubric, ...] = ()


class JudgedTurnScore(Struct, frozen=True, kw_only=True):
    """The score of a turn.

    Attributes:
        score: 0 to 1.
        weight: weight of the score in the mean over turns.
        misses: descriptions of failures, one line each.
    """

    score: float
    weight: int = 1
    misses: tuple[str, ...] = ()


class JudgedMetric(Struct, frozen=True, kw_only=True):
    """A score by a judge model.

    Attributes:
        make_prompt: makes the prompt about a turn; None if the metric does not apply to it.
        grade: scores a turn by its verdict; raises EvaluatorError if the verdict is incomplete.
        read_expected: returns what ``make_prompt`` uses of an expected turn; None for metrics that
            compare nothing.
        rubric_type: ADK's type of the eval cases' rubrics that it uses; empty if it needs none.
    """

    make_prompt: Callable[[JudgedTurn], JudgePrompt | None]
    grade: Callable[[AggregateVerdict, JudgedTurn], JudgedTurnScore]
    read_expected: Callable[[Turn], Json] | None = None
    rubric_type: str = ""

    @property
    def needs_expected(self) -> bool:
        """Whether it compares with expected turns, and so cannot run without them."""
        return self.read_expected is not None


def format_steps(turn: Turn) -> str:
    """Format a turn's tool calls and responses as JSON, without arguments that are not known."""
    if not turn.tool_calls_recorded:
        return UNKNOWN_STEPS
    responses = {
        each.call_index: each
        for each in reversed(turn.tool_responses)
        if each.call_index is not None
    }
    steps: list[Json] = []
    for number, call in enumerate(turn.tool_calls):
        step: dict[str, Json] = {"step": number, "tool": call.name}
        step |= {"args_recorded": False} if call.args is None else {"args": call.args}
        if number in responses:
            step["result"] = responses[number].output
            step["failed"] = responses[number].failed
        steps.append(step)
    unpaired: list[Json] = [
        {"tool": each.name, "result": each.output, "failed": each.failed}
        for each in turn.tool_responses
        if each.call_index is None
    ]
    found: JsonObject = {"steps": [*steps, *unpaired]}
    return dumps_readable(found) if turn.tool_calls or unpaired else NO_STEPS


def _join_answer(turn: Turn) -> str:
    """Return the final response of a turn as ADK joins it: one part per line."""
    return "\n".join(turn.answer_parts)


def _check_all_marked(verdict: AggregateVerdict, names: Sequence[str], noun: str) -> None:
    """Check that a checklist's verdict covers every item.

    Raises:
        EvaluatorError: if an item is missing.
    """
    for name in names:
        if name not in verdict.values:
            raise EvaluatorError(f"the judge's response has no result for {noun} `{name}`")


# final_response_match_v2: 1 for a turn that most samples find valid, else 0 (a tie is not valid).

MATCH_SCHEMA: Final = ScoreSchema(kind="boolean", value_name="is_the_agent_response_valid")
MATCH_INSTRUCTIONS: Final = """\
Decide whether the answer of an AI agent is valid. You are given a reference answer that is known \
to be correct.
- An answer is valid if it states what the reference states. It may state more, and it may use \
other words, another order or another format, unless the user asked for a specific format.
- Accept every common way to write names, abbreviations and numbers (TX for Texas, 1000000 for \
1,000,000), and numbers rounded as is usual for their kind. Units must be correct.
- Trust the reference. Do not recompute values or use your own knowledge.
- If the agent claims not to know, or not to be able to do, what the reference states, the answer \
is not valid.
- The reference may list only the key facts. The answer must contain all of them."""
MATCH_TEMPLATE: Final = """\
User request:
{{ question }}

Agent's answer:
{{ answer }}

Reference answer:
{{ reference }}"""


def _read_expected_answer(expected: Turn) -> JsonObject:
    return {"question": expected.user_text, "reference": _join_answer(expected)}


def _make_match_prompt(judged_turn: JudgedTurn) -> JudgePrompt | None:
    """Ask whether the response is as good as the expected one; None if none is expected."""
    if judged_turn.expected is not None and not judged_turn.expected.answer_parts:
        return None
    expected = _read_expected_answer(judged_turn.expected or judged_turn.turn)
    values: JsonObject = {**expected, "answer": _join_answer(judged_turn.turn)}
    return make_question(MATCH_INSTRUCTIONS, MATCH_TEMPLATE, values, MATCH_SCHEMA)


def _grade_match(verdict: AggregateVerdict, _: JudgedTurn) -> JudgedTurnScore:
    if verdict.value is True:
        return JudgedTurnScore(score=1.0)
    reason = verdict.representative_verdict.reason
    return JudgedTurnScore(
        score=0.0, misses=(f"the answer does not match the expected answer: {reason}",)
    )


# Metrics with rubrics: each rubric is fulfilled or not, by the majority of samples; the score is
# the mean over all rubrics of all turns.

RUBRIC_INSTRUCTIONS: Final = """\
For each property, answer true if it is fulfilled or if its condition does not apply. Answer false \
if it applies and is not fulfilled, or if you cannot tell for certain.

Properties:
"""


def _make_rubric_prompt(
    instructions: str, template: str, values: JsonObject, judged_turn: JudgedTurn
) -> JudgePrompt:
    """Ask which rubrics are fulfilled."""
    listed = "\n".join(f"- [{each.id}] {each.text}" for each in judged_turn.rubrics)
    schema = ChecklistSchema(names=tuple(each.id for each in judged_turn.rubrics))
    return make_question(f"{instructions}\n{RUBRIC_INSTRUCTIONS}{listed}", template, values, schema)


def _grade_rubrics(verdict: AggregateVerdict, judged_turn: JudgedTurn) -> JudgedTurnScore:
    """Score a turn by the share of rubrics that are fulfilled; its weight is their number."""
    ids = [each.id for each in judged_turn.rubrics]
    _check_all_marked(verdict, ids, "rubric")
    missed = [each for each in judged_turn.rubrics if verdict.values[each.id] is not True]
    return JudgedTurnScore(
        score=1 - len(missed) / len(ids),
        weight=len(ids),
        misses=tuple(
            f"[{each.id}] {each.text}: {_find_rubric_reason(each, verdict)}" for each in missed
        ),
    )


def _find_rubric_reason(rubric: Rubric, verdict: AggregateVerdict) -> str:
    mark = verdict.representative_verdict.scores.get(rubric.id)
    return "not fulfilled" if mark is None or not mark.reason else mark.reason


# rubric_based_final_response_quality_v1

QUALITY_INSTRUCTIONS: Final = """\
Check the final answer of an AI agent against a list of properties.
- Only this is evidence: the user messages, and the results of correct tool calls, which call the \
right tool with the arguments that the request needs. The agent's own statements and the results \
of incorrect tool calls are not evidence.
- A claim in the answer is correct only if the evidence shows it. If evidence is missing because \
the agent did not call a tool that it should have called, the property is not fulfilled.
- Accept other words and every common way to write numbers if the meaning is the same."""
QUALITY_TEMPLATE: Final = """\
User request:
{{ question }}

Agent's steps:
{{ steps }}

Agent's final answer:
{{ answer }}"""


def _make_quality_prompt(judged_turn: JudgedTurn) -> JudgePrompt:
    values: JsonObject = {
        "question": judged_turn.turn.user_text,
        "steps": format_steps(judged_turn.turn),
        "answer": _join_answer(judged_turn.turn),
    }
    return _make_rubric_prompt(QUALITY_INSTRUCTIONS, QUALITY_TEMPLATE, values, judged_turn)


# rubric_based_tool_use_quality_v1

TOOL_USE_INSTRUCTIONS: Final = """\
Check how an AI agent used its tools against a list of properties.
- Consider the calls that were made, their arguments, their order and their results. Ignore what \
the agent wrote.
- A property about the arguments of a call that was not made does not apply."""
TOOL_USE_TEMPLATE: Final = """\
User request:
{{ question }}

Agent's tool calls:
{{ steps }}"""


def _make_tool_use_prompt(judged_turn: JudgedTurn) -> JudgePrompt:
    """Ask about the tool calls.

    Raises:
        EvaluatorError: they were not recorded.
    """
    check_tool_calls_recorded([judged_turn.turn])
    values: JsonObject = {
        "question": judged_turn.turn.user_text,
        "steps": format_steps(judged_turn.turn),
    }
    return _make_rubric_prompt(TOOL_USE_INSTRUCTIONS, TOOL_USE_TEMPLATE, values, judged_turn)


# hallucinations_v1: a sentence is right if it is supported or needs no support; the score of a turn
# is the share of right sentences, and that of a case the mean over its turns. Sentences are split
# here, where ADK asks a model, so that they are the same in every run.

CORRECT_LABELS: Final = ("supported", "not_applicable")
SENTENCE_LABELS: Final = (*CORRECT_LABELS, "unsupported", "contradictory", "disputed")
HALLUCINATION_INSTRUCTIONS: Final = """\
Check whether the answer of an AI agent is supported by its context: the user messages, and what \
the agent's tools returned. Label every sentence of the answer by its number:
- supported: the context shows everything that the sentence claims, in any wording.
- unsupported: the sentence claims something that is not in the context.
- contradictory: the context contradicts the sentence.
- disputed: one part of the context supports the sentence, another part contradicts it.
- not_applicable: the sentence needs no support. It is a question, an offer, a greeting, an \
opinion, a warning, common knowledge, or a statement of the agent about itself.
Do not use your own knowledge."""
HALLUCINATION_TEMPLATE: Final = """\
User request:
{{ question }}

Agent's tool calls and their results:
{{ steps }}

Sentences of the agent's answer:
{{ sentences }}"""


def _make_hallucination_prompt(judged_turn: JudgedTurn) -> JudgePrompt | None:
    """Ask about every sentence; None if there is none."""
    sentences = split_sentences(_join_answer(judged_turn.turn))
    if not sentences:
        return None
    numbers = _number_sentences(sentences)
    values: JsonObject = {
        "question": judged_turn.turn.user_text,
        "steps": format_steps(judged_turn.turn),
        "sentences": "\n".join(
            f"[{number}] {each}" for number, each in zip(numbers, sentences, strict=True)
        ),
    }
    schema = ChecklistSchema(names=numbers, kind="label", labels=SENTENCE_LABELS)
    return make_question(HALLUCINATION_INSTRUCTIONS, HALLUCINATION_TEMPLATE, values, schema)


def _grade_sentences(verdict: AggregateVerdict, judged_turn: JudgedTurn) -> JudgedTurnScore:
    sentences = split_sentences(_join_answer(judged_turn.turn))
    numbers = _number_sentences(sentences)
    _check_all_marked(verdict, numbers, "sentence")
    misses = tuple(
        f"{verdict.values[number]}: {sentence}"
        for number, sentence in zip(numbers, sentences, strict=True)
        if verdict.values[number] not in CORRECT_LABELS
    )
    return JudgedTurnScore(score=1 - len(misses) / len(sentences), misses=misses)


def _number_sentences(sentences: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, len(sentences) + 1))


JUDGED_METRICS: Final[Mapping[str, JudgedMetric]] = {
    "final_response_match_v2": JudgedMetric(
        make_prompt=_make_match_prompt, grade=_grade_match, read_expected=_read_expected_answer
    ),
    "rubric_based_final_response_quality_v1": JudgedMetric(
        make_prompt=_make_quality_prompt, grade=_grade_rubrics, rubric_type="FINAL_RESPONSE_QUALITY"
    ),
    "rubric_based_tool_use_quality_v1": JudgedMetric(
        make_prompt=_make_tool_use_prompt, grade=_grade_rubrics, rubric_type="TOOL_USE_QUALITY"
    ),
    "hallucinations_v1": JudgedMetric(
        make_prompt=_make_hallucination_prompt, grade=_grade_sentences
    ),
}


# Chinese and Japanese have no space after their full-width punctuation.
# An abbreviation may split a sentence in two, which a judge can still grade.
_END: Final = re.compile(
    r"(?<=[.!?\u2026])\s+|(?<=[.!?\u2026][\"')\]])\s+|(?<=[\u3002\uff01\uff1f])"
)
_NUMBER: Final = re.compile(r"\d+[.)]")
_ROW: Final = "|"


def split_sentences(text: str) -> tuple[str, ...]:
    """Split ``text`` into sentences; a table is one, and parts without letters or digits none."""
    return tuple(each for each in _split_lines(text) if any(map(str.isalnum, each)))


def _split_lines(text: str) -> Iterator[str]:
    lines = (line.strip() for line in text.splitlines())
    for is_table, group in groupby(lines, key=lambda line: line.startswith(_ROW)):
        if is_table:
            yield "\n".join(group)
            continue
        for line in group:
            yield from _split_line(line)


def _split_line(line: str) -> Iterator[str]:
    """Split a line into sentences; the number of a list item stays with its first one."""
    number = ""
    for part in _END.split(line):
        whole = f"{number} {part.strip()}".strip()
        if _NUMBER.fullmatch(whole):
            number = whole
            continue
        number = ""
        yield whole


NO_RUBRICS = "no rubrics found; add `rubrics` to the evaluator's entry or to the eval cases"
NO_ANSWER = "the agent gave no answer"


class JudgedEvaluator(Struct, frozen=True, kw_only=True):
    """A metric that a judge model scores.

    Attributes:
        metric: its name in ``JUDGED_METRICS``.
        judge: the judge model.
        rubrics: those of its entry, for all turns.
        turn_mismatch_fails, turn_score: see ``make_metric_judgement``.
    """

    identity: EvaluatorIdentity
    metric: str
    judge: RequiredJudge
    rubrics: tuple[Rubric, ...] = ()
    turn_mismatch_fails: bool = True
    turn_score: TurnScore = "mean"

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """Its judge."""
        return (self.judge,)

    @property
    def definition(self) -> Definition:
        """See ``ComparableEvaluator``."""
        return {
            **define_metric(
                self.identity,
                turn_mismatch_fails=self.turn_mismatch_fails,
                turn_score=self.turn_score,
            ),
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
                measured,
                self.identity,
                turn_mismatch_fails=self.turn_mismatch_fails,
                turn_score=self.turn_score,
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
        turn_score=entry.turn_score,
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
