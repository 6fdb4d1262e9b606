"""Prompt evaluators: the request to the judge, the threshold and the scale."""

import json

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.pytest_agent_evals import (
    PromptEvaluator,
    PromptThreshold,
    is_prompt_path,
    make_prompt_judgement,
    make_prompt_threshold,
    parse_filled_template,
)
from agentci.model.case import Case, DatasetRow
from agentci.model.judges import (
    AggregateVerdict,
    AskModel,
    JudgeConfig,
    JudgeScore,
    ModelSettings,
    RequiredJudge,
    ScoreSchema,
    Verdict,
)
from agentci.model.requests import EvaluatorIdentity, MetricResult, ProgramOutput, RunProgram
from agentci.model.trace import Trace, Turn
from agentci.model.values import Place, replace

PLACE = Place(file="agentci.yaml", line=3)
JUDGE = RequiredJudge(
    judge=JudgeConfig(settings=ModelSettings(provider="openai")), name="kind", place=PLACE
)
TURN = Turn(id="1", user_text="Weather?", answer_parts=("Sunny.",))
ROW = DatasetRow(id="r", query="Weather?", columns={"context": "c", "response": "old"}, place=PLACE)
CASE = Case(id="c", trace=Trace(id="t", key="t", turns=(TURN,), place=PLACE), dataset_row=ROW)


def _evaluator(prompt_threshold: PromptThreshold) -> PromptEvaluator:
    identity = EvaluatorIdentity(
        name="kind",
        type="prompt",
        criterion=prompt_threshold.description,
        threshold=None,
        required=True,
        place=PLACE,
    )
    return PromptEvaluator(
        identity=identity, template="{{ response }}", prompt_threshold=prompt_threshold, judge=JUDGE
    )


RATED = _evaluator(make_prompt_threshold(3))


def _filled(text: str = "A: \0" + "0\0", code: int = 0) -> ProgramOutput:
    printed = json.dumps({"text": text, "values": [["response", "Sunny."]]})
    return ProgramOutput(
        stdout=printed.encode() if code == 0 else b"",
        stderr="'x' is undefined" if code else "",
        exit_code=code,
    )


def _ruling(value: bool | float | str) -> AggregateVerdict:
    verdict = Verdict(scores={"result": JudgeScore(value=value)}, reason="so")
    return AggregateVerdict(values={"result": value}, verdicts=(verdict,))


class TestAsk:
    def test_template_is_filled_with_row_and_run(self) -> None:
        [(name, request)] = RATED.ask(CASE).parts
        assert isinstance(request, RunProgram)
        assert (name, request.network) == ("kind", False)
        assert json.loads(request.stdin) == {
            "template": "{{ response }}",
            "variables": {
                "query": "Weather?",
                "context": "c",
                "response": "Sunny.",
                "tool_calls": [],
                "tool_definitions": [],
            },
        }

    def test_template_that_reads_unrecorded_tool_calls_is_an_error(self) -> None:
        unrecorded = replace(TURN, tool_calls_recorded=False)
        case = replace(CASE, trace=replace(CASE.trace, turns=(unrecorded,)))
        assert RATED.ask(case).parts
        with pytest.raises(EvaluatorError, match="does not say which tools were called"):
            replace(RATED, template="{{ tool_calls }}").ask(case)

    def test_filled_template_is_sent_to_judge(self) -> None:
        asked = RATED.ask(CASE).then((_filled(),))
        assert isinstance(asked, AskModel)
        assert asked.judge == JUDGE.judge
        assert asked.prompt.schema == RATED.prompt_threshold.form
        assert asked.prompt.user.startswith("A: <untrusted")
        assert RATED.needs == (JUDGE,)

    @pytest.mark.parametrize(
        ("response", "reason"),
        [
            (_filled(code=1), "cannot fill the prompt template: 'x' is undefined"),
            (_filled("A: \0X\0"), "the prompt template modifies a variable inside a block"),
        ],
    )
    def test_template_that_cannot_be_filled_is_an_error(
        self, response: ProgramOutput, reason: str
    ) -> None:
        with pytest.raises(EvaluatorError) as error:
            RATED.ask(CASE).then((response,))
        assert str(error.value).startswith(f"Evaluator `kind`: {reason}")

    def test_unexpected_template_response_is_a_type_error(self) -> None:
        with pytest.raises(TypeError):
            RATED.ask(CASE).then((MetricResult(score=1, turn_scores=()),))

    @pytest.mark.parametrize(
        "printed",
        ["{}", '{"text": 1, "values": []}', '{"text": "", "values": [["a"]]}', '{"values": [1]}'],
    )
    def test_forged_template_response_is_an_error(self, printed: str) -> None:
        with pytest.raises(EvaluatorError, match="it printed another result"):
            parse_filled_template(ProgramOutput(stdout=printed.encode(), stderr="", exit_code=0))


@pytest.mark.parametrize(
    ("threshold", "value", "passed"),
    [
        (3, 3.0, True),
        (3, 2.9, False),
        (3.5, 4.0, True),
        (0.5, 0.5, True),
        (0.5, 0.4, False),
        (True, True, True),
        (True, False, False),
        (False, False, True),
        (False, True, False),
        (1, 1.0, True),
        (0, 0.0, True),
    ],
)
def test_verdict_passes_if_it_meets_threshold(
    threshold: bool | float, value: bool | float, passed: bool
) -> None:
    judgement = _evaluator(make_prompt_threshold(threshold)).read(_ruling(value))
    assert (judgement.passed, judgement.reasoning) == (passed, "so")
    assert judgement.details == {"result": value}
    assert bool(judgement.misses) is not passed


@pytest.mark.parametrize(
    ("prompt_threshold", "value", "score"),
    [
        (make_prompt_threshold(3), 4.0, None),
        (make_prompt_threshold(3.5), 4.0, None),
        (make_prompt_threshold(1), 1.0, None),
        (make_prompt_threshold(0.5), 0.75, 0.75),
        (make_prompt_threshold(1.0), 0.75, 0.75),
        (make_prompt_threshold(3, [1, 5]), 4.0, 0.75),
        (make_prompt_threshold(3, [1, 5]), 1.0, 0.0),
        (make_prompt_threshold(True), True, 1.0),
        (make_prompt_threshold(False), True, 0.0),
    ],
)
def test_score_is_set_only_for_known_scale(
    prompt_threshold: PromptThreshold, value: bool | float, score: float | None
) -> None:
    assert make_prompt_judgement(value, "", prompt_threshold).score == score


def test_threshold_type_selects_answer_schema() -> None:
    assert make_prompt_threshold(True).form == ScoreSchema(
        kind="boolean", value_name="result", reason_name="reason"
    )
    assert make_prompt_threshold(0.5).form == ScoreSchema(value_name="result", reason_name="reason")
    assert make_prompt_threshold(3, [1, 5]).form == ScoreSchema(
        value_name="result", reason_name="reason", low=1, high=5
    )
    assert not make_prompt_threshold(3).form.is_bounded


@pytest.mark.parametrize(
    ("threshold", "value", "criterion", "miss"),
    [
        (3, 2.0, "result >= 3", "the judge returned 2, required: result >= 3"),
        (0.5, 0.25, "result >= 0.5", "the judge returned 0.25, required: result >= 0.5"),
        (True, False, "result is true", "the judge returned false, required: result is true"),
        (False, True, "result is false", "the judge returned true, required: result is false"),
    ],
)
def test_miss_reports_returned_value_and_criterion(
    threshold: bool | float, value: bool | float, criterion: str, miss: str
) -> None:
    evaluator = _evaluator(make_prompt_threshold(threshold))
    assert (evaluator.identity.criterion, evaluator.read(_ruling(value)).misses) == (
        criterion,
        (miss,),
    )


def test_unexpected_verdict_is_a_type_error() -> None:
    for response in (MetricResult(score=1, turn_scores=()), _ruling("good")):
        with pytest.raises(TypeError):
            RATED.read(response)


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("relevance.md", True),
        (" prompts/relevance.md\n", True),
        ("Rate {{response}}", False),
        ("{% if a %}b{% endif %}", False),
        ("Rate it.\nFrom 1 to 5.", False),
    ],
)
def test_single_line_without_variables_is_a_path(prompt: str, named: bool) -> None:
    assert is_prompt_path(prompt) is named
