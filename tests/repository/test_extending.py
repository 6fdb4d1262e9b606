"""``docs/extending.md`` matches the extension interfaces in the code."""

import ast
import re
from collections.abc import Iterator, Mapping
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
MODULES = {
    "Runtime": "execution/runtimes.py",
    "Executor": "execution/executor_api.py",
    "Source": "remote/sources/source.py",
    "Evaluator": "evaluators/evaluator.py",
    "EvaluatorType": "evaluators/evaluator_type.py",
}


def _classes(text: str) -> Iterator[ast.ClassDef]:
    yield from (each for each in ast.parse(text).body if isinstance(each, ast.ClassDef))


def _members(found: ast.ClassDef) -> Mapping[str, str]:
    """The declarations of a class by name, without docstrings."""
    members: dict[str, str] = {}
    for each in found.body:
        if isinstance(each, ast.FunctionDef):
            members[each.name] = f"{ast.unparse(each.args)} -> {ast.unparse(each.returns or each)}"
        elif isinstance(each, ast.AnnAssign):
            members[ast.unparse(each.target)] = ast.unparse(each.annotation)
    return members


DOCUMENTED = {
    found.name: _members(found)
    for snippet in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for found in _classes(snippet)
}


@pytest.mark.parametrize("name", MODULES)
def test_documented_interface_matches_code(name: str) -> None:
    text = Path(ROOT / "agentci" / MODULES[name]).read_text()
    (real,) = (_members(each) for each in _classes(text) if each.name == name)
    assert DOCUMENTED[name] == real


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
