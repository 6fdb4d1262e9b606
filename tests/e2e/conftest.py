"""What most tests of evaluators that are kept elsewhere start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.remote import configure
from tests.recordings import otlp
from tests.sources.fake_github import FakeGitHub


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with a recording, and a config that names one remote evaluator."""
    (tmp_path / "trace.json").write_text(otlp())
    configure(tmp_path)
    return tmp_path
