"""A lock that contradicts the config or itself is never used silently."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests._util.http.servers import Answer, serve
from tests.e2e.remote import REPOSITORY, agentci, configure, files, scores
from tests.helpers.support import run_agentci
from tests.remote.sources.fake_github import FakeGitHub


def read(folder: Path) -> Any:
    return yaml.safe_load((folder / "agentci.lock").read_text())


def write(folder: Path, lock: Any) -> None:
    (folder / "agentci.lock").write_text(yaml.safe_dump(lock))


class TestConfigPin:
    """The pin in the config takes precedence over the lock."""

    @pytest.fixture
    def wanted(self, folder: Path, github: FakeGitHub) -> str:
        """A commit that the config pins while the lock names another."""
        wanted = github.publish(REPOSITORY, files("0.75"))
        other = github.publish(REPOSITORY, files("1.0"))
        configure(folder, f"rev: {other}")
        agentci(folder, github, "lock")
        configure(folder, f"rev: {wanted}")
        lock = read(folder)
        lock["evaluators"][0]["revision"] = wanted
        write(folder, lock)
        return wanted

    def test_lock_does_not_override_pinned_commit(
        self, folder: Path, github: FakeGitHub, wanted: str
    ) -> None:
        ran = agentci(folder, github, "run")
        assert scores(ran) == [0.75]
        assert ran.results["provenance"][0]["commit"] == wanted

    def test_lock_that_contradicts_pin_is_rejected(
        self, folder: Path, github: FakeGitHub, wanted: str
    ) -> None:
        ran = agentci(folder, github, "run", "--locked")
        assert ran.code == 2
        assert "is not in agentci.lock" in ran.results["problems"][0]["message"]
        assert agentci(folder, github, "lock", "--check").code == 2
        assert agentci(folder, github, "lock").code == 0
        assert read(folder)["evaluators"][0]["commit"] == wanted
        assert scores(agentci(folder, github, "run", "--locked")) == [0.75]

    def test_locked_and_cached_content_does_not_override_pinned_sha256(self, folder: Path) -> None:
        programs = {name: b"print('{\"score\": %s}')" % name for name in (b"0.25", b"0.75")}
        served = [programs[b"0.25"]]
        with serve(lambda _: Answer(body=served[0])) as server:

            def pin() -> None:
                digest = hashlib.sha256(served[0]).hexdigest()
                configure(folder, "source: url", f"sha256: {digest}")
                config = folder / "agentci.yaml"
                url = f"{server.url}/fixed.py"
                config.write_text(config.read_text().replace("evaluators/fixed/fixed.py", url))

            pin()
            assert run_agentci(["lock"], cwd=folder).code == 0
            assert scores(run_agentci(["run", "--locked"], cwd=folder)) == [0.25]
            served[0] = programs[b"0.75"]
            pin()
            assert scores(run_agentci(["run"], cwd=folder)) == [0.75]
            assert run_agentci(["run", "--locked"], cwd=folder).code == 2
            assert run_agentci(["lock", "--check"], cwd=folder).code == 2
            assert run_agentci(["lock"], cwd=folder).code == 0
            assert scores(run_agentci(["run", "--locked"], cwd=folder)) == [0.75]


class TestInvalidLock:
    @pytest.fixture
    def ready(self, folder: Path, github: FakeGitHub) -> Path:
        """A workspace with a valid lock."""
        github.publish(REPOSITORY, files())
        assert agentci(folder, github, "lock").code == 0
        return folder

    def test_evaluator_locked_twice_is_rejected(self, ready: Path, github: FakeGitHub) -> None:
        lock = read(ready)
        lock["evaluators"].append({**lock["evaluators"][0], "commit": "b" * 40})
        write(ready, lock)
        ran = agentci(ready, github, "run", "--locked")
        [problem] = ran.results["problems"]
        assert ran.code == 2
        assert problem["message"].endswith("evaluators/fixed/fixed.py is locked twice")
        assert problem["place"]["file"] == "agentci.lock"

    def test_locked_requirements_without_packages_are_rejected(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        wanted = "nothing-of-this-name==1.0\n"
        github.publish(REPOSITORY, files(**{"evaluators/fixed/requirements.txt": wanted}))
        configure(folder, "requirements: none")
        agentci(folder, github, "lock")
        configure(folder)
        digest = hashlib.sha256(wanted.encode()).hexdigest()
        write(
            folder,
            read(folder)
            | {"requirements": [{"file": "requirements.txt", "sha256": digest, "packages": {}}]},
        )
        ran = agentci(folder, github, "run", "--locked")
        [problem] = ran.results["problems"]
        assert (ran.code, problem["message"]) == (
            2,
            "the requirements.txt of fixed is not in agentci.lock",
        )
        assert "installing" not in ran.err
        assert agentci(folder, github, "lock", "--check").code == 2

    def test_requirements_locked_twice_are_rejected(self, ready: Path, github: FakeGitHub) -> None:
        lock = read(ready)
        one = {"file": "a/requirements.txt", "sha256": "a" * 64, "packages": {}}
        lock["requirements"] = [one, {**one, "packages": {"numpy==1.0": [f"sha256:{'b' * 64}"]}}]
        write(ready, lock)
        [problem] = agentci(ready, github, "run").results["problems"]
        assert problem["message"].endswith("a/requirements.txt is locked twice")

    @pytest.mark.parametrize(
        "text",
        ["<<<<<<< HEAD\nversion: 1\n=======\n", "", "- a\n", "version: 2\n", "version: 1\0"],
        ids=["merge conflict", "empty", "list", "newer version", "binary"],
    )
    def test_hint_for_invalid_lock_fixes_it(
        self, ready: Path, github: FakeGitHub, text: str
    ) -> None:
        (ready / "agentci.lock").write_text(text)
        for command in (["run"], ["run", "--locked"]):
            ran = agentci(ready, github, *command)
            [problem] = ran.results["problems"]
            assert (ran.code, problem["place"]["file"]) == (2, "agentci.lock")
            assert problem["hint"] == "correct it, or remove it and run `agentci lock`"
        (ready / "agentci.lock").unlink()
        assert agentci(ready, github, "lock").code == 0
        assert scores(agentci(ready, github, "run", "--locked")) == [0.75]

    def test_unreadable_lock_is_not_treated_as_missing(
        self, ready: Path, github: FakeGitHub
    ) -> None:
        lock = ready / "agentci.lock"
        lock.unlink()
        lock.mkdir()
        for command in ("run", "lock"):
            assert agentci(ready, github, command).code == 2
        lock.rmdir()
        lock.symlink_to("nowhere")
        ran = agentci(ready, github, "run")
        assert (ran.code, ran.results["problems"][0]["message"]) == (
            2,
            "agentci.lock does not exist",
        )
