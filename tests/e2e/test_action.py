"""The GitHub action: entrypoint.py in the workspace of a workflow."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.steps import CONFIG, run_step
from tests.helpers.recordings import otlp
from tests.helpers.runner import commands_in
from tests.helpers.support import ROOT


def test_passing_checks_pass_step_and_set_outputs(workspace: Path) -> None:
    step = run_step(workspace, config="evals")
    assert step.code == 0, step.log
    assert step.outputs == {
        "passed": "true",
        "verdict": "passed",
        "score": "0.95",
        "checks": "2",
        "passed-count": "2",
        "failed-count": "0",
        "errored-count": "0",
        "skipped-count": "0",
        "results": "agentci-results/results.json",
        "junit": "agentci-results/junit.xml",
        "summary": "agentci-results/summary.md",
        "report": "agentci-results/report.html",
        "comment": "agentci-results/comment.md",
    }
    assert step.summary == (workspace / "agentci-results" / "summary.md").read_text()
    assert "::error" not in step.log


def test_failing_check_is_annotated_on_its_config_line(
    workspace: Path,
) -> None:
    (workspace / "evals" / "traces" / "1.json").write_text(
        otlp(calls=[("get_weather", {"city": "Rome"})])
    )
    step = run_step(workspace, config="evals")
    assert step.code == 1
    assert (step.outputs["passed"], step.outputs["verdict"]) == ("false", "failed")
    [annotation] = [line for line in step.log.splitlines() if line.startswith("::error")]
    assert "file=evals/eval_config.yaml,line=2" in annotation
    assert "Rome" in annotation


def test_crashing_evaluator_gives_error_verdict(workspace: Path) -> None:
    (workspace / "evals" / "ev.py").write_text("raise SystemExit('no key')")
    step = run_step(workspace, config="evals")
    assert (step.code, step.outputs["verdict"]) == (3, "error")
    assert step.outputs["errored-count"] == "1"
    assert "no key" in step.summary


def test_invalid_config_is_annotated_and_sets_outputs(workspace: Path) -> None:
    (workspace / "evals" / "eval_config.yaml").write_text(CONFIG.replace("1.0", "'1.0'"))
    step = run_step(workspace, config="evals")
    assert (step.code, step.outputs["passed"], step.outputs["verdict"]) == (2, "false", "invalid")
    assert "::error file=evals/eval_config.yaml,line=4" in step.log
    assert "threshold" in step.summary


def test_invalid_action_input_sets_outputs(workspace: Path) -> None:
    step = run_step(workspace, config="evals", threshold="high")
    assert (step.code, step.outputs["verdict"], step.outputs["checks"]) == (2, "invalid", "0")
    assert "::error" in step.log
    assert "--threshold" in step.log


def test_each_line_of_an_input_is_one_value(workspace: Path) -> None:
    step = run_step(
        workspace,
        metric="tool_trajectory_avg_score\nresponse_match_score\n",
        traces="evals/traces/1.json\n",
        eval_set="evals/golden.json",
        output_dir="out",
    )
    assert step.code == 0, step.log
    assert step.outputs["checks"] == "2"
    assert json.loads((workspace / "out" / "results.json").read_text())["totals"]["passed"] == 2


@pytest.mark.parametrize(
    "written",
    ["- evals\n- evals/eval_config.yaml", '"evals"', "'evals'", '["evals"]', "\n- 'evals'\r\n"],
)
def test_yaml_list_in_line_input_is_rejected(workspace: Path, written: str) -> None:
    for name in ("config", "only", "merge"):
        step = run_step(workspace, None, **{name: written})
        assert (step.code, step.outputs["verdict"]) == (2, "invalid")
        assert f"::input {name} has one plain value per line" in step.log
        assert "remove `- `, quotes and brackets" in step.log


def test_glob_starting_with_bracket_is_accepted(workspace: Path) -> None:
    assert run_step(workspace, config="[a-f]vals/eval_*.yaml").code == 0


@pytest.mark.parametrize("other", ["merge", "comment_report"])
def test_false_in_any_letter_case_disables_option(workspace: Path, other: str) -> None:
    run_step(workspace, config="evals")
    inputs = {other: "agentci-results", "comment": "always", "no_cache": "False", "locked": "FALSE"}
    step = run_step(workspace, None, **inputs)
    assert step.code == 0, step.log


def test_annotations_and_summary_can_be_disabled(workspace: Path) -> None:
    (workspace / "evals" / "ev.py").write_text("print('{\"score\": 0}')")
    step = run_step(workspace, config="evals", annotations="none", summary="none")
    assert step.code == 1
    assert "::error" not in step.log
    assert step.summary == ""


def test_evaluator_output_cannot_inject_workflow_commands(workspace: Path) -> None:
    hostile = "::error::forged\\n##[set-output name=passed]true\\r::set-output name=verdict::open"
    (workspace / "evals" / "ev.py").write_text(
        "import json, sys\n"
        f"sys.stderr.write('{hostile}')\n"
        f"print(json.dumps({{'score': 0, 'details': {{'issues': ['{hostile}']}}}}))\n"
    )
    step = run_step(workspace, config="evals")
    assert [command.name for command in commands_in(step.log)] == ["error"]
    assert step.outputs["passed"] == "false"


def test_step_secrets_are_hidden_from_evaluators(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "t0ken")
    (workspace / "evals" / "ev.py").write_text(
        "import json, os\nprint(json.dumps({'score': 1, 'details': {'seen': dict(os.environ)}}))\n"
    )
    step = run_step(workspace, config="evals", only="response_quality", github_token="t0ken")
    report = (workspace / step.outputs["results"]).read_text()
    assert json.loads(report)["results"][0]["details"]["seen"]["PATH"]
    assert "t0ken" not in report
    assert "GITHUB_" not in report
    assert "INPUT_" not in report


def test_workspace_modules_do_not_shadow_agentci(workspace: Path) -> None:
    for name in ("yaml", "agentci", "pydantic", "json"):
        (workspace / f"{name}.py").write_text("raise SystemExit('hijacked')")
    step = run_step(workspace, config="evals")
    assert "hijacked" not in step.log
    assert step.code == 0


def test_entrypoint_with_arguments_runs_cli(workspace: Path) -> None:
    process = subprocess.run(
        [sys.executable, ROOT / "entrypoint.py", "--version"],
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stdout.startswith("agentci ")
