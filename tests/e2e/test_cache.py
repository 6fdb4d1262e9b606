"""``agentci cache``: list, verify and clean the cache."""

import json
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
def folder(tmp_path: Path, github: FakeGitHub) -> Path:
    """A workspace whose evaluator is cached."""
    (tmp_path / "trace.json").write_text(otlp())
    configure(tmp_path)
    agentci(tmp_path, github, "run")
    return tmp_path


def test_dir_prints_cache_directory(folder: Path, github: FakeGitHub) -> None:
    assert agentci(folder, github, "cache", "dir").out == f"{cache_of(folder)}\n"
    named = agentci(folder, github, "cache", "dir", "--cache-dir", "../elsewhere")
    assert named.out == f"{folder.parent}/elsewhere\n"


def test_cache_in_checkout_is_rejected(folder: Path, github: FakeGitHub) -> None:
    for action in ("dir", "list", "verify", "clean"):
        ran = agentci(folder, github, "cache", action, "--cache-dir", "elsewhere")
        assert (ran.code, ran.out) == (2, "")
        assert "the cache elsewhere is not used: it is in the checkout" in str(ran.problems[0])


def test_list_shows_cached_evaluators(folder: Path, github: FakeGitHub) -> None:
    assert REF in agentci(folder, github, "cache", "list").out
    [entry] = json.loads(agentci(folder, github, "cache", "list", "--json").out)
    assert (entry["repository"], entry["ref"], entry["damage"]) == (REPOSITORY, REF, None)


def test_verify_reports_damaged_files(folder: Path, github: FakeGitHub) -> None:
    assert agentci(folder, github, "cache", "verify").code == 0
    [score] = cache_of(folder).rglob("score.txt")
    score.write_text("1.0")
    ran = agentci(folder, github, "cache", "verify")
    assert ran.code == 2
    assert "score.txt" in ran.out


def test_clean_empties_cache(folder: Path, github: FakeGitHub) -> None:
    assert agentci(folder, github, "cache", "clean").code == 0
    assert json.loads(agentci(folder, github, "cache", "list", "--json").out) == []
    assert scores(agentci(folder, github, "run")) == [0.75]


def test_clean_refuses_foreign_directory(folder: Path, github: FakeGitHub) -> None:
    foreign = folder / "foreign"
    foreign.mkdir()
    (foreign / "file").touch()
    ran = agentci(folder, github, "cache", "clean", "--cache-dir", "foreign")
    assert (ran.code, (foreign / "file").exists()) == (2, True)
