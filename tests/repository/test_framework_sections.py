"""What docs/frameworks.md says is true of the recordings that its sections name."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentci.cli.project import FRAMEWORKS
from scripts.framework_sections import SECTIONS, FrameworkSection, make_anchor, render_section
from tests.helpers.documents import snippets
from tests.helpers.support import ROOT, run_agentci

PAGE = ROOT / "docs/frameworks.md"
RECORDINGS = ROOT / "tests/recordings/frameworks"
# An agent that fails does not answer.
FAILING = "error.jsonl.gz"
# The framework's own spans, and others with the same purpose.
OTHER_SCOPES = frozenset({"com.anthropic.sdk.python"})


def list_recordings() -> Iterator[Any]:
    for section in SECTIONS:
        for name in (*section.complete, *(recording for _, recording in section.also)):
            yield pytest.param(section, RECORDINGS / name, id=f"{section.name}-{name}")


def list_incomplete() -> Iterator[Any]:
    for section in SECTIONS:
        for name in section.without_content:
            yield pytest.param(section, RECORDINGS / name, id=f"{section.name}-{name}")


def show(path: Path) -> Any:
    ran = run_agentci(["show", "--json", "--group-by", "conversation", path.name], cwd=path.parent)
    assert ran.code == 0
    return json.loads(ran.out)


@pytest.mark.parametrize(("section", "folder"), tuple(list_recordings()))
def test_named_recording_is_complete(section: FrameworkSection, folder: Path) -> None:
    paths = [path for path in sorted(folder.glob("*.jsonl.gz")) if path.name != FAILING]
    assert paths
    calls = 0
    for path in paths:
        shown = show(path)
        assert shown["cases"]
        for case in shown["cases"]:
            assert (case["missing"], case["switch"], case["not_captured"]) == ([], "", "")
            for turn in case["turns"]:
                assert turn["user"]
                assert turn["answer"]
                calls += len(turn["tool_calls"])
                assert all(call["args"] is not None for call in turn["tool_calls"])
                assert all(call["result"] is not None for call in turn["tool_calls"])
        versions = {
            each["version"]
            for each in shown["instrumentations"]
            if each["conventions"] and each["scope"] not in OTHER_SCOPES
        } - {""}
        assert all(version in render_section(section) for version in versions)
    assert calls


@pytest.mark.parametrize(("section", "folder"), tuple(list_incomplete()))
def test_recording_without_switches_lacks_content_and_names_them(
    section: FrameworkSection, folder: Path
) -> None:
    variables = re.findall(r"`([A-Z_]+)=", section.variables)
    for path in sorted(folder.glob("*.jsonl.gz")):
        for case in show(path)["cases"]:
            assert case["not_captured"]
            assert all(f"{name}=" in case["not_captured"] for name in variables)


@pytest.mark.parametrize("code", tuple(snippets(PAGE, "python")))
def test_code_is_valid_and_uses_what_it_imports(code: str) -> None:
    names = {
        alias.name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert all(re.search(rf"\b{name}\b", code.replace(f"import {name}", "")) for name in names)


def test_init_names_sections_that_exist() -> None:
    assert {*FRAMEWORKS.values()} <= {make_anchor(section) for section in SECTIONS}


def test_conversations_are_joined_as_documented() -> None:
    for section in SECTIONS:
        for name in section.complete:
            path = RECORDINGS / name / "twoturn.jsonl.gz"
            if not path.exists():
                continue
            cases = show(path)["cases"]
            joined = not section.conversation.startswith("not joined")
            assert (len(cases) == 1) == joined, name
            by_history = section.conversation.startswith("the messages")
            assert (cases[0]["conversation"] is None) == (by_history or not joined), name


def test_every_documented_framework_has_a_recording() -> None:
    named = {
        name
        for section in SECTIONS
        for name in (
            *section.complete,
            *section.without_content,
            *(other for _, other in section.also),
        )
    }
    assert named <= {path.name for path in RECORDINGS.iterdir()}
    assert all(section.complete for section in SECTIONS)


def test_readme_has_the_number_of_frameworks() -> None:
    assert f"[{len(SECTIONS)} frameworks](docs/frameworks.md)" in (ROOT / "README.md").read_text()
