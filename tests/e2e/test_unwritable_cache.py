"""Remote evaluators when the cache folder, or every folder, is unwritable."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.remote import REF, REPOSITORY, agentci, configure, files, scores
from tests.helpers.recordings import otlp
from tests.helpers.support import cache_of
from tests.remote.sources.fake_github import FakeGitHub


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        server.publish(REPOSITORY, files())
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with a file in place of its cache folder, and a local evaluator."""
    (tmp_path / "trace.json").write_text(otlp())
    cache_of(tmp_path).touch()
    configure(tmp_path)
    (tmp_path / "own.py").write_text("print('{\"score\": 1}')")
    with (tmp_path / "agentci.yaml").open("a") as config:
        config.write("  - {name: own, type: code, path: own.py}\n")
    return tmp_path


@pytest.fixture
def nowhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the folder for temporary files unavailable."""
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "gone"))


def test_run_works_without_cache_and_warns(folder: Path, github: FakeGitHub) -> None:
    ran = agentci(folder, github, "run")
    assert scores(ran) == [0.75, 1.0]
    message = ran.results["problems"][0]["message"]
    assert f"the cache {cache_of(folder)} is not writable" in message
    assert "--cache-dir" in message


@pytest.mark.usefixtures("nowhere")
def test_remote_checks_error_without_any_writable_folder(folder: Path, github: FakeGitHub) -> None:
    ran = agentci(folder, github, "run")
    remote, own = ran.results["results"]
    assert (ran.code, remote["status"], own["status"]) == (3, "errored", "passed")
    assert f"the cache {cache_of(folder)} is not writable" in remote["reason"]
    assert "--cache-dir" in remote["reason"]


@pytest.mark.usefixtures("nowhere")
def test_lock_requires_writable_folder(folder: Path, github: FakeGitHub) -> None:
    ran = agentci(folder, github, "lock")
    assert ran.code == 2
    assert "is not writable" in ran.problems[0].message
    assert not (folder / "agentci.lock").exists()


def test_fetch_requires_writable_cache(folder: Path, github: FakeGitHub) -> None:
    ran = agentci(folder, github, "evaluator", "fetch", REF)
    assert (ran.code, ran.out) == (2, "")
    assert "is not writable" in ran.problems[0].message
