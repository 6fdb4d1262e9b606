"""A metric that asks a model: which turns it asks about, and what all answers come to."""

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.judged_builtin import JudgedEvaluator
from agentci.model.case import Case, EvalCase, Rubric
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.judges import (
    AggregateVerdict,
    AskModel,
    JudgeConfig,
    JudgeScore,
    ModelSettings,
    RequiredJudge,
    ScoreValue,
    Verdict,
)
from agentci.model.problem import Place
from agentci.model.requests import Compose, Skip
from agentci.model.trace import Trace, Turn
from agentci.model.values import replace

PLACE = Place(file="eval.yaml", line=3)
PANEL = JudgeConfig(settings=ModelSettings(provider="openai", model="m"))
ASKED = Turn(id="t", user_text="q", answer_parts=("yes",))
SILENT = Turn(id="s", user_text="q")
MATCH = "final_response_match_v2"
QUALITY = "rubric_based_final_response_quality_v1"


def evaluator(metric: str, *rubrics: Rubric) -> JudgedEvaluator:
    return JudgedEvaluator(
        identity=EvaluatorIdentity(
            name=metric,
            type="builtin",
            criterion="score >= 0.5",
            threshold=0.5,
            required=True,
            place=PLACE,
        ),
        metric=metric,
        judge=RequiredJudge(judge=PANEL, name=metric, place=PLACE),
        rubrics=rubrics,
    )


def a_case(*turns: Turn, golden: EvalCase | None = None) -> Case:
    trace = Trace(id="x", key="x", turns=turns, place=PLACE)
    return Case(id="c", trace=trace, expected=golden, unmatched_reason="no matching eval case")


def goldens(turns: int, *rubrics: tuple[Rubric, ...]) -> EvalCase:
    return EvalCase(id="c", turns=(ASKED,) * turns, place=PLACE, rubrics=rubrics)


def ruled(**values: ScoreValue) -> AggregateVerdict:
    marks = {name: JudgeScore(value=value) for name, value in values.items()}
    return AggregateVerdict(values=values, verdicts=(Verdict(scores=marks, reason="so"),))


def valid(*, is_valid: bool) -> AggregateVerdict:
    return ruled(is_the_agent_response_valid=is_valid)


def judged(evaluator: JudgedEvaluator, case: Case, *rulings: AggregateVerdict) -> Judgement:
    request = evaluator.ask(case)
    assert isinstance(request, Compose)
    assert all(isinstance(part, AskModel) and part.judge == PANEL for _, part in request.parts)
    assert len(request.parts) == len(rulings)
    return evaluator.read(request.then(rulings))  # type: ignore[arg-type]  # it is settled


def test_every_turn_is_compared_and_the_share_counts() -> None:
    case = a_case(ASKED, ASKED, golden=goldens(2))
    judgement = judged(evaluator(MATCH), case, valid(is_valid=True), valid(is_valid=False))
    assert (judgement.score, judgement.passed, judgement.turn_scores) == (0.5, True, (1.0, 0.0))
    assert judgement.misses == ("turn 2: the answer does not match the expected answer: so",)


def test_a_turn_that_is_missing_fails_the_case() -> None:
    case = a_case(ASKED, golden=goldens(2))
    judgement = judged(evaluator(MATCH), case, valid(is_valid=True))
    assert (judgement.score, judgement.passed) == (1.0, False)
    assert judgement.reason == "Turn 2 of 2 is missing; only turn 1 was scored"
    lenient = replace(evaluator(MATCH), turn_mismatch_fails=False)
    assert judged(lenient, case, valid(is_valid=True)).passed


def test_a_metric_that_compares_nothing_does_not_count_turns() -> None:
    case = a_case(ASKED, ASKED, golden=goldens(1))
    supported = ruled(**{"1": "supported"})
    judgement = judged(evaluator("hallucinations_v1"), case, supported, supported)
    assert (judgement.passed, judgement.details) == (True, {})


def test_what_cannot_be_compared_is_skipped() -> None:
    assert evaluator(MATCH).ask(a_case(ASKED)) == Skip(reason="no matching eval case")
    empty = a_case(ASKED, golden=goldens(0))
    assert isinstance(evaluator(MATCH).ask(empty), Skip)


def test_turns_without_an_answer_are_not_asked_about() -> None:
    hallucinations = evaluator("hallucinations_v1")
    case = a_case(SILENT, ASKED)
    judgement = judged(hallucinations, case, ruled(**{"1": "unsupported"}))
    assert judgement.misses == ("turn 2: unsupported: yes",)
    skipped = hallucinations.ask(a_case(SILENT))
    assert skipped == Skip(reason="the agent gave no answer")


def test_all_rubrics_of_all_turns_count_alike() -> None:
    own, quality = (
        Rubric(id="own", text="o"),
        Rubric(id="g", text="g", type="FINAL_RESPONSE_QUALITY"),
    )
    other = Rubric(id="t", text="t", type="TOOL_USE_QUALITY")
    case = a_case(ASKED, ASKED, golden=goldens(2, (quality, other), ()))
    judgement = judged(evaluator(QUALITY, own), case, ruled(own=True, g=True), ruled(own=False))
    assert judgement.score == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("rubrics", "why"),
    [
        ((), "no rubrics found"),
        ((Rubric(id="a", text="x"), Rubric(id="a", text="y")), "two rubrics of one turn"),
    ],
)
def test_rubrics_that_make_no_sense_are_an_error(rubrics: tuple[Rubric, ...], why: str) -> None:
    with pytest.raises(EvaluatorError, match=why):
        evaluator(QUALITY, *rubrics).ask(a_case(ASKED))


def test_turns_that_samples_disagree_about_are_told() -> None:
    yes, no = (Verdict(scores={"a": JudgeScore(value=value)}) for value in (True, False))
    split = AggregateVerdict(values={"a": True}, verdicts=(yes, no, yes))
    judgement = judged(evaluator(QUALITY, Rubric(id="a", text="x")), a_case(ASKED), split)
    assert judgement.details == {"split_turns": [1]}


def test_a_reply_that_was_not_asked_for_is_a_bug() -> None:
    with pytest.raises(TypeError):
        evaluator(MATCH).read(valid(is_valid=True))
