"""Fixtures for tests of workflow steps and of remote evaluators."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.remote import configure
from tests.e2e.steps import make_workspace
from tests.helpers.recordings import otlp
from tests.remote.sources.fake_github import FakeGitHub


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with a trace and a config of one remote evaluator."""
    (tmp_path / "trace.json").write_text(otlp())
    configure(tmp_path)
    return tmp_path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The workspace of a step whose checks all pass."""
    return make_workspace(tmp_path)
