"""Workflow steps: entrypoint.py started as GitHub's runner starts it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.recordings import eval_set, otlp
from tests.helpers.runner import read_output_file
from tests.helpers.support import ROOT

CONFIG = """\
evaluators:
- name: tool_trajectory_avg_score
  type: builtin
  threshold: 1.0
- name: response_quality
  type: code
  path: ev.py
eval_set: golden.json
traces: traces/*.json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The exit code, log, outputs and summary of a workflow step."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str
    workspace: Path


def make_workspace(folder: Path) -> Path:
    """A checked-out repository whose checks all pass."""
    workspace = folder / "workspace"
    (workspace / "evals" / "traces").mkdir(parents=True)
    (workspace / "evals" / "eval_config.yaml").write_text(CONFIG)
    (workspace / "evals" / "golden.json").write_text(eval_set())
    (workspace / "evals" / "ev.py").write_text("print('{\"score\": 0.9}')")
    (workspace / "evals" / "traces" / "1.json").write_text(otlp())
    return workspace


def run_step(workspace: Path, /, event: Mapping[str, str] | None = None, **inputs: str) -> Step:
    """Run the step with ``inputs``; underscores in input names become hyphens.

    Args:
        event: environment variables that describe the event.
    """
    commands = workspace.parent / "commands"
    commands.mkdir(exist_ok=True)
    (commands / "output").write_text("")
    (commands / "summary").write_text("")
    process = subprocess.run(
        [sys.executable, ROOT / "entrypoint.py"],
        cwd=workspace,
        env={
            **os.environ,
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_OUTPUT": str(commands / "output"),
            "GITHUB_STEP_SUMMARY": str(commands / "summary"),
            **(event or {}),
            **{f"INPUT_{name.upper().replace('_', '-')}": text for name, text in inputs.items()},
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return Step(
        code=process.returncode,
        log=process.stdout + process.stderr,
        outputs=read_output_file((commands / "output").read_text()),
        summary=(commands / "summary").read_text(),
        workspace=workspace,
    )
