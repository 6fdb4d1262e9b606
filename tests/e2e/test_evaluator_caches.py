"""Evaluators read the folders with models that the workflow opens and their entries name."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.steps import run_step
from tests.helpers.recordings import otlp
from tests.helpers.support import run_agentci

# Tries to read the model and what a link leads to, and to change the folder.
PROGRAM = """\
import json, os, sys

def attempt(action):
    try:
        return action()
    except OSError as error:
        return type(error).__name__

folder = json.load(sys.stdin)["config"]["folder"]
print(json.dumps({"score": 1, "details": {
    "variable": os.environ.get("MODELS"),
    "model": attempt(lambda: open(f"{folder}/model.bin").read()),
    "linked": attempt(lambda: open(f"{folder}/snapshot/model.bin").read()),
    "token": attempt(lambda: open(f"{folder}/link/token").read()),
    "written": attempt(lambda: open(f"{folder}/new", "w").write("x")),
    "changed": attempt(lambda: open(f"{folder}/model.bin", "a").write("x")),
    "removed": attempt(lambda: os.remove(f"{folder}/model.bin")),
}}))
"""
REFUSED = "PermissionError"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace beside a folder with a model, links as in a hub's cache, and one to a token."""
    models, home = tmp_path / "models", tmp_path / "home"
    for folder in (models / "snapshot", home, tmp_path / "workspace"):
        folder.mkdir(parents=True)
    (models / "model.bin").write_text("weights")
    (models / "snapshot" / "model.bin").symlink_to("../model.bin")
    (home / "token").write_text("s3cr3t-token")
    (models / "link").symlink_to(home)
    (tmp_path / "workspace" / "ev.py").write_text(PROGRAM)
    (tmp_path / "workspace" / "trace.json").write_text(otlp())
    return tmp_path / "workspace"


def configure(workspace: Path, **fields: Any) -> None:
    config = {"folder": str(workspace.parent / "models")}
    entry = {"name": "ev", "type": "code", "path": "ev.py", "config": config, **fields}
    document = {"traces": "trace.json", "evaluators": [entry]}
    (workspace / "agentci.yaml").write_text(json.dumps(document))


def run_and_read_details(workspace: Path, *options: str) -> Any:
    ran = run_agentci(["run", *options], cwd=workspace)
    assert ran.code == 0, ran.out
    [result] = json.loads((workspace / "agentci-results" / "results.json").read_text())["results"]
    return result["details"]


@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_program_reads_named_folder_and_cannot_change_it(workspace: Path, isolation: str) -> None:
    configure(workspace, cache_dirs=["MODELS"], isolation=isolation)
    folder = workspace.parent / "models"
    details = run_and_read_details(workspace, "--evaluator-cache", f"MODELS={folder}")
    assert details == {
        "variable": str(folder),
        "model": "weights",
        "linked": "weights",
        "token": REFUSED,
        "written": REFUSED,
        "changed": REFUSED,
        "removed": REFUSED,
    }
    assert (folder / "model.bin").read_text() == "weights"


def test_code_judge_reads_named_folder(workspace: Path) -> None:
    folder = workspace.parent / "models"
    judge = {"type": "code_judge", "name": "ev", "script": ["python3", "ev.py"]}
    judge |= {"folder": str(folder), "cache_dirs": ["MODELS"]}
    case = {"id": "a", "criteria": "c", "input": "q"}
    entries = {"evaluators": [judge]}
    document = {"cases": [case], "execution": entries, "outputs": "out.jsonl"}
    (workspace / "a.eval.yaml").write_text(json.dumps(document))
    (workspace / "out.jsonl").write_text(json.dumps({"id": "a", "text": "x"}))
    details = run_and_read_details(workspace, "--evaluator-cache", f"MODELS={folder}")
    assert (details["variable"], details["model"]) == (str(folder), "weights")
    assert (details["written"], details["token"]) == (REFUSED, REFUSED)
    refused = run_agentci(["validate"], cwd=workspace)
    assert "evaluator `ev`: MODELS is not in evaluator-cache" in refused.out


def test_single_evaluator_reads_opened_folder(workspace: Path) -> None:
    folder = workspace.parent / "models"
    config = json.dumps({"folder": str(folder)})
    command = ["evaluator", "run", "ev.py", "--trace", "trace.json", "--config", config]
    ran = run_agentci([*command, "--evaluator-cache", f"MODELS={folder}"], cwd=workspace)
    assert (ran.code, '"model": "weights"' in ran.out) == (0, True), ran.out
    closed = run_agentci(command, cwd=workspace)
    assert '"model": "PermissionError"' in closed.out


def test_program_cannot_read_folder_that_its_entry_does_not_name(workspace: Path) -> None:
    configure(workspace)
    folder = workspace.parent / "models"
    details = run_and_read_details(workspace, "--evaluator-cache", f"MODELS={folder}")
    assert (details["variable"], details["model"], details["linked"]) == (None, REFUSED, REFUSED)


@pytest.mark.parametrize("command", ["run", "validate", "plan"])
@pytest.mark.parametrize("options", [[], ["--evaluator-cache", "OTHER={models}"]])
def test_folder_that_workflow_does_not_open_is_rejected(
    workspace: Path, options: list[str], command: str
) -> None:
    configure(workspace, cache_dirs=["MODELS"])
    given = [each.format(models=workspace.parent / "models") for each in options]
    ran = run_agentci([command, *given], cwd=workspace)
    lines = [*ran.out.splitlines(), *map(str, ran.problems)]
    message = "evaluator `ev`: MODELS is not in evaluator-cache"
    [line] = [each for each in lines if "MODELS" in each]
    assert (ran.code, line.startswith("agentci.yaml:1:"), message in line) == (2, True, True)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("MODELS", "evaluator-cache must be NAME=DIR, one per line, not 'MODELS'"),
        ("M*={top}/models", "evaluator-cache must be NAME=DIR, one per line, not 'M*="),
        ("GITHUB_TOKEN={top}/models", "evaluator-cache: GITHUB_TOKEN cannot be set"),
        ("PYTHONPATH={top}/models", "PYTHONPATH has another meaning for every program"),
        ("MODELS=models", "evaluator-cache: models is not an absolute path"),
        ("MODELS={top}/missing", "{top}/missing is not a folder"),
        ("MODELS={top}/models/model.bin", "{top}/models/model.bin is not a folder"),
        ("MODELS={top}/workspace", "{top}/workspace is in the checkout"),
        ("MODELS={top}/workspace/out", "{top}/workspace/out is in the checkout"),
        ("MODELS={top}/in", "{top}/in is in the checkout"),
        ("MODELS={top}", "{top} holds more than models: {top}/workspace is in it"),
        ("MODELS={top}/up", "{top}/up holds more than models: {top}/workspace is in it"),
        ("MODELS=/", "/ holds more than models"),
        ("MODELS=/tmp", "/tmp holds more than models"),
    ],
)
def test_folder_that_cannot_be_opened_is_rejected(
    workspace: Path, value: str, problem: str
) -> None:
    top = workspace.parent
    (workspace / "out").symlink_to(top / "models")
    (top / "in").symlink_to(workspace)
    (top / "up").symlink_to(top)
    configure(workspace, cache_dirs=["MODELS"])
    option = ["--evaluator-cache", value.format(top=top)]
    ran = run_agentci(["validate", *option], cwd=workspace)
    assert ran.code == 2
    [found] = ran.problems
    assert problem.format(top=top) in found.message


@pytest.mark.slow
def test_step_of_workflow_cannot_open_home(workspace: Path) -> None:
    configure(workspace, cache_dirs=["HF_HOME"])
    home = workspace.parent / "home"
    cache = f"HF_HOME={home}"
    step = run_step(workspace, {"HOME": str(home)}, evaluator_cache=cache)
    assert step.code == 2
    assert f"evaluator-cache: {home} holds more than models: {home} is in it" in step.log
    step = run_step(workspace, {"HOME": str(home)}, evaluator_cache=f"HF_HOME={home}/hub\n")
    assert f"evaluator-cache: {home}/hub is not a folder; create and fill it" in step.log


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"cache": True}, "`cache_dirs` excludes `cache: true`"),
        ({"executor": "docker", "image": "x"}, "`cache_dirs` has no effect with `executor"),
        ({"cache_dirs": ["/home"]}, "the name of an environment variable"),
    ],
)
def test_invalid_entry_is_rejected(workspace: Path, fields: dict[str, Any], problem: str) -> None:
    configure(workspace, **{"cache_dirs": ["MODELS"], **fields})
    ran = run_agentci(
        ["validate", "--evaluator-cache", f"MODELS={workspace.parent / 'models'}"], cwd=workspace
    )
    assert ran.code == 2
    assert problem in ran.out
