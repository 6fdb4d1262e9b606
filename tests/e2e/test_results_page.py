"""The lines of docs/results/ for each tool, run as a step of a workflow on the tool's output."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentci.result_files.row import TOOL_NAMES
from tests.e2e.steps import run_step
from tests.helpers.documents import snippets
from tests.helpers.support import ROOT
from tests.result_files.result_samples import sample_file

PAGE = ROOT / "docs/results.md"
PAGES = {path.stem: path for path in (ROOT / "docs/results").glob("*.md")}
YAML = [*snippets(PAGE, "yaml")]
# A sample for each page.
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
# The page of tables is about two formats.
TYPES = {"table": "csv"}


def test_each_tool_has_a_page_and_a_row_with_its_lines() -> None:
    assert PAGES.keys() == SAMPLES.keys()
    assert {TYPES.get(name, name) for name in PAGES} == {*TOOL_NAMES} - {"jsonl"}
    for name in PAGES:
        assert f"](results/{name}.md) | `{_read_step(name)['results']}` |" in PAGE.read_text()


def _read_step(page: str) -> dict[str, Any]:
    """The inputs of the action on the page of a tool."""
    [snippet] = snippets(PAGES[page], "yaml")
    [_, step] = yaml.safe_load(snippet)
    inputs: dict[str, Any] = step["with"]
    return inputs


@pytest.mark.parametrize("tool", SAMPLES)
def test_documented_step_gates_the_output_of_the_tool(tool: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    inputs = _read_step(tool)
    source = sample_file(SAMPLES[tool])
    written = inputs["results"].replace("**/", "").replace("samples_*.jsonl", source.name)
    target = workspace / written.replace("*", "log")
    target.parent.mkdir(parents=True)
    shutil.copy(source, target)
    ran = run_step(workspace, **inputs)
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
