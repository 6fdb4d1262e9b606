"""A config names only the variables that the workflow allows, and no report shows their values."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests._util.http.servers import script, serve
from tests.e2e.steps import Step, run_step
from tests.helpers.recordings import otlp
from tests.helpers.support import run_agentci
from tests.judges.bench import said

SECRET = "s3cr3t/VALUE of+the&job"
LINES = "-----BEGIN-----\nMIIEvQ1234\n-----END-----"
VARIABLES = {
    "MY_SECRET": SECRET,
    "MY_LINES": LINES,
    "ACTIONS_RUNTIME_TOKEN": "runtime-t0ken",
    "GITHUB_TOKEN": "ghs_0123456789",
    "INPUT_GITHUB-TOKEN": "ghs_9876543210",
}
HINT = "add it to the workflow's env-allow input if the config may use it"
# Prints its variable in several ways, into every part of its result.
TELLING = """\
import base64, json, os, sys, urllib.parse
key = os.environ["MY_SECRET"]
told = [key, base64.b64encode(b"a" + key.encode()).decode(), urllib.parse.quote(key)]
told += [os.environ["MY_LINES"].splitlines()[1], key.encode().hex()]
print(*told, file=sys.stderr)
print(json.dumps({"score": 0, "details": {"issues": told, key: told}}))
"""


def workspace_of(folder: Path, entry: dict[str, Any], **config: Any) -> Path:
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "trace.json").write_text(otlp())
    (workspace / "ev.py").write_text(TELLING)
    document = {"traces": "trace.json", "evaluators": [{"name": "ev", **entry}], **config}
    (workspace / "agentci.yaml").write_text(json.dumps(document))
    return workspace


def shown(step: Step) -> dict[str, str]:
    """Everything that a step shows or leaves, by name."""
    reports = step.workspace / "agentci-results"
    files = {path.name: path.read_text() for path in reports.glob("*.*")}
    return {"log": step.log, "outputs": str(step.outputs), "summary": step.summary, **files}


CODE = {"type": "code", "path": "ev.py", "env": ["MY_SECRET", "MY_LINES"]}
PROMPT = {"name": "ev", "type": "builtin", "threshold": 0.5}


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("MY_SECRET", f"MY_SECRET is not in env-allow; {HINT}", id="secret"),
        pytest.param("HOME_X", f"HOME_X is not in env-allow; {HINT}", id="not set"),
        pytest.param(
            "ACTIONS_RUNTIME_TOKEN", "ACTIONS_RUNTIME_TOKEN is never available", id="runtime token"
        ),
        pytest.param("GITHUB_TOKEN", "GITHUB_TOKEN is never available", id="token of the job"),
        pytest.param("INPUT_CONFIG", "INPUT_CONFIG is never available", id="input"),
    ],
)
def test_config_cannot_name_variable_by_default(name: str, problem: str, tmp_path: Path) -> None:
    workspace = workspace_of(tmp_path, {**CODE, "env": ["GITHUB_SHA", name]})
    step = run_step(workspace, VARIABLES)
    assert step.code == 2
    assert "file=agentci.yaml,line=1,col=" in step.log
    assert f"evaluator `ev`: {problem}" in step.log


@pytest.mark.parametrize("allowed", ["MY_SECRET\nMY_LINES", "MY_*", "*"])
def test_allowed_variable_reaches_program_and_no_report(allowed: str, tmp_path: Path) -> None:
    step = run_step(workspace_of(tmp_path, CODE), VARIABLES, env_allow=allowed, comment="always")
    assert step.code == 1
    forms = (
        *(SECRET, quote(SECRET), SECRET.encode().hex(), "MIIEvQ1234"),
        base64.b64encode(b"abc" + SECRET.encode()).decode()[4:-4],
        base64.b64encode(b"a" + SECRET.encode()).decode()[2:-4],
    )
    found = shown(step)
    assert {"results.json", "junit.xml", "report.html", "comment.md"} <= found.keys()
    assert [(name, form) for name, text in found.items() for form in forms if form in text] == []
    [result] = json.loads(found["results.json"])["results"]
    assert result["misses"][0] == "***"
    assert "***" in found["log"]


EVAL_FILE = """\
tests:
- id: one ${{ MY_SECRET }}
  input: "tell ${{ MY_SECRET }} and ${{ MY_SECRET }}"
  criteria: c
  expected_output: "${{ MY_SECRET }}"
  assertions:
  - {name: j, type: equals, value: "${{ MY_SECRET }}"}
"""


def eval_file_of(folder: Path, answer: str) -> Path:
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "a.eval.yaml").write_text(EVAL_FILE)
    output = {"id": f"one {SECRET}", "text": answer}
    (workspace / "a.outputs.jsonl").write_text(json.dumps(output))
    return workspace


def test_placeholder_is_refused_where_it_stands(tmp_path: Path) -> None:
    step = run_step(eval_file_of(tmp_path, "hi"), VARIABLES, config="a.eval.yaml")
    assert step.code == 2
    assert f"line=3,col=10,title=Invalid input::MY_SECRET is not in env-allow; {HINT}" in step.log
    assert [name for name, text in shown(step).items() if SECRET in text] == []


@pytest.mark.parametrize(("answer", "code"), [(SECRET, 0), (f"no {SECRET}", 1)])
def test_evaluator_gets_value_that_reports_hide(answer: str, code: int, tmp_path: Path) -> None:
    workspace = eval_file_of(tmp_path, answer)
    step = run_step(workspace, VARIABLES, config="a.eval.yaml", env_allow="MY_SECRET")
    assert step.code == code
    assert [name for name, text in shown(step).items() if SECRET in text] == []


def judged(folder: Path, url: str, **settings: Any) -> Path:
    entry = {"type": "builtin", "threshold": 0.5}
    spec = {"provider": "openai", "model": "m", "base_url": url, **settings}
    workspace = workspace_of(folder, entry, judge=spec)
    config = json.loads((workspace / "agentci.yaml").read_text())
    config["evaluators"][0]["name"] = "hallucinations_v1"
    (workspace / "agentci.yaml").write_text(json.dumps(config))
    return workspace


@pytest.mark.parametrize("name", ["MY_SECRET", "OPENAI_API_KEY"])
def test_key_goes_to_no_address_of_the_config(name: str, tmp_path: Path) -> None:
    with serve(script(said("x"))) as server:
        workspace = judged(tmp_path, f"{server.url}/v1", api_key_env=name)
        step = run_step(workspace, {**VARIABLES, "OPENAI_API_KEY": "sk-0123456789"})
        assert server.asked == []
    assert step.code == 2
    assert f"{name} is not in env-allow; {HINT}" in step.log


def test_azure_key_needs_permission(tmp_path: Path) -> None:
    workspace = judged(tmp_path, "https://x.openai.azure.com", provider="azure")
    step = run_step(workspace, {**VARIABLES, "AZURE_OPENAI_API_KEY": "0123456789"})
    assert step.code == 2
    assert f"AZURE_OPENAI_API_KEY is not in env-allow; {HINT}" in step.log


def test_usual_key_of_provider_needs_no_permission(tmp_path: Path) -> None:
    workspace = judged(tmp_path, "", replay="only", api_key_env="OPENAI_API_KEY")
    config = json.loads((workspace / "agentci.yaml").read_text())
    del config["judge"]["base_url"]
    (workspace / "agentci.yaml").write_text(json.dumps(config))
    assert "env-allow" not in run_step(workspace, VARIABLES).log


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 0), (["--env-allow", "MY_*"], 0), (["--env-allow", "OTHER"], 2)],
)
def test_outside_of_workflows_any_variable_is_allowed(
    options: list[str], code: int, tmp_path: Path
) -> None:
    workspace = workspace_of(tmp_path, CODE)
    assert run_agentci(["validate", *options], cwd=workspace).code == code
    ran = run_agentci(["run", *options], cwd=workspace, environ=VARIABLES)
    assert ran.code == (code or 1)
    assert SECRET not in ran.out


def test_agent_is_refused_variable(tmp_path: Path) -> None:
    target = {"command": "true", "env": ["MY_SECRET"]}
    tests = [{"id": "a", "input": "q", "assertions": [{"type": "contains", "value": "x"}]}]
    (tmp_path / "a.eval.yaml").write_text(json.dumps({"target": target, "tests": tests}))
    ran = run_agentci(["validate", "--env-allow", "X"], cwd=tmp_path)
    assert (
        ran.code,
        f"the agent of `target`: MY_SECRET is not in env-allow; {HINT}" in ran.out,
    ) == (2, True)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("A B", "env-allow must be names of variables, one per line, not 'A B'"),
        ("GITHUB_TOKEN", "env-allow cannot contain GITHUB_TOKEN"),
    ],
)
def test_invalid_permission_is_rejected(name: str, problem: str, tmp_path: Path) -> None:
    step = run_step(workspace_of(tmp_path, CODE), VARIABLES, env_allow=name)
    assert step.code == 2
    assert problem in step.log
    assert step.outputs["verdict"] == "invalid"


def test_lock_needs_no_permission(tmp_path: Path) -> None:
    workspace = workspace_of(tmp_path, CODE)
    environ = {**VARIABLES, "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(workspace)}
    assert run_agentci(["lock", "--check"], cwd=workspace, environ=environ).code == 0
