"""Prompts: what is asked, what passes, and on which scale."""

import json

import pytest

from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.pytest_agent_evals.prompt_evaluator import (
    PromptEvaluator,
    PromptThreshold,
    check_prompt_template,
    is_prompt_path,
    make_prompt_judgement,
    make_prompt_threshold,
    parse_filled_template,
)
from agentci.model.case import Case, DatasetRow
from agentci.model.judgement import EvaluatorIdentity
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
from agentci.model.problem import Place
from agentci.model.requests import MetricResult, ProgramOutput, RunProgram
from agentci.model.trace import Trace, Turn
from agentci.model.values import replace

PLACE = Place(file="agentci.yaml", line=3)
JUDGE = RequiredJudge(
    judge=JudgeConfig(settings=ModelSettings(provider="openai")), name="kind", place=PLACE
)
TURN = Turn(id="1", user_text="Weather?", answer_parts=("Sunny.",))
ROW = DatasetRow(id="r", query="Weather?", columns={"context": "c", "response": "old"}, place=PLACE)
CASE = Case(id="c", trace=Trace(id="t", key="t", turns=(TURN,), place=PLACE), dataset_row=ROW)


def _evaluator(bar: PromptThreshold) -> PromptEvaluator:
    identity = EvaluatorIdentity(
        name="kind",
        type="prompt",
        criterion=bar.description,
        threshold=None,
        required=True,
        place=PLACE,
    )
    return PromptEvaluator(identity=identity, template="{{ response }}", bar=bar, judge=JUDGE)


RATED = _evaluator(make_prompt_threshold(3))


def _filled(text: str = "A: \0" + "0\0", code: int = 0) -> ProgramOutput:
    told = json.dumps({"text": text, "values": [["response", "Sunny."]]})
    return ProgramOutput(
        stdout=told.encode() if code == 0 else b"",
        stderr="'x' is undefined" if code else "",
        exit_code=code,
    )


def _ruling(value: bool | float | str) -> AggregateVerdict:
    verdict = Verdict(scores={"result": JudgeScore(value=value)}, reason="so")
    return AggregateVerdict(values={"result": value}, verdicts=(verdict,))


class TestAsk:
    def test_has_the_template_filled_with_the_row_and_what_the_agent_did(self) -> None:
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

    def test_then_asks_a_model_by_it(self) -> None:
        asked = RATED.ask(CASE).then((_filled(),))
        assert isinstance(asked, AskModel)
        assert asked.judge == JUDGE.judge
        assert asked.prompt.schema == RATED.bar.form
        assert asked.prompt.user.startswith("A: <untrusted")
        assert RATED.needs == (JUDGE,)

    @pytest.mark.parametrize(
        ("response", "reason"),
        [
            (_filled(code=1), "cannot fill the prompt template: 'x' is undefined"),
            (_filled("A: \0X\0"), "the prompt template modifies a variable inside a block"),
        ],
    )
    def test_asks_nothing_where_the_template_cannot_be_filled(
        self, response: ProgramOutput, reason: str
    ) -> None:
        with pytest.raises(EvaluatorError) as error:
            RATED.ask(CASE).then((response,))
        assert str(error.value).startswith(f"Evaluator `kind`: {reason}")

    def test_takes_nothing_else_for_a_filled_template(self) -> None:
        with pytest.raises(TypeError):
            RATED.ask(CASE).then((MetricResult(score=1, turn_scores=()),))
        with pytest.raises(TypeError):
            parse_filled_template(ProgramOutput(stdout=b"{}", stderr="", exit_code=0))


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
def test_a_number_has_to_reach_the_threshold_and_a_boolean_to_be_it(
    threshold: bool | float, value: bool | float, passed: bool
) -> None:
    judgement = _evaluator(make_prompt_threshold(threshold)).read(_ruling(value))
    assert (judgement.passed, judgement.reasoning) == (passed, "so")
    assert judgement.details == {"result": value}
    assert bool(judgement.misses) is not passed


@pytest.mark.parametrize(
    ("bar", "value", "score"),
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
def test_there_is_a_score_where_the_scale_is_known(
    bar: PromptThreshold, value: bool | float, score: float | None
) -> None:
    assert make_prompt_judgement(value, "", bar).score == score


def test_a_judge_is_asked_for_what_the_threshold_is() -> None:
    assert make_prompt_threshold(True).form == ScoreSchema(
        kind="boolean", value_name="result", reason_name="reason"
    )
    assert make_prompt_threshold(0.5).form == ScoreSchema(value_name="result", reason_name="reason")
    assert make_prompt_threshold(3, [1, 5]).form == ScoreSchema(
        value_name="result", reason_name="reason", low=1, high=5
    )
    assert not make_prompt_threshold(3).form.is_bounded


@pytest.mark.parametrize(
    ("threshold", "value", "bar", "miss"),
    [
        (3, 2.0, "result >= 3", "the judge returned 2, required: result >= 3"),
        (0.5, 0.25, "result >= 0.5", "the judge returned 0.25, required: result >= 0.5"),
        (True, False, "result is true", "the judge returned false, required: result is true"),
        (False, True, "result is false", "the judge returned true, required: result is false"),
    ],
)
def test_reports_say_what_was_said_and_what_should_have_been(
    threshold: bool | float, value: bool | float, bar: str, miss: str
) -> None:
    evaluator = _evaluator(make_prompt_threshold(threshold))
    assert (evaluator.identity.criterion, evaluator.read(_ruling(value)).misses) == (bar, (miss,))


def test_reads_nothing_but_rulings_over_numbers_and_booleans() -> None:
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
def test_one_line_that_puts_nothing_in_is_a_path(prompt: str, named: bool) -> None:
    assert is_prompt_path(prompt) is named


@pytest.mark.parametrize(
    ("template", "problem", "line"),
    [
        ("a\nb {{ c", "template syntax error in the prompt: unexpected end of template", 2),
        (
            "a\nb",
            "the prompt uses no variable, so that the judge model would not see the response",
            1,
        ),
        ("{% set a = 1 %}{{ a }}", "the prompt uses no variable", 1),
        ("{{ " + "(" * 5_000, "the prompt template is nested too deeply", 1),
    ],
)
def test_a_template_by_which_nobody_could_judge_is_refused(
    template: str, problem: str, line: int
) -> None:
    with pytest.raises(InputError) as error:
        check_prompt_template(template, Place(file="p.md"), line_counts=True)
    [told] = error.value.problems
    assert told.message.startswith(problem)
    assert told.place == replace(Place(file="p.md"), line=line)


def test_the_line_of_a_prompt_in_a_config_is_told_in_words() -> None:
    with pytest.raises(
        InputError, match="template syntax error in the prompt on line 2: unexpected"
    ):
        check_prompt_template("a\nb {{ c", PLACE)
