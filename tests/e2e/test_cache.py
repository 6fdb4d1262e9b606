"""``agentci cache``: what runs leave there can be seen, checked and thrown away."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.remote import REF, REPOSITORY, agentci, configure, files, scores
from tests.helpers.recordings import otlp
from tests.remote.sources.fake_github import FakeGitHub


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        server.publish(REPOSITORY, files())
        yield server


@pytest.fixture
def folder(tmp_path: Path, github: FakeGitHub) -> Path:
    """A workspace whose evaluator is in the cache."""
    (tmp_path / "trace.json").write_text(otlp())
    configure(tmp_path)
    agentci(tmp_path, github, "run")
    return tmp_path


def test_is_where_it_says(folder: Path, github: FakeGitHub) -> None:
    assert agentci(folder, github, "cache", "dir").out == f"{folder}/.agentci/cache\n"
    named = agentci(folder, github, "cache", "dir", "--cache-dir", "elsewhere")
    assert named.out == f"{folder}/elsewhere\n"


def test_lists_what_it_holds(folder: Path, github: FakeGitHub) -> None:
    assert REF in agentci(folder, github, "cache", "list").out
    [entry] = json.loads(agentci(folder, github, "cache", "list", "--json").out)
    assert (entry["repository"], entry["ref"], entry["damage"]) == (REPOSITORY, REF, None)


def test_finds_what_is_damaged(folder: Path, github: FakeGitHub) -> None:
    assert agentci(folder, github, "cache", "verify").code == 0
    [score] = (folder / ".agentci" / "cache").rglob("score.txt")
    score.write_text("1.0")
    ran = agentci(folder, github, "cache", "verify")
    assert ran.code == 2
    assert "score.txt" in ran.out


def test_can_be_emptied(folder: Path, github: FakeGitHub) -> None:
    assert agentci(folder, github, "cache", "clean").code == 0
    assert json.loads(agentci(folder, github, "cache", "list", "--json").out) == []
    assert scores(agentci(folder, github, "run")) == [0.75]


def test_of_somebody_else_is_left_alone(folder: Path, github: FakeGitHub) -> None:
    theirs = folder / "theirs"
    theirs.mkdir()
    (theirs / "file").touch()
    ran = agentci(folder, github, "cache", "clean", "--cache-dir", "theirs")
    assert (ran.code, (theirs / "file").exists()) == (2, True)
