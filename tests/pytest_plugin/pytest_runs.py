"""Runs tests with the plugin in a separate pytest process."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.support import PATH, ROOT

IMPORTS = """\
from typing import Any
from agentci.pytest import (
    evals,
    EvaluatorResults,
    CustomCodeEvaluatorConfig,
    CustomPromptEvaluatorConfig
)
"""
JUDGE = """\
import json, sys
asked = sys.stdin.read()
print(json.dumps({"result": 4 if "Fine." in asked else 2, "reason": "by its words"}))
"""
ROWS = (
    {"id": "good", "query": "How?", "response": "Fine."},
    {"id": "bad", "query": "How?", "response": "Rather badly."},
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Exit code, output and reports of a pytest run."""

    code: int
    out: str
    folder: Path

    @property
    def report(self) -> Any:
        return json.loads((self.folder / "agentci-results" / "results.json").read_text())

    @property
    def statuses(self) -> dict[str, str]:
        return {each["case"]: each["status"] for each in self.report["results"]}


def run_tests(
    folder: Path,
    tests: str,
    *options: str,
    rows: tuple[Mapping[str, Any], ...] = ROWS,
    plugin: str = "agentci.pytest",
    path: str = "",
    imports: str = IMPORTS,
) -> Outcome:
    """Run a file of tests, of which each row of a dataset may be one, with a judge program."""
    (folder / "test_agent.py").write_text(f"{imports}import sys\n{tests}")
    (folder / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "judge.py").write_text(JUDGE)
    return run_pytest(folder, *options, plugin=plugin, path=path)


def run_pytest(
    folder: Path, *options: str, plugin: str = "agentci.pytest", path: str = ""
) -> Outcome:
    """Run the tests in a folder; ``path`` is searched for modules first."""
    loaded = ["-p", plugin] if plugin else []
    loaded += ["-p", "xdist"] if "-n" in options else []
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *loaded,
            "-p",
            "no:cacheprovider",
            *options,
        ],
        cwd=folder,
        env={
            "PATH": PATH,
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder.with_name(f"{folder.name}.cache")),
            "PYTHONPATH": f"{path}{os.pathsep}{ROOT}",
            # The plugins of these tests themselves take seconds to load.
            **({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if plugin else {}),
            **{k: v for k, v in os.environ.items() if k.startswith("COVERAGE_")},
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(code=ran.returncode, out=ran.stdout + ran.stderr, folder=folder)
