"""``agentci.lock`` pins remote evaluators regardless of branches and caches."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.e2e.remote import PROGRAM, REF, REPOSITORY, agentci, configure, files, scores
from tests.helpers.support import ROOT, cache_of
from tests.remote.sources.fake_github import EXECUTABLE, FakeGitHub, Kept


def locked(folder: Path) -> Any:
    """Return the content of the lock after validation against its schema."""
    content = yaml.safe_load((folder / "agentci.lock").read_text())
    schema = json.loads((ROOT / "schemas" / "lock.schema.json").read_text())
    Draft202012Validator(schema).validate(content)
    return content


class TestLockCommand:
    def test_lock_contains_commit_and_digest_of_each_file(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        commit = github.publish(REPOSITORY, files())
        ran = agentci(folder, github, "lock")
        assert (ran.code, ran.problems) == (0, ())
        assert locked(folder)["evaluators"] == [
            {
                "source": "github",
                "repository": REPOSITORY,
                "revision": "main",
                "ref": REF,
                "commit": commit,
                "files": {
                    "evaluator.yaml": hashlib.sha256(b"name: fixed\n").hexdigest(),
                    "fixed.py": hashlib.sha256(PROGRAM.encode()).hexdigest(),
                    "score.txt": hashlib.sha256(b"0.75").hexdigest(),
                },
            }
        ]
        assert f"added {REF} at {commit[:12]}" in ran.out

    def test_lock_text_is_deterministic(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "lock")
        before = (folder / "agentci.lock").read_bytes()
        shutil.rmtree(cache_of(folder))
        agentci(folder, github, "lock")
        assert (folder / "agentci.lock").read_bytes() == before

    def test_locked_commit_changes_only_with_upgrade(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        first = github.publish(REPOSITORY, files("0.5"))
        agentci(folder, github, "lock")
        second = github.publish(REPOSITORY, files("1.0"))
        agentci(folder, github, "lock")
        assert locked(folder)["evaluators"][0]["commit"] == first
        ran = agentci(folder, github, "lock", "--upgrade")
        assert f"updated {REF} from {first[:12]} to {second[:12]}" in ran.out
        assert scores(agentci(folder, github, "run", "--locked")) == [1.0]

    def test_upgrade_of_one_evaluator_keeps_others(self, folder: Path, github: FakeGitHub) -> None:
        with (folder / "agentci.yaml").open("a") as config:
            config.write("  - {name: other, type: remote, ref: evaluators/other/other.py}\n")
        first = github.publish(REPOSITORY, files("0.5"))
        agentci(folder, github, "lock")
        second = github.publish(REPOSITORY, files("1.0"))
        agentci(folder, github, "lock", "--upgrade", "fixed")
        assert [each["commit"] for each in locked(folder)["evaluators"]] == [second, first]

    def test_upgrade_of_unknown_evaluator_is_rejected(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        ran = agentci(folder, github, "lock", "--upgrade", "fixd")
        [problem] = ran.problems
        assert (ran.code, problem.hint) == (2, "did you mean 'fixed'?")
        assert not (folder / "agentci.lock").exists()

    def test_config_path_after_upgrade_is_accepted(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        assert agentci(folder, github, "lock", "--upgrade", "agentci.yaml").code == 0

    def test_locking_some_configs_keeps_entries_of_others(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        (folder / "more.eval.yaml").write_text(
            "evaluators: [{name: other, type: remote, ref: evaluators/other/other.py}]\n"
        )
        agentci(folder, github, "lock", "agentci.yaml")
        assert len(locked(folder)["evaluators"]) == 1
        agentci(folder, github, "lock", "more.eval.yaml")
        assert len(locked(folder)["evaluators"]) == 2
        (folder / "more.eval.yaml").unlink()
        ran = agentci(folder, github, "lock")
        assert "removed evaluators/other/other.py" in ran.out
        assert len(locked(folder)["evaluators"]) == 1

    def test_lock_without_remote_evaluators_is_empty(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        (folder / "agentci.yaml").write_text(
            "evaluators: [{name: tool_trajectory_avg_score, type: builtin}]\n"
        )
        assert agentci(folder, github, "lock").code == 0
        assert locked(folder) == {"version": 1, "evaluators": [], "requirements": []}

    def test_fetch_failure_writes_no_lock(self, folder: Path, github: FakeGitHub) -> None:
        ran = agentci(folder, github, "lock")
        assert ran.code == 2
        assert str(ran.problems[0]).startswith("agentci.yaml:5:10: ")
        assert not (folder / "agentci.lock").exists()

    def test_errors_of_all_invalid_configs_are_reported(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        for name in ("a", "b"):
            (folder / f"{name}.eval.yaml").write_text("evaluators: []\n")
        ran = agentci(folder, github, "lock")
        assert (ran.code, len(ran.problems)) == (2, 2)
        assert not (folder / "agentci.lock").exists()

    def test_unwritable_lock_is_reported(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        github.answers["commit"] = lambda _: (folder / "agentci.lock").mkdir()
        ran = agentci(folder, github, "lock")
        assert ran.code == 2
        assert "cannot write agentci.lock" in str(ran.problems[0])

    def test_workspace_evaluators_are_not_locked(self, folder: Path, github: FakeGitHub) -> None:
        (folder / "fixed.py").write_text("print('{\"score\": 1}')")
        (folder / "index.yaml").write_text("evaluators: [{name: fixed, path: fixed.py}]\n")
        configure(folder, "source: local")
        config = folder / "agentci.yaml"
        config.write_text(config.read_text().replace(REF, "fixed"))
        agentci(folder, github, "lock")
        assert locked(folder)["evaluators"] == []
        assert scores(agentci(folder, github, "run", "--locked", "--offline")) == [1.0]


class TestLockCheck:
    def test_up_to_date_lock_passes(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "lock")
        before = github.count()
        ran = agentci(folder, github, "lock", "--check")
        assert (ran.code, github.count()) == (0, before)
        assert "agentci.lock is up to date: 1 evaluator," in ran.out

    def test_missing_entry_is_reported_with_location(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        ran = agentci(folder, github, "lock", "--check")
        assert ran.code == 2
        assert f"agentci.yaml:5:10: error: {REF} is not in agentci.lock" in ran.out

    def test_unused_entry_is_reported(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "lock")
        configure(folder, "branch: dev")
        ran = agentci(folder, github, "lock", "--check")
        assert ran.code == 2
        assert "is not in agentci.lock" in ran.out
        assert "agentci.lock:1: error: no config uses" in ran.out

    def test_check_and_upgrade_are_exclusive(self, folder: Path, github: FakeGitHub) -> None:
        with pytest.raises(SystemExit) as usage:
            agentci(folder, github, "lock", "--check", "--upgrade")
        assert usage.value.code == 2


class TestRunWithLock:
    def test_run_uses_locked_commit_without_warning(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files("0.5"))
        agentci(folder, github, "lock")
        github.publish(REPOSITORY, files("1.0"))
        ran = agentci(folder, github, "run")
        assert scores(ran) == [0.5]
        assert ran.results["problems"] == []

    def test_run_fetches_only_locked_files(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "lock")
        shutil.rmtree(cache_of(folder))
        before = github.count()
        assert scores(agentci(folder, github, "run", "--locked")) == [0.75]
        assert {each.kind for each in github.asked[before:]} == {"raw"}

    def test_unlocked_evaluator_is_rejected_with_locked(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        ran = agentci(folder, github, "run", "--locked")
        [problem] = ran.results["problems"]
        assert (ran.code, github.count()) == (2, 0)
        assert problem["message"] == f"{REF} is not in agentci.lock"
        assert "agentci lock" in problem["hint"]

    def test_unlocked_evaluator_is_warning_without_locked(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "lock")
        configure(folder, "branch: dev")
        github.publish(REPOSITORY, files(), branch="dev")
        [problem] = agentci(folder, github, "run").results["problems"]
        assert problem["severity"] == "warning"
        assert "run `agentci lock`" in problem["hint"]

    @pytest.mark.parametrize("cached", [True, False], ids=["cached", "fetched"])
    def test_content_that_differs_from_lock_is_rejected(
        self, folder: Path, github: FakeGitHub, cached: bool
    ) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "lock")
        lock = folder / "agentci.lock"
        right = hashlib.sha256(b"0.75").hexdigest()
        lock.write_text(lock.read_text().replace(right, hashlib.sha256(b"1.0").hexdigest()))
        if not cached:
            shutil.rmtree(cache_of(folder))
        ran = agentci(folder, github, "run", "--locked")
        [problem] = ran.results["problems"]
        assert ran.code == 2
        assert f"score.txt of {REF} differs from agentci.lock" in problem["message"]

    def test_executable_mode_is_preserved(self, folder: Path, github: FakeGitHub) -> None:
        shell = '#!/bin/sh\ncat > /dev/null\n"$(dirname "$0")/helper"\n'
        helper = Kept(b"echo '{\"score\": 0.5}'", mode=EXECUTABLE)
        ref = "evaluators/sh/sh"
        github.publish(REPOSITORY, {ref: Kept(shell.encode(), mode=EXECUTABLE),
                                    "evaluators/sh/helper": helper})  # fmt: skip
        config = folder / "agentci.yaml"
        config.write_text(config.read_text().replace(REF, ref))
        agentci(folder, github, "lock")
        shutil.rmtree(cache_of(folder))
        assert scores(agentci(folder, github, "run", "--locked")) == [0.5]

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param("evaluators: 7\n", id="wrong type"),
            pytest.param("version: 2\n", id="unknown version"),
            pytest.param("version: 1\nevaluators:\n- {source: github}\n", id="incomplete"),
            pytest.param("{", id="invalid YAML"),
            pytest.param("version: 1\nzap: 1\n", id="unknown key"),
            pytest.param("<<<<<<< ours\nversion: 1\n=======\n", id="merge conflict"),
        ],
    )
    def test_invalid_lock_fails_every_command(
        self, folder: Path, github: FakeGitHub, content: str
    ) -> None:
        (folder / "agentci.lock").write_text(content)
        for arguments in (["run"], ["lock"], ["lock", "--check"]):
            ran = agentci(folder, github, *arguments)
            printed = ran.out + "".join(map(str, ran.problems))
            assert (ran.code, github.count()) == (2, 0)
            assert "agentci.lock:" in printed


class TestCacheInCheckout:
    """Remote evaluators of a cache that a pull request could have brought."""

    def test_lock_and_fetch_reject_it(self, folder: Path, github: FakeGitHub) -> None:
        for arguments in (["lock"], ["evaluator", "fetch", REF]):
            ran = agentci(folder, github, *arguments, "--cache-dir", "cache")
            assert (ran.code, github.count()) == (2, 0)
            assert "it is in the checkout" in ran.problems[0].message

    def test_run_fetches_again_with_note(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files(score="0.75"))
        agentci(folder, github, "run")
        cache_of(folder).rename(folder / "cache")
        before = github.count()
        ran = agentci(folder, github, "run", "--cache-dir", "cache")
        assert (ran.code, github.count() > before) == (0, True)
        [note] = [each for each in ran.results["problems"] if each["severity"] == "note"]
        assert "the cache cache is not used: it is in the checkout" in note["message"]
