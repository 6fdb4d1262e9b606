"""``docs/extending.md`` names the extension interfaces, which docstrings describe."""

import ast
import re
from pathlib import Path

import pytest

from agentci import extend
from agentci.evaluators.registry import ENTRY_POINT_GROUP as TYPES
from agentci.execution.registry import EXECUTOR_GROUP as EXECUTORS
from agentci.execution.runtimes import RUNTIME_GROUP as RUNTIMES
from agentci.remote.sources.registry import GROUP as SOURCES
from tests.helpers.support import ROOT

PAGE = (ROOT / "docs/extending.md").read_text()
GROUPS = (RUNTIMES, EXECUTORS, SOURCES, TYPES)
EXAMPLES = sorted(ROOT.glob("examples/extensions/*/pyproject.toml"))
INTERFACES = (extend.Runtime, extend.Executor, extend.Source, extend.Evaluator)


@pytest.mark.parametrize("interface", INTERFACES, ids=lambda each: each.__name__)
def test_interface_is_named_and_its_docstrings_describe_each_method(interface: type) -> None:
    assert f"`{interface.__name__}`" in PAGE
    assert interface.__doc__
    methods = {
        name: method
        for name, method in vars(interface).items()
        if not name.startswith("_") and (callable(method) or isinstance(method, property))
    }
    assert methods
    assert [name for name, method in methods.items() if not method.__doc__] == []


@pytest.mark.parametrize("group", GROUPS)
def test_every_entry_point_group_has_an_example(group: str) -> None:
    assert f"| `{group}` |" in PAGE
    assert [each for each in EXAMPLES if f'"{group}"' in each.read_text()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_is_linked(example: Path) -> None:
    assert f"(../examples/extensions/{example.parent.name}/" in PAGE
    page = example.with_name("README.md")
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_examples_import_only_the_public_interface() -> None:
    texts = [PAGE, *(path.read_text() for path in ROOT.glob("examples/extensions/*/*.py"))]
    modules = {name for text in texts for name in re.findall(r"from (agentci\S*) import", text)}
    assert modules == {"agentci.extend"}


def test_public_interface_matches_all() -> None:
    tree = ast.parse(Path(extend.__file__).read_text())
    imported = {
        alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported == set(extend.__all__)
    assert {"Runtime", "Executor", "Source", "EvaluatorType", "LocalExecutor"} <= imported
