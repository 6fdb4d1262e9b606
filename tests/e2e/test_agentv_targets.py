"""Judges of AgentV's list of targets, in whole runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.support import run_agentci

GRADE = json.dumps({"score": 0.9, "reasoning": "so", "hits": [], "misses": []})
TARGETS = f"""targets:
  - {{name: default, provider: codex, grader_target: "${{{{ GRADER }}}}"}}
  - {{name: fixed, provider: mock, response: '{GRADE}'}}
"""


def make_eval_file(folder: Path) -> None:
    (folder / ".agentv").mkdir()
    (folder / ".agentv" / "targets.yaml").write_text(TARGETS)
    (folder / "a.eval.yaml").write_text("tests: [{id: a, input: q, criteria: c}]")
    (folder / "a.outputs.jsonl").write_text(json.dumps({"id": "a", "text": "x"}))


def test_mock_target_grades(tmp_path: Path) -> None:
    make_eval_file(tmp_path)
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path, environ={"GRADER": "fixed"})
    assert (ran.code, [each["score"] for each in ran.results["results"]]) == (0, [0.9]), ran.out


def test_unset_variable_is_a_warning_until_the_model_is_needed(tmp_path: Path) -> None:
    make_eval_file(tmp_path)
    checked = run_agentci(["validate", "a.eval.yaml"], cwd=tmp_path)
    assert (checked.code, "warning: evaluator `llm_judge`" in checked.out) == (0, True)
    assert "variables that are not set: GRADER" in checked.out
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path)
    assert (ran.code, "variables that are not set: GRADER" in ran.out) == (2, True), ran.out


def test_validate_uses_judge_model(tmp_path: Path) -> None:
    make_eval_file(tmp_path)
    given = ["validate", "a.eval.yaml", "--judge-model", "openai/m"]
    checked = run_agentci(given, cwd=tmp_path)
    assert (checked.code, "not set" in checked.out) == (0, False), checked.out


GRADER = """import sys
prompt, output = sys.argv[1:]
text = open(prompt).read()
score = 0.9 if "q" in text and "OUTER" in text else 0.1
grade = '{"score": %s, "reasoning": "so"}' % score
open(output, "w").write(PRINTED)
print("not the response")
"""
MESSAGES = '[{"role": "assistant", "content": "no"}, {"role": "assistant", "content": grade}]'


def write_grading_command(folder: Path, *, target: str, printed: str = "grade") -> None:
    """A target whose command grades, in its own folder, and another one that names ``target``."""
    make_eval_file(folder)
    (folder / "graders").mkdir()
    (folder / "graders" / "grade.py").write_text(
        f"import json\n{GRADER.replace('PRINTED', printed)}"
    )
    command = "python3 grade.py {PROMPT_FILE} {OUTPUT_FILE}"
    targets = [
        {"name": "default", "provider": "codex", **({"grader_target": target} if target else {})},
        {"name": "own", "provider": "cli", "command": command, "cwd": "graders"},
    ]
    (folder / ".agentv" / "targets.yaml").write_text(json.dumps({"targets": targets}))


@pytest.mark.parametrize(
    "printed",
    [
        "grade",
        'json.dumps({"text": grade, "duration_ms": 3})',
        f'json.dumps({{"output": {MESSAGES}, "text": "no"}})',
        'json.dumps({"output": [], "text": grade})',
        (
            'json.dumps({"output_messages": [{"role": "assistant", "content": '
            '[{"type": "text", "text": grade}]}]})'
        ),
    ],
)
def test_command_grades(tmp_path: Path, printed: str) -> None:
    write_grading_command(tmp_path, target="own", printed=printed)
    graded = {"type": "llm-grader", "prompt": "OUTER {{ input }} {{ output }}"}
    tests = [{"id": "a", "input": "q", "criteria": "c", "assertions": [graded]}]
    (tmp_path / "a.eval.yaml").write_text(json.dumps({"tests": tests}))
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path)
    assert [each["score"] for each in ran.results["results"]] == [0.9], ran.out


def test_command_that_is_evaluated_does_not_grade_itself(tmp_path: Path) -> None:
    write_grading_command(tmp_path, target="")
    (tmp_path / "a.eval.yaml").write_text(
        "execution: {target: own}\ntests: [{id: a, input: q, criteria: c, rubrics: [x]}]"
    )
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path)
    assert (ran.code, "target 'own' is not a judge model" in ran.out) == (2, True), ran.out


def test_default_target_of_the_list_is_the_agent(tmp_path: Path) -> None:
    make_eval_file(tmp_path)
    (tmp_path / "a.outputs.jsonl").unlink()
    target = {"name": "default", "provider": "cli", "command": "echo {EVAL_ID}!"}
    (tmp_path / ".agentv" / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    case = {"id": "a", "input": "q", "assertions": [{"type": "equals", "value": "a!"}]}
    (tmp_path / "a.eval.yaml").write_text(json.dumps({"tests": [case]}))
    ran = run_agentci(["run"], cwd=tmp_path)
    assert ran.code == 0, ran.out


def write_providers(folder: Path, *, target: str = "", **keys: object) -> None:
    """An eval file of AgentV 5 with two commands as providers."""
    given = {
        "providers": [
            {"id": "cli", "label": name, "command": f"echo {name} {{EVAL_ID}}", **keys}
            for name in ("first", "second")
        ],
        "prompts": ["{{ input }}"],
        "tests": [
            {
                "id": "a",
                "vars": {"input": "q"},
                "assert": [{"type": "equals", "value": f"{target or 'first'} a"}],
            }
        ],
        **({"target": target} if target else {}),
    }
    (folder / "a.eval.yaml").write_text(json.dumps(given))


@pytest.mark.parametrize("target", ["", "second"])
def test_command_of_a_provider_is_the_agent(tmp_path: Path, target: str) -> None:
    write_providers(tmp_path, target=target)
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path)
    assert (ran.code, ran.results["problems"]) == (0, []), ran.out


def test_provider_of_all_cases_at_once_is_not_run(tmp_path: Path) -> None:
    write_providers(tmp_path, batch_requests=True)
    assert run_agentci(["validate", "a.eval.yaml"], cwd=tmp_path).code == 0
    (tmp_path / "a.outputs.jsonl").write_text(json.dumps({"id": "a", "text": "first a"}))
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path)
    assert (ran.code, "runs all cases at once is not run" in ran.out) == (0, True), ran.out


def test_prompt_that_is_a_path_is_read_with_a_warning(tmp_path: Path) -> None:
    make_eval_file(tmp_path)
    (tmp_path / "grade.md").write_text("Grade {{ output }}")
    graded = {"type": "llm-grader", "prompt": "./grade.md"}
    tests = [{"id": "a", "input": "q", "criteria": "c", "assertions": [graded]}]
    (tmp_path / "a.eval.yaml").write_text(json.dumps({"tests": tests}))
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path, environ={"GRADER": "fixed"})
    assert (ran.code, "the prompt is the file ./grade.md" in ran.out) == (0, True), ran.out


def test_composite_of_invalid_evaluators_is_one_error(tmp_path: Path) -> None:
    member = {"name": "m", "type": "contains"}
    composite = {"type": "composite", "aggregator": {"type": "weighted_average"}}
    tests = [{"id": "a", "input": "q", "assertions": [{**composite, "assertions": [member]}]}]
    (tmp_path / "a.eval.yaml").write_text(json.dumps({"tests": tests}))
    ran = run_agentci(["validate", "a.eval.yaml"], cwd=tmp_path)
    assert (ran.code, "1 error in 1 file" in ran.out) == (2, True), ran.out


def write_listed_command(folder: Path, *, name: str = "own", **keys: Any) -> None:
    """An eval file that names a command which the list of targets has."""
    make_eval_file(folder)
    (folder / "a.outputs.jsonl").unlink()
    (folder / "agent").mkdir()
    (folder / "agent" / "agent.py").write_text("import sys\nprint('answer to', sys.argv[1])")
    command = "python3 ${{ SCRIPT }} {PROMPT}"
    listed = {"name": "own", "provider": "cli", "command": command, "cwd": "agent", **keys}
    targets = [{"name": "alias", "use_target": "own"}, listed]
    (folder / ".agentv" / "targets.yaml").write_text(json.dumps({"targets": targets}))
    equals = {"type": "equals", "value": "answer to q"}
    tests = [{"id": "a", "input": "q", "assertions": [equals]}]
    (folder / "a.eval.yaml").write_text(json.dumps({"target": name, "tests": tests}))


@pytest.mark.parametrize("name", ["own", "alias"])
def test_command_of_a_named_target_is_the_agent(tmp_path: Path, name: str) -> None:
    write_listed_command(tmp_path, name=name)
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path, environ={"SCRIPT": "agent.py"})
    assert (ran.code, ran.results["problems"]) == (0, []), ran.out


@pytest.mark.parametrize(
    ("keys", "warning"),
    [
        ({"command": "${{ UNSET }} x"}, "UNSET is not set, so that target 'own' is not run"),
        ({"cwd": "gone"}, "gone"),
        ({"command": ""}, "command"),
        ({"batch_requests": True}, "runs all cases at once is not run"),
        ({"provider_batching": True}, "`provider_batching` is not supported"),
    ],
)
def test_recorded_outputs_need_no_valid_command(
    tmp_path: Path, keys: dict[str, Any], warning: str
) -> None:
    write_listed_command(tmp_path, **keys)
    (tmp_path / "a.outputs.jsonl").write_text(json.dumps({"id": "a", "text": "answer to q"}))
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path, environ={"SCRIPT": "agent.py"})
    assert (ran.code, warning in ran.out) == (0, True), ran.out
