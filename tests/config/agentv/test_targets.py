"""Judge models from AgentV's lists of targets."""

from collections.abc import Mapping
from typing import Any

import pytest

from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.overrides import Overrides
from agentci.config.suite import Suite
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.evaluators.agentv.llm_judge import LlmJudge
from agentci.model.judges import ModelSettings
from tests.config.agentv.no_files import NoFiles

LIST = ".agentv/targets.yaml"
CASE = "tests: [{id: a, input: q, criteria: c}]"
GRADED = f"execution: {{target: agent}}\n{CASE}"
AGENT = "- {name: agent, provider: codex, grader_target: grader}"


def read(
    text: str, targets: str | Mapping[str, str], environ: Mapping[str, str] | None = None,
    **options: Any,
) -> Suite:  # fmt: skip
    files = {LIST: f"targets:\n{targets}\n"} if isinstance(targets, str) else targets
    return read_eval_file(
        read_yaml(text.encode(), file="f.yaml"),
        Overrides(**options),
        NoFiles(texts=files),
        variables=ConfigVariables({} if environ is None else environ, allowed=("MODEL", "OWN_*")),
    )


def judge(suite: Suite) -> ModelSettings:
    [evaluator] = suite.evaluators
    assert isinstance(evaluator, LlmJudge)
    return evaluator.required_judge.judge.settings


def error(text: str, targets: str | Mapping[str, str]) -> str:
    with pytest.raises(InputError) as caught:
        read(text, targets)
    [problem] = caught.value.problems
    return str(problem)


def test_target_of_an_eval_file_extends_a_listed_one() -> None:
    own = "target: {name: changed, extends: '${{ MODEL }}', hooks: {}}"
    listed = f"{AGENT}\n- {{name: grader, provider: openai, model: m}}"
    suite = read(f"{own}\n{CASE}", listed, {"MODEL": "agent"})
    assert judge(suite).model == "m"


@pytest.mark.parametrize(
    ("grader", "provider", "fields"),
    [
        (
            "provider: openai, model: m, api_key: '${{ OWN_KEY }}'",
            "openai",
            {"model": "m", "key_variable": "OWN_KEY", "base_url": ""},
        ),
        ("provider: anthropic, model: m", "anthropic", {"key_variable": "ANTHROPIC_API_KEY"}),
        (
            "provider: openai, base_url: 'https://models.example/v1', model: m",
            "openai",
            {"base_url": "https://models.example/v1", "key_variable": ""},
        ),
        (
            "provider: azure, endpoint: ours, model: '${{ MODEL }}', version: v1",
            "azure",
            {"base_url": "https://ours.openai.azure.com", "model": "big", "api_version": ""},
        ),
        (
            "provider: openrouter, model: a/b",
            "openai",
            {"base_url": "https://openrouter.ai/api/v1", "key_variable": "OPENROUTER_API_KEY"},
        ),
        ("provider: gemini, model: m, version: v9", "gemini", {"api_version": ""}),
        ("provider: mock, response: '1'", "command", {"command": ("printf", "%s", "1")}),
    ],
)
def test_grader_target_of_tested_target_is_the_judge(
    grader: str, provider: str, fields: dict[str, object]
) -> None:
    suite = read(GRADED, f"{AGENT}\n- {{name: grader, {grader}}}", {"MODEL": "big"})
    found = judge(suite)
    assert found.provider == provider
    assert {name: getattr(found, name) for name in fields} == fields


@pytest.mark.parametrize(
    "text",
    [
        CASE,
        f"target: default\n{CASE}",
        f"target: {{use_target: default}}\n{CASE}",
        f"execution: {{targets: [default, other]}}\n{CASE}",
    ],
)
def test_tested_model_without_grader_judges_itself(text: str) -> None:
    targets = "- {name: default, use_target: '${{ OWN_TARGET }}'}\n"
    targets += "- {name: small, provider: openai, model: m}"
    assert judge(read(text, targets, {"OWN_TARGET": "small"})).model == "m"


def test_providers_of_agentv_5_and_their_default_grader_are_read() -> None:
    files = {
        ".agentv/config.yaml": "defaults: {provider: agent, grader: judge}",
        ".agentv/providers.yaml": "- {id: codex-cli, label: agent}\n"
        "- {id: openai:m, label: judge, config: {api_key: '{{ env.OWN_KEY }}'}}",
    }
    found = judge(read(CASE, files))
    assert (found.provider, found.model, found.key_variable) == ("openai", "m", "OWN_KEY")


def test_evaluators_may_name_different_targets() -> None:
    own = "assertions: [{name: x, type: llm-grader, target: one}, {name: y, type: rubrics, "
    own += "criteria: [good], target: two}]"
    targets = "- {name: one, provider: openai, model: a}\n- {name: two, provider: gemini, model: b}"
    suite = read(f"tests: [{{id: a, input: q, criteria: c, {own}}}]", targets)
    found = [each.required_judge.judge.settings for each in suite.evaluators]  # type: ignore[attr-defined]
    assert [(each.provider, each.model) for each in found] == [("openai", "a"), ("gemini", "b")]


def test_own_judge_and_judge_model_replace_targets() -> None:
    targets = "- {name: default, provider: openai, model: a}"
    assert judge(read(f"judge: {{provider: gemini, model: b}}\n{CASE}", targets)).model == "b"
    found = judge(read(CASE, targets, judge_model="anthropic/c"))
    assert (found.provider, found.model) == ("anthropic", "c")


def test_unset_variable_leaves_the_model_unknown() -> None:
    targets = "- {name: default, provider: openai, model: '${{ MODEL }}'}"
    assert judge(read(CASE, targets)).unset_variables == ("MODEL",)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (
            f"{AGENT}\n- {{name: grader, provider: openai, api_key: abc}}",
            "`api_key` of target 'grader' must name a variable",
        ),
        (
            f"{AGENT}\n- {{name: grader, provider: openai, model: '${{{{ HOME }}}}'}}",
            "HOME is not in env-allow",
        ),
        ("- {name: agent, use_target: agent}", "target 'agent' stands for itself"),
    ],
)
def test_target_that_is_no_judge_is_explained(targets: str, message: str) -> None:
    text = GRADED.replace("criteria: c", "assertions: [{type: llm-grader, prompt: Is it good?}]")
    assert message in error(text, targets)
    assert read(GRADED.replace("criteria: c", "assertions: [{type: is-json}]"), targets).evaluators


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        ("- {name: agent, provider: codex}", "target 'agent' is not a judge model: its provider"),
        (AGENT, "unknown target 'grader'; known targets: agent"),
        ("- {name: other, provider: openai}", "unknown target 'agent'"),
    ],
)
def test_target_without_model_leaves_its_judge_unavailable(targets: str, reason: str) -> None:
    assert reason in judge(read(GRADED, targets)).unavailable


def test_named_agent_cannot_judge_and_unknown_name_is_an_error() -> None:
    text = CASE.replace(
        "criteria: c", "criteria: c, assertions: [{type: llm-grader, target: agent}]"
    )
    assert "is not a judge model" in judge(read(text, AGENT)).unavailable
    assert "unknown target 'agent'" in error(text, "- {name: other, provider: openai}")


def test_lists_in_folders_above_complete_the_nearest_one() -> None:
    files = {
        ".agentv/providers.yaml": "- {id: cli, label: agent, command: x}",
        "../.agentv/providers.yaml": "- {id: openai:far, label: judge}\n"
        "- {id: codex, label: agent}",
        "../.agentv/config.yaml": "defaults: {grader: judge}",
    }
    suite = read(f"target: agent\n{CASE}", files)
    assert judge(suite).model == "far"
    assert suite.agent is not None


def test_invalid_list_of_targets_is_an_error() -> None:
    assert ".agentv/targets.yaml" in error(CASE, {LIST: "targets: ["})
