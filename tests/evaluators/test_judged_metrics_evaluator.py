"""Built-in metrics with a judge model: the turns it gets, and the score of its verdicts."""

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.judged_metrics import JudgedEvaluator
from agentci.model.case import Case, EvalCase, Rubric
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
from agentci.model.requests import Compose, EvaluatorIdentity, Judgement, Skip
from agentci.model.trace import Trace, Turn
from agentci.model.values import Place, replace

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


def a_case(*turns: Turn, expected: EvalCase | None = None) -> Case:
    trace = Trace(id="x", key="x", turns=turns, place=PLACE)
    return Case(id="c", trace=trace, expected=expected, unmatched_reason="no matching eval case")


def eval_case_of(turns: int, *rubrics: tuple[Rubric, ...]) -> EvalCase:
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
    return evaluator.read(request.then(rulings))  # type: ignore[arg-type]  # the type is ConstantJudgement


def test_score_is_share_of_passed_turns() -> None:
    case = a_case(ASKED, ASKED, expected=eval_case_of(2))
    judgement = judged(evaluator(MATCH), case, valid(is_valid=True), valid(is_valid=False))
    assert (judgement.score, judgement.passed, judgement.turn_scores) == (0.5, True, (1.0, 0.0))
    assert judgement.misses == ("turn 2: the answer does not match the expected answer: so",)
    lowest = replace(evaluator(MATCH), turn_score="min")
    judgement = judged(lowest, case, valid(is_valid=True), valid(is_valid=False))
    assert (judgement.score, judgement.passed) == (0.0, False)


def test_missing_turn_fails_case() -> None:
    case = a_case(ASKED, expected=eval_case_of(2))
    judgement = judged(evaluator(MATCH), case, valid(is_valid=True))
    assert (judgement.score, judgement.passed) == (1.0, False)
    assert judgement.reason == "Turn 2 of 2 is missing; only turn 1 was scored"
    lenient = replace(evaluator(MATCH), turn_mismatch_fails=False)
    assert judged(lenient, case, valid(is_valid=True)).passed


def test_metric_without_reference_ignores_turn_count() -> None:
    case = a_case(ASKED, ASKED, expected=eval_case_of(1))
    supported = ruled(**{"1": "supported"})
    judgement = judged(evaluator("hallucinations_v1"), case, supported, supported)
    assert (judgement.passed, judgement.details) == (True, {})


def test_case_without_expected_turns_is_skipped() -> None:
    assert evaluator(MATCH).ask(a_case(ASKED)) == Skip(reason="no matching eval case")
    empty = a_case(ASKED, expected=eval_case_of(0))
    assert isinstance(evaluator(MATCH).ask(empty), Skip)


def test_turn_without_an_expected_answer_is_left_out() -> None:
    expected = EvalCase(id="c", turns=(SILENT, ASKED, ASKED), place=PLACE)
    judgement = judged(
        evaluator(MATCH), a_case(ASKED, ASKED, expected=expected), valid(is_valid=True)
    )
    assert (judgement.score, judgement.turn_scores) == (1.0, (None, 1.0))
    assert judgement.reason == "Turn 3 of 3 is missing; only turns 1 to 2 were scored"
    nothing = EvalCase(id="c", turns=(SILENT,), place=PLACE)
    skipped = evaluator(MATCH).ask(a_case(ASKED, expected=nothing))
    assert skipped == Skip(reason="the eval case has no expected answer")


def test_turn_without_answer_is_not_sent_to_judge() -> None:
    hallucinations = evaluator("hallucinations_v1")
    case = a_case(SILENT, ASKED)
    judgement = judged(hallucinations, case, ruled(**{"1": "unsupported"}))
    assert judgement.misses == ("turn 2: unsupported: yes",)
    skipped = hallucinations.ask(a_case(SILENT))
    assert skipped == Skip(reason="the agent gave no answer")


def test_rubrics_of_all_turns_have_equal_weight() -> None:
    own, quality = (
        Rubric(id="own", text="o"),
        Rubric(id="g", text="g", type="FINAL_RESPONSE_QUALITY"),
    )
    other = Rubric(id="t", text="t", type="TOOL_USE_QUALITY")
    case = a_case(ASKED, ASKED, expected=eval_case_of(2, (quality, other), ()))
    judgement = judged(evaluator(QUALITY, own), case, ruled(own=True, g=True), ruled(own=False))
    assert judgement.score == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("rubrics", "why"),
    [
        ((), "no rubrics found"),
        ((Rubric(id="a", text="x"), Rubric(id="a", text="y")), "two rubrics of one turn"),
    ],
)
def test_missing_or_duplicate_rubrics_are_an_error(rubrics: tuple[Rubric, ...], why: str) -> None:
    with pytest.raises(EvaluatorError, match=why):
        evaluator(QUALITY, *rubrics).ask(a_case(ASKED))


def test_turns_with_split_votes_are_reported() -> None:
    yes, no = (Verdict(scores={"a": JudgeScore(value=value)}) for value in (True, False))
    split = AggregateVerdict(values={"a": True}, verdicts=(yes, no, yes))
    judgement = judged(evaluator(QUALITY, Rubric(id="a", text="x")), a_case(ASKED), split)
    assert judgement.details == {"split_turns": [1]}


def test_unexpected_response_type_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        evaluator(MATCH).read(valid(is_valid=True))
