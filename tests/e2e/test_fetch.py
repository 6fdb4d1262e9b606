"""``agentci evaluator fetch``: download evaluators for offline runs."""

from pathlib import Path

from tests.e2e.remote import REF, REPOSITORY, agentci, configure, files, scores
from tests.remote.sources.fake_github import FakeGitHub


def test_offline_run_uses_fetched_evaluator(folder: Path, github: FakeGitHub) -> None:
    commit = github.publish(REPOSITORY, files())
    ran = agentci(folder, github, "evaluator", "fetch", REF)
    assert (ran.code, ran.problems) == (0, ())
    assert ran.out.splitlines()[:3] == [REF, f"  commit: {commit}", f"  pin: rev: {commit}"]
    configure(folder, f"rev: {commit}")
    assert scores(agentci(folder, github, "run", "--offline")) == [0.75]


def test_fetch_prints_path_of_evaluator(folder: Path, github: FakeGitHub) -> None:
    commit = github.publish("a/b", files())
    ran = agentci(folder, github, "evaluator", "fetch", REF, "--repo", "a/b", "--rev", commit)
    path = ran.out.splitlines()[-1].removeprefix("  path: ")
    assert Path(path).read_text().startswith("import json")
    assert "pin:" not in ran.out


def test_fetch_continues_after_failed_evaluator(folder: Path, github: FakeGitHub) -> None:
    github.publish(REPOSITORY, files())
    ran = agentci(folder, github, "evaluator", "fetch", REF, "evaluators/x/x.py", "../y.py")
    assert ran.code == 2
    assert REF in ran.out
    assert len(ran.problems) == 2
