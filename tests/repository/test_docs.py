"""The documents say what the code does: tables, snippets, links."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from agentci.config.agentv.schema import make_eval_file_schema
from agentci.config.schema import make_config_schema
from agentci.evaluators.agentv.registry import AGENTV_TYPES
from agentci.evaluators.agentv.registry import UNSUPPORTED_TYPES as AGENTV_NOT_YET
from agentci.evaluators.metrics import HOSTED_METRICS, JUDGED_METRIC_PURPOSES, METRICS
from agentci.evaluators.metrics import UNSUPPORTED_METRICS as METRICS_NOT_YET
from agentci.evaluators.registry import EVAL_FILE_TYPES, EVALUATOR_TYPES
from agentci.execution.registry import EXECUTORS
from agentci.execution.runtimes import RUNTIMES
from agentci.reports.registry import REPORT_WRITERS
from agentci.reports.results_schema import make_results_schema
from scripts.docs import generated
from tests.helpers.documents import DOCUMENTS, name_of, snippets
from tests.helpers.support import ROOT, run_agentci

README = (ROOT / "README.md").read_text()
AGENTEVALS = (ROOT / "docs/agentevals.md").read_text()
MAX_WORKFLOW_LINES = 16


def test_generated_parts_are_fresh() -> None:
    stale = [path.name for path, text in generated().items() if path.read_text() != text]
    assert stale == [], "run `make docs`"


def test_contributing_names_only_files_and_symbols_that_exist() -> None:
    text = (
        (ROOT / "CONTRIBUTING.md").read_text().partition("## Add ...")[2].partition("## House")[0]
    )
    sources = [*ROOT.glob("agentci/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("scripts/*")]
    paths = [path.relative_to(ROOT).as_posix() for path in sources]
    code = [path for path in sources if path.suffix == ".py"]
    words = {word for path in code for word in re.findall(r"\w+", path.read_text())}
    names = re.findall(r"`([\w/]+\.py)`", text)
    symbols = re.findall(r"`(_?[a-zA-Z]+_\w+|_?[A-Z][a-z]+[A-Z]\w+)(?:\([^`]*\))?`", text)
    assert len(names) > 30
    assert len(symbols) > 30
    missing = [
        name
        for name in names
        if not re.search(r"\b[A-Z]{3,}\b", name)
        and not any(f"/{path}".endswith(f"/{name}") for path in paths)
    ]
    missing += [symbol for symbol in symbols if symbol not in words]
    assert missing == []


def test_the_exit_codes_of_the_command_line_are_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        run_agentci(["--help"], cwd=ROOT)
    listed = capsys.readouterr().out.partition("Exit codes:")[2]
    page = (ROOT / "docs/action.md").read_text()
    section = page.partition("## Exit codes")[2].partition("\n## ")[0]
    assert set(re.findall(r"\d+", listed)) == set(re.findall(r"\b\d+\b", section))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        pytest.param(
            [f"`type: {name}`" for name in (*EVALUATOR_TYPES, *EVAL_FILE_TYPES)],
            AGENTEVALS,
            id="types of evaluators",
        ),
        pytest.param(
            [
                f"`{name}`"
                for name in (*METRICS, *JUDGED_METRIC_PURPOSES, *HOSTED_METRICS, *METRICS_NOT_YET)
            ],
            AGENTEVALS,
            id="metrics",
        ),
        pytest.param(
            [f"`{name}`" for name in (*AGENTV_TYPES, *AGENTV_NOT_YET) if name != "llm_grader"],
            (ROOT / "docs/agentv.md").read_text(),
            id="types of evaluators of AgentV",
        ),
        pytest.param(
            [f"`{each}`" for runtime in RUNTIMES.values() for each in runtime.EXTENSIONS],
            AGENTEVALS,
            id="files that evaluators can be",
        ),
        pytest.param(
            [f"`{name}`" for name in EXECUTORS],
            (ROOT / "docs/configuration.md").read_text(),
            id="executors",
        ),
        pytest.param(
            [f"## `{writer.file_name}`" for writer in REPORT_WRITERS.values()],
            (ROOT / "docs/reports.md").read_text(),
            id="reports",
        ),
    ],
)
def test_the_documents_name_all(names: list[str], text: str) -> None:
    assert names
    assert [name for name in names if name not in text] == []


@cache
def make_validators() -> tuple[jsonschema.Draft202012Validator, jsonschema.Draft202012Validator]:
    """Of configs and of eval files."""
    return (
        jsonschema.Draft202012Validator(make_config_schema()),
        jsonschema.Draft202012Validator(make_eval_file_schema()),
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
class TestEveryDocument:
    def test_links_to_what_is_there(self, document: Path) -> None:
        links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", document.read_text())
        assert [link for link in links if not (document.parent / link).exists()] == []

    def test_links_to_headings_that_are_there(self, document: Path) -> None:
        text = document.read_text()
        dead = [
            anchor
            for link, anchor in re.findall(r"\]\(([^):]*)#([^)]+)\)", text)
            if anchor not in _anchors((document.parent / link) if link else document)
        ]
        assert dead == []

    def test_shows_json_that_can_be_read(self, document: Path) -> None:
        for snippet in snippets(document, "json"):
            json.loads(snippet)

    def test_gives_the_action_only_inputs_that_it_has(self, document: Path) -> None:
        inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
        given = {
            name
            for snippet in snippets(document, "yaml")
            for step in _uses_of_the_action(yaml.safe_load(snippet))
            for name in step.get("with", {})
        }
        assert given - set(inputs) == set()

    def test_shows_configs_that_are_valid(self, document: Path) -> None:
        validator, of_eval_files = make_validators()
        for snippet in snippets(document, "yaml"):
            config = yaml.safe_load(snippet)
            if isinstance(config, dict) and "evaluators" in config:
                assert [error.message for error in validator.iter_errors(config)] == []
            if isinstance(config, dict) and "cases" in config:
                assert [error.message for error in of_eval_files.iter_errors(config)] == []


def test_workflows_of_examples_give_the_action_only_inputs_that_it_has() -> None:
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    workflows = [*ROOT.glob("examples/workflows/*.yml")]
    given = {
        name
        for workflow in workflows
        for step in _uses_of_the_action(yaml.safe_load(workflow.read_text()))
        for name in step.get("with", {})
    }
    assert workflows
    assert given
    assert given - set(inputs) == set()


def test_the_results_in_the_documents_are_of_the_schema() -> None:
    (snippet,) = snippets(ROOT / "docs/reports.md", "json")
    jsonschema.validate(json.loads(snippet), make_results_schema())


def test_the_workflow_of_the_readme_is_short() -> None:
    first = next(snippets(ROOT / "README.md", "yaml"))
    assert len(first.splitlines()) <= MAX_WORKFLOW_LINES


def _uses_of_the_action(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict) and str(part.get("uses")).startswith("org/agent-eval-action"):
        yield part
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for each in inner:
        yield from _uses_of_the_action(each)


def _anchors(document: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
