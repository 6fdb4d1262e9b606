"""Cases that a language model judges: by itself, by criteria of their own, by templates."""

import pytest

from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.overrides import Overrides
from agentci.config.suite import EvalFileCase, Suite
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.evaluators.agentv.llm_judge import LlmJudge
from agentci.evaluators.agentv.rubrics import Rubrics
from tests.config.agentv.no_files import NoFiles

JUDGE = "judge: {command: [judge]}\n"
CASE = "id: a, input: q, criteria: c"


def read(text: str, judge: str = JUDGE, model: str = "") -> Suite:
    document = read_yaml(f"{judge}{text}".encode(), file="f.yaml")
    return read_eval_file(document, Overrides(judge_model=model), NoFiles(), variables={})


def cases(text: str, judge: str = JUDGE, model: str = "") -> tuple[EvalFileCase, ...]:
    samples = read(text, judge, model).eval_cases
    assert samples is not None
    return samples


def told(text: str, judge: str = JUDGE) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(text, judge)
    return [str(problem) for problem in caught.value.problems]


def names(case: EvalFileCase) -> list[tuple[str, str]]:
    return [(each.identity.name, each.identity.type) for each in case.evaluators]


def criteria(case: EvalFileCase, index: int = 0) -> list[tuple[str, str]]:
    judge = case.evaluators[index]
    assert isinstance(judge, LlmJudge)
    assert isinstance(judge.scale, Rubrics)
    return [(each.id, each.text) for each in judge.scale.criteria]


class TestByItself:
    def test_a_model_judges_the_cases_that_nothing_else_judges(self) -> None:
        own = "evaluators: [{name: own, type: latency, threshold: 1}]"
        others = f"{{id: b, input: q, expected_output: r}}, {{id: c, input: q, {own}}}"
        first, second, third = cases(f"cases: [{{{CASE}}}, {others}]")
        assert names(first) == names(second) == [("llm_judge", "llm_judge")]
        assert first.evaluators[0] is second.evaluators[0]
        assert str(first.evaluators[0].identity.place) == "f.yaml:1:8"
        assert names(third) == [("own", "latency")]

    def test_it_may_be_named_on_the_command_line(self) -> None:
        [case] = cases(f"tests: [{{{CASE}}}]", judge="", model="openai/m")
        assert names(case) == [("llm_judge", "llm_judge")]

    def test_it_needs_something_to_judge_by(self) -> None:
        [problem] = told("cases: [{id: a, input: q}]")
        assert "2:9: nothing judges the case 'a'" in problem
        assert "as `criteria`, and which model judges, as `judge: ...` at the top" in problem

    def test_it_needs_that_too_where_an_entry_asks_it(self) -> None:
        own = "evaluators: [{name: j, type: llm_judge}]"
        [problem] = told(f"cases: [{{id: a, input: q, {own}}}]")
        assert "2:9: 'j' has nothing to judge the case 'a' by" in problem
        assert "(say what a good answer does, as `criteria` or `expected_output`)" in problem

    @pytest.mark.parametrize(
        "said",
        [
            "expected_output: r, evaluators: [{name: j, type: llm_judge}]",
            "evaluators: [{name: j, type: llm_judge, prompt: Is it kind?}]",
            "evaluators: [{name: j, type: llm_judge, prompt: {script: [python3, p.py]}}]",
            "evaluators: [{name: j, type: llm_judge, rubrics: [{outcome: Is kind.}]}]",
            "evaluators: [{name: j, type: llm_judge}], evaluatorTemplate: 'Kind? {{output}}'",
        ],
    )
    def test_it_judges_by_whatever_says_how(self, said: str) -> None:
        [case] = cases(f"cases: [{{id: a, input: q, {said}}}]")
        assert names(case) == [("j", "llm_judge")]

    def test_it_is_needed_by_whoever_names_none(self) -> None:
        [problem] = told(f"cases: [{{{CASE}}}]", judge="")
        assert "1:9: nothing judges the case 'a': AgentV would ask a language model" in problem

    def test_a_name_without_a_provider_is_not_enough(self) -> None:
        with pytest.raises(InputError, match="the model 'm', and nothing says of which provider"):
            cases(f"cases: [{{{CASE}}}]", judge="", model="m")


class TestTurns:
    CASE = "id: a, mode: conversation, turns: [{input: q, expected_output: r}, {input: w}]"

    def test_that_expect_something_are_judged_by_the_model_where_nothing_else_does(self) -> None:
        [case] = cases(f"tests: [{{{self.CASE}}}]")
        assert names(case) == [("turn-1/llm_judge", "llm_judge")]

    def test_need_somebody_to_judge_them(self) -> None:
        problems = "\n".join(told(f"tests: [{{{self.CASE}}}]", judge=""))
        assert "1:45: nothing judges turn 1: AgentV would ask a language model" in problems


class TestCriteriaOfACase:
    def test_are_judged_before_all_else(self) -> None:
        own = "evaluators: [{name: own, type: latency, threshold: 1}]"
        rubrics = "rubrics: [Says it., {id: kind, outcome: Is kind.}]"
        [case] = cases(f"cases: [{{{CASE}, {rubrics}, {own}}}]")
        assert names(case) == [("rubric", "rubrics"), ("own", "latency")]
        assert criteria(case) == [("rubric-1", "Says it."), ("kind", "Is kind.")]
        assert str(case.evaluators[0].identity.place) == "f.yaml:2:49"

    def test_are_an_evaluator_whose_name_is_taken(self) -> None:
        own = "evaluators: [{name: rubric, type: latency, threshold: 1}]"
        [problem] = told(f"cases: [{{{CASE}, rubrics: [x], {own}}}]")
        assert "2:49: the `rubrics` of the case 'a' are an evaluator called 'rubric'" in problem

    @pytest.mark.parametrize(
        ("rubrics", "why"),
        [
            ("[]", "2:49: rubrics must be a list"),
            ("[{id: x}]", "2:50: a criterion needs `outcome`"),
            ("[{outcome: x, wieght: 2}]", "unknown key 'wieght' (did you mean 'weight'?)"),
            ("[{id: x, outcome: y}, {id: x, outcome: z}]", "2:49: two criteria have the id 'x'"),
        ],
    )
    def test_that_are_wrong_are_told_on_their_lines(self, rubrics: str, why: str) -> None:
        [problem] = told(f"cases: [{{{CASE}, rubrics: {rubrics}}}]")
        assert why in problem

    def test_are_called_as_their_type_is_written(self) -> None:
        listed = "[{type: llm-grader}, {type: rubric_grader, criteria: [x]}]"
        [case] = cases(f"tests: [{{{CASE}, assertions: {listed}}}]")
        assert names(case) == [("llm-grader", "llm_judge"), ("rubric-grader", "rubrics")]

    def test_may_stand_among_the_evaluators_of_newer_files(self) -> None:
        listed = "[Says it., {name: own, type: latency, threshold: 1}, Is kind.]"
        [case] = cases(f"tests: [{{{CASE}, assertions: {listed}}}]")
        assert names(case) == [("rubrics", "rubrics"), ("own", "latency")]
        assert criteria(case) == [("rubric-1", "Says it."), ("rubric-2", "Is kind.")]
        assert case.evaluators[0].identity.weight == 2
        [problem, *_] = told(f"cases: [{{{CASE}, assertions: {listed}}}]")
        assert "each evaluator must be a mapping with `name` and `type`, not the text" in problem


class TestTemplates:
    def test_of_a_case_come_before_that_of_its_file(self) -> None:
        own = "evaluatorTemplate: 'Case: {{output}}'"
        first, second = cases(
            f"evaluatorTemplate: 'File: {{{{output}}}}'\n"
            f"cases: [{{{CASE}, {own}}}, {{id: b, input: q, criteria: c}}]"
        )
        assert first.eval_case.judge_template == "Case: {{output}}"
        assert second.eval_case.judge_template == "File: {{output}}"

    def test_may_stand_beside_the_evaluators(self) -> None:
        first, second = cases(
            "execution: {evaluatorTemplate: 'File: {{output}}'}\n"
            f"cases: [{{{CASE}, execution: {{evaluatorTemplate: 'Case: {{{{output}}}}'}}}},"
            " {id: b, input: q, criteria: c}]"
        )
        assert first.eval_case.judge_template == "Case: {{output}}"
        assert second.eval_case.judge_template == "File: {{output}}"

    def test_that_are_given_twice_are_the_first(self) -> None:
        suite = read(
            "evaluatorTemplate: 'A: {{output}}'\nexecution: {evaluatorTemplate: 'B: {{output}}'}\n"
            f"cases: [{{{CASE}}}]"
        )
        assert suite.eval_cases is not None
        assert suite.eval_cases[0].eval_case.judge_template == "A: {{output}}"
        [notice] = suite.notices
        assert "3:13: `execution.evaluatorTemplate` is passed over" in str(notice)

    def test_that_show_nothing_are_told_once(self) -> None:
        [problem] = told(
            "evaluatorTemplate: 'File: {{question}}'\n"
            f"cases: [{{{CASE}}}, {{id: b, input: q, criteria: c}}]"
        )
        assert "f.yaml:2:20: the prompt uses no variable" in problem


def test_a_case_keeps_what_its_files_say() -> None:
    parts = "[{type: file, value: a.txt}, {type: file, value: guide.md}]"
    [case] = cases(f"cases: [{{id: a, criteria: c, input: [{{role: user, content: {parts}}}]}}]")
    assert case.eval_case.input_texts == {"a.txt": "a.txt"}
