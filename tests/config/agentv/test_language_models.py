"""Cases with a judge model: the default judge, criteria of a case, and templates."""

import pytest

from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.overrides import Overrides
from agentci.config.suite import EvalFileCase, Suite
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.evaluators.agentv.judge_templates import Rubrics
from agentci.evaluators.agentv.llm_judge import LlmJudge
from tests.config.agentv.no_files import NoFiles

JUDGE = "judge: {command: [judge]}\n"
CASE = "id: a, input: q, criteria: c"


def read(text: str, judge: str = JUDGE, model: str = "") -> Suite:
    document = read_yaml(f"{judge}{text}".encode(), file="f.yaml")
    return read_eval_file(
        document, Overrides(judge_model=model), NoFiles(), variables=ConfigVariables({})
    )


def cases(text: str, judge: str = JUDGE, model: str = "") -> tuple[EvalFileCase, ...]:
    samples = read(text, judge, model).eval_cases
    assert samples is not None
    return samples


def errors(text: str, judge: str = JUDGE) -> list[str]:
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


class TestDefaultJudge:
    def test_default_judge_is_added_to_cases_without_evaluators(self) -> None:
        own = "evaluators: [{name: own, type: latency, threshold: 1}]"
        others = f"{{id: b, input: q, expected_output: r}}, {{id: c, input: q, {own}}}"
        first, second, third = cases(f"cases: [{{{CASE}}}, {others}]")
        assert names(first) == names(second) == [("llm_judge", "llm_judge")]
        assert first.evaluators[0] is second.evaluators[0]
        assert str(first.evaluators[0].identity.place) == "f.yaml:1:8"
        assert names(third) == [("own", "latency")]

    def test_judge_model_of_command_line_is_used(self) -> None:
        [case] = cases(f"tests: [{{{CASE}}}]", judge="", model="openai/m")
        assert names(case) == [("llm_judge", "llm_judge")]

    def test_default_judge_needs_criteria(self) -> None:
        [problem] = errors("cases: [{id: a, input: q}]")
        assert "2:9: case 'a' has no evaluators" in problem
        assert "or add `criteria` to the case and a top-level `judge`)" in problem

    def test_judge_entry_needs_criteria(self) -> None:
        own = "evaluators: [{name: j, type: llm_judge}]"
        [problem] = errors(f"cases: [{{id: a, input: q, {own}}}]")
        assert "2:9: case 'a' has no criteria for evaluator 'j'" in problem
        assert "(add `criteria` or `expected_output`)" in problem

    @pytest.mark.parametrize(
        "fields",
        [
            "expected_output: r, evaluators: [{name: j, type: llm_judge}]",
            "evaluators: [{name: j, type: llm_judge, prompt: Is it kind?}]",
            "evaluators: [{name: j, type: llm_judge, prompt: {script: [python3, p.py]}}]",
            "evaluators: [{name: j, type: llm_judge, rubrics: [{outcome: Is kind.}]}]",
            "evaluators: [{name: j, type: llm_judge}], evaluatorTemplate: 'Kind? {{output}}'",
        ],
    )
    def test_judge_accepts_any_kind_of_criteria(self, fields: str) -> None:
        [case] = cases(f"cases: [{{id: a, input: q, {fields}}}]")
        assert names(case) == [("j", "llm_judge")]

    def test_missing_judge_model_is_reported(self) -> None:
        [problem] = errors(f"cases: [{{{CASE}}}]", judge="")
        assert "1:9: case 'a' has no evaluators" in problem

    def test_judge_model_without_provider_is_rejected(self) -> None:
        with pytest.raises(InputError, match=r"the judge model 'm' of `.*` has no provider"):
            cases(f"cases: [{{{CASE}}}]", judge="", model="m")


class TestTurns:
    CASE = "id: a, mode: conversation, turns: [{input: q, expected_output: r}, {input: w}]"

    def test_default_judge_is_added_to_expecting_turns(self) -> None:
        [case] = cases(f"tests: [{{{self.CASE}}}]")
        assert names(case) == [("turn-1/llm_judge", "llm_judge")]

    def test_turn_without_judge_model_is_rejected(self) -> None:
        problems = "\n".join(errors(f"tests: [{{{self.CASE}}}]", judge=""))
        assert "1:45: turn 1 has no evaluators" in problems


class TestCaseCriteria:
    def test_rubrics_precede_other_evaluators(self) -> None:
        own = "evaluators: [{name: own, type: latency, threshold: 1}]"
        rubrics = "rubrics: [Says it., {id: kind, outcome: Is kind.}]"
        [case] = cases(f"cases: [{{{CASE}, {rubrics}, {own}}}]")
        assert names(case) == [("rubric", "rubrics"), ("own", "latency")]
        assert criteria(case) == [("rubric-1", "Says it."), ("kind", "Is kind.")]
        assert str(case.evaluators[0].identity.place) == "f.yaml:2:49"

    def test_text_is_one_criterion(self) -> None:
        entry = "{type: rubrics, name: r, criteria: Says it.}"
        [case] = cases(f"tests: [{{id: a, input: q, assertions: [{entry}]}}]")
        assert criteria(case) == [("rubric-1", "Says it.")]

    def test_taken_name_of_rubrics_is_rejected(self) -> None:
        own = "evaluators: [{name: rubric, type: latency, threshold: 1}]"
        [problem] = errors(f"cases: [{{{CASE}, rubrics: [x], {own}}}]")
        assert "2:49: `rubrics` of case 'a' make an evaluator with the name 'rubric'" in problem

    @pytest.mark.parametrize(
        ("rubrics", "message"),
        [
            ("[]", "2:49: `rubrics` must be a list"),
            ("[{id: x}]", "2:50: a criterion needs `outcome`"),
            ("[{outcome: x, wieght: 2}]", "unknown key 'wieght' (did you mean 'weight'?)"),
            ("[{id: x, outcome: y}, {id: x, outcome: z}]", "2:49: two criteria have the id 'x'"),
        ],
    )
    def test_invalid_rubrics_are_reported_on_their_line(self, rubrics: str, message: str) -> None:
        [problem] = errors(f"cases: [{{{CASE}, rubrics: {rubrics}}}]")
        assert message in problem

    def test_unnamed_judge_is_named_after_its_type(self) -> None:
        listed = "[{type: llm-grader}, {type: rubric_grader, criteria: [x]}]"
        [case] = cases(f"tests: [{{{CASE}, assertions: {listed}}}]")
        assert names(case) == [("llm-grader", "llm_judge"), ("rubric-grader", "rubrics")]

    def test_text_criteria_among_assertions_are_rubrics(self) -> None:
        listed = "[Says it., {name: own, type: latency, threshold: 1}, Is kind.]"
        [case] = cases(f"tests: [{{{CASE}, assertions: {listed}}}]")
        assert names(case) == [("rubrics", "rubrics"), ("own", "latency")]
        assert criteria(case) == [("rubric-1", "Says it."), ("rubric-2", "Is kind.")]
        assert case.evaluators[0].identity.weight == 2
        [problem, *_] = errors(f"cases: [{{{CASE}, assertions: {listed}}}]")
        assert "each evaluator must be a mapping with `name` and `type`, not the string" in problem


class TestTemplates:
    def test_case_template_overrides_file_template(self) -> None:
        own = "evaluatorTemplate: 'Case: {{output}}'"
        first, second = cases(
            f"evaluatorTemplate: 'File: {{{{output}}}}'\n"
            f"cases: [{{{CASE}, {own}}}, {{id: b, input: q, criteria: c}}]"
        )
        assert first.eval_case.judge_template == "Case: {{output}}"
        assert second.eval_case.judge_template == "File: {{output}}"

    def test_template_in_execution_is_used(self) -> None:
        first, second = cases(
            "execution: {evaluatorTemplate: 'File: {{output}}'}\n"
            f"cases: [{{{CASE}, execution: {{evaluatorTemplate: 'Case: {{{{output}}}}'}}}},"
            " {id: b, input: q, criteria: c}]"
        )
        assert first.eval_case.judge_template == "Case: {{output}}"
        assert second.eval_case.judge_template == "File: {{output}}"

    def test_duplicate_template_is_ignored_with_warning(self) -> None:
        suite = read(
            "evaluatorTemplate: 'A: {{output}}'\nexecution: {evaluatorTemplate: 'B: {{output}}'}\n"
            f"cases: [{{{CASE}}}]"
        )
        assert suite.eval_cases is not None
        assert suite.eval_cases[0].eval_case.judge_template == "A: {{output}}"
        [warning] = suite.notices
        assert "3:13: `execution.evaluatorTemplate` is ignored" in str(warning)

    def test_template_without_variables_is_reported_once(self) -> None:
        [problem] = errors(
            "evaluatorTemplate: 'File: {{question}}'\n"
            f"cases: [{{{CASE}}}, {{id: b, input: q, criteria: c}}]"
        )
        assert "f.yaml:2:20: the prompt uses no variable" in problem


def test_case_keeps_text_of_input_files() -> None:
    parts = "[{type: file, value: a.txt}, {type: file, value: guide.md}]"
    [case] = cases(f"cases: [{{id: a, criteria: c, input: [{{role: user, content: {parts}}}]}}]")
    assert case.eval_case.input_texts == {"a.txt": "a.txt"}
