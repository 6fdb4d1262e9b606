"""The list and the config of docs/results.md, run as a step of a workflow on the tools' output."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from agentci.result_files.row import TOOL_NAMES
from tests.e2e.steps import run_step
from tests.helpers.documents import snippets
from tests.helpers.support import ROOT
from tests.result_files.result_samples import sample_file

PAGE = ROOT / "docs/results.md"
YAML = [*snippets(PAGE, "yaml")]
# A sample for each tool.
SAMPLES = {
    "promptfoo": "promptfoo/base",
    "deepeval": "deepeval/base",
    "inspect": "inspect/base",
    "pydantic-evals": "pydantic-evals/base",
    "adk": "adk/base",
    "vitest-evals": "vitest-evals/base",
    "evalite": "evalite/base",
    "agentv": "agentv/base",
    "agentevals": "agentevals/base",
    "lm-eval": "lm-eval/base",
    "otel": "otel-evaluation/base",
    "junit": "junit/pytest-base",
    "ctrf": "ctrf/pytest-base",
    "table": "table/base",
}
# The line of tables is about two formats.
TYPES = {"table": "csv"}


# Tools whose headings are not their names.
HEADINGS = {
    "google-adk": "adk",
    "lm-evaluation-harness": "lm-eval",
    "opentelemetry": "otel",
    "tables-of-your-own": "table",
}


def read_lines() -> Mapping[str, str]:
    """The `results` of each tool, from the list."""
    lines = re.findall(
        r"^- \[[^]]+\]\(#([\w-]+)\)[^:]*: `([^`]+)`, ", PAGE.read_text(), re.MULTILINE
    )
    return {HEADINGS.get(anchor, anchor): results for anchor, results in lines}


def test_each_tool_has_a_line() -> None:
    assert read_lines().keys() == SAMPLES.keys()
    assert {TYPES.get(name, name) for name in SAMPLES} == {*TOOL_NAMES} - {"jsonl"}


@pytest.mark.parametrize("tool", SAMPLES)
def test_documented_step_gates_the_output_of_the_tool(tool: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    results_input = read_lines()[tool]
    source = sample_file(SAMPLES[tool])
    written = results_input.replace("**/", "").replace("samples_*.jsonl", source.name)
    target = workspace / written.replace("*", "log")
    target.parent.mkdir(parents=True)
    shutil.copy(source, target)
    ran = run_step(workspace, results=results_input)
    assert ran.outputs["verdict"] in {"passed", "failed"}
    assert int(ran.outputs["checks"]) > 0
    results = (workspace / "agentci-results" / "results.json").read_text()
    assert f'"type":"{TYPES.get(tool, tool)}"' in results.replace('": "', '":"')


def test_documented_config_is_valid(tmp_path: Path) -> None:
    config = yaml.safe_load(YAML[1])
    workspace = tmp_path / "workspace"
    for entry in config["results"]:
        (workspace / entry["path"]).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(sample_file("promptfoo/base"), workspace / "out/promptfoo.json")
    (workspace / "out/evalite.json").write_text(
        '{"id": "a", "metric": "Factuality", "score": 1}\n'
        '{"id": "a", "metric": "Verbosity", "score": 0.1}\n'
    )
    config["results"][0]["expect"]["cases"] = 4
    (workspace / "agentci.yaml").write_text(yaml.safe_dump(config))
    ran = run_step(workspace, config="agentci.yaml")
    assert (ran.code, ran.outputs["checks"], ran.outputs["failed-count"]) == (1, "14", "6")
