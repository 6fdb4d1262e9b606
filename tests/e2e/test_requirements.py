"""Requirements of evaluators are installed once, isolated, and locked by hash."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.execution.environments.package_index import SDK, PackageIndex
from tests.helpers.recordings import otlp
from tests.helpers.support import PATH, Ran, cache_of, run_agentci
from tests.remote.sources.fake_github import FakeGitHub

pytestmark = pytest.mark.slow

REF = "evaluators/greeting/greeting.py"
REF_REQUIREMENTS = "evaluators/greeting/requirements.txt"
PROGRAM = """\
import json, sys
import agentci.sdk
import demo_greeting
json.load(sys.stdin)
print(json.dumps({"score": float(demo_greeting.VERSION) / 2}))
"""
UV = Path(sys.executable).parent


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    index = PackageIndex()
    index.add(SDK, "0.2.0")
    index.add("demo-greeting", "1.0")
    yield index
    index.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with one evaluator that needs a package."""
    own = tmp_path / "greeting"
    own.mkdir()
    (own / "greeting.py").write_text(PROGRAM)
    (own / "requirements.txt").write_text("demo-greeting  # to greet\n")
    (tmp_path / "trace.json").write_text(otlp())
    _configure(tmp_path, "{name: greeting, type: code, path: greeting/greeting.py, cache: true}")
    return tmp_path


def _configure(folder: Path, *entries: str) -> None:
    listed = "".join(f"- {entry}\n" for entry in entries)
    (folder / "agentci.yaml").write_text(f"traces: trace.json\nevaluators:\n{listed}")


def _agentci(folder: Path, index: PackageIndex, *arguments: str, **environ: str) -> Ran:
    """Run the command line with uv and a local package index."""
    variables = {
        "PATH": f"{UV}:{PATH}",
        "HOME": os.environ["HOME"],
        "UV_INDEX_URL": index.url,
        "UV_NO_CONFIG": "1",
        "UV_NO_CACHE": "1",
        "UV_HTTP_RETRIES": "0",
        "AGENTCI_GITHUB_API_URL": "http://127.0.0.1:9",
        **environ,
    }
    return run_agentci(arguments, cwd=folder, environ=variables)


def _scores(ran: Ran) -> list[float | None]:
    assert not ran.problems, ran.problems
    return [result["score"] for result in ran.results["results"]]


def _cached(ran: Ran) -> list[bool]:
    return [result["cached"] for result in ran.results["results"]]


class TestCachedResponses:
    def test_response_is_reused_in_rebuilt_environment(
        self, folder: Path, index: PackageIndex
    ) -> None:
        _agentci(folder, index, "run")
        environments = cache_of(folder) / "environments"
        shutil.rmtree(environments)  # forces a rebuild at another path
        assert _cached(_agentci(folder, index, "run")) == [True]

    def test_new_package_version_invalidates_response(
        self, folder: Path, index: PackageIndex
    ) -> None:
        """The requirements name no version and are unchanged."""
        _agentci(folder, index, "run")
        index.add("demo-greeting", "2.0")
        shutil.rmtree(cache_of(folder) / "environments")
        ran = _agentci(folder, index, "run")
        assert (_cached(ran), _scores(ran)) == ([False], [1.0])

    def test_changed_requirements_invalidate_response(
        self, folder: Path, index: PackageIndex
    ) -> None:
        _agentci(folder, index, "run")
        index.add("demo-greeting", "2.0")
        (folder / "greeting" / "requirements.txt").write_text("demo-greeting==2.0\n")
        ran = _agentci(folder, index, "run")
        assert (_cached(ran), _scores(ran)) == ([False], [1.0])


class TestRun:
    def test_requirements_are_installed_once(self, folder: Path, index: PackageIndex) -> None:
        ran = _agentci(folder, index, "run")
        assert _scores(ran) == [0.5]
        assert "installing requirements of greeting" in ran.err
        again = _agentci(folder, index, "run", "--offline")
        assert (_scores(again), again.err) == ([0.5], "")

    def test_equal_requirements_share_environment(self, folder: Path, index: PackageIndex) -> None:
        shutil.copytree(folder / "greeting", folder / "again")
        (folder / "again" / "requirements.txt").write_text("# the same\ndemo-greeting\n")
        _configure(
            folder,
            "{name: greeting, type: code, path: greeting/greeting.py}",
            "{name: again, type: code, path: again/greeting.py}",
        )
        assert _scores(_agentci(folder, index, "run")) == [0.5, 0.5]
        assert len(list((cache_of(folder) / "environments").iterdir())) == 1

    def test_requirements_of_remote_evaluator_are_installed(
        self, folder: Path, index: PackageIndex, github: FakeGitHub
    ) -> None:
        github.publish("a/b", {REF: PROGRAM, REF_REQUIREMENTS: "demo-greeting\n"})
        _configure(folder, f"{{name: greeting, type: remote, repo: a/b, ref: {REF}}}")
        hosts = {"AGENTCI_GITHUB_API_URL": github.api, "AGENTCI_GITHUB_RAW_URL": github.raw}
        assert _scores(_agentci(folder, index, "run", **hosts)) == [0.5]

    def test_source_package_is_built_only_with_allow_source(
        self, folder: Path, index: PackageIndex, github: FakeGitHub
    ) -> None:
        index.add_source("demo-greeting", "2.0")
        (folder / "greeting" / "requirements.txt").write_text("demo-greeting==2.0\n")
        github.publish("a/b", {REF: PROGRAM, REF_REQUIREMENTS: "demo-greeting==2.0\n"})
        hosts = {"AGENTCI_GITHUB_API_URL": github.api, "AGENTCI_GITHUB_RAW_URL": github.raw}
        for entry in (
            "type: code, path: greeting/greeting.py",
            f"type: remote, repo: a/b, ref: {REF}",
        ):
            _configure(folder, f"{{name: greeting, {entry}}}")
            [result] = _agentci(folder, index, "run", **hosts).results["results"]
            assert result["status"] == "errored"
            assert "`allow_source: true`" in result["reason"]
            _configure(folder, f"{{name: greeting, {entry}, allow_source: true}}")
            assert _scores(_agentci(folder, index, "run", **hosts)) == [1.0]

    def test_requirements_none_installs_nothing(self, folder: Path, index: PackageIndex) -> None:
        (folder / "greeting" / "greeting.py").write_text("print('{\"score\": 1}')")
        _configure(
            folder,
            "{name: greeting, type: code, path: greeting/greeting.py, requirements: none}",
        )
        assert _scores(_agentci(folder, index, "run")) == [1.0]
        assert index.requested == []

    @pytest.mark.parametrize("project", [".", "greeting"], ids=["root", "package"])
    def test_requirements_of_project_are_ignored_with_note(
        self, folder: Path, index: PackageIndex, project: str
    ) -> None:
        (folder / project / "ev.py").write_text("print('{\"score\": 1}')")
        (folder / project / "requirements.txt").write_text("demo-greeting\n")
        if project != ".":
            (folder / project / "pyproject.toml").touch()
        _configure(folder, f"{{name: mine, type: code, path: {project}/ev.py}}")
        ran = _agentci(folder, index, "run")
        assert _scores(ran) == [1.0]
        assert index.requested == []
        [problem] = ran.results["problems"]
        assert problem["severity"] == "note"
        assert "it belongs to the whole project" in problem["message"]


class TestFailures:
    def test_failed_installation_errors_check_with_installer_output(
        self, folder: Path, index: PackageIndex
    ) -> None:
        (folder / "greeting" / "requirements.txt").write_text("no-such-package-of-ours\n")
        (folder / "own.py").write_text("print('{\"score\": 1}')")
        _configure(
            folder,
            "{name: greeting, type: code, path: greeting/greeting.py}",
            "{name: own, type: code, path: own.py}",
        )
        ran = _agentci(folder, index, "run")
        greeting, own = ran.results["results"]
        assert (ran.code, greeting["status"], own["status"]) == (3, "errored", "passed")
        assert "could not install its requirements" in greeting["reason"]
        assert "no-such-package-of-ours" in greeting["reason"]

    def test_unsafe_requirement_is_reported_with_line(
        self, folder: Path, index: PackageIndex
    ) -> None:
        (folder / "greeting" / "requirements.txt").write_text("demo-greeting\n-r /etc/passwd\n")
        [result] = _agentci(folder, index, "run").results["results"]
        assert "requirements.txt that cannot be used: line 2: " in result["reason"]


class TestLock:
    def test_lock_contains_all_packages(self, folder: Path, index: PackageIndex) -> None:
        assert _agentci(folder, index, "lock").code == 0
        [locked] = yaml.safe_load((folder / "agentci.lock").read_text())["requirements"]
        assert locked["file"] == "greeting/requirements.txt"
        assert list(locked["packages"]) == [f"{SDK}==0.2.0", "demo-greeting==1.0"]
        assert "127.0.0.1" not in (folder / "agentci.lock").read_text()

    def test_locked_versions_change_only_with_upgrade(
        self, folder: Path, index: PackageIndex
    ) -> None:
        _agentci(folder, index, "lock")
        index.add("demo-greeting", "2.0")
        assert _scores(_agentci(folder, index, "run", "--locked")) == [0.5]
        assert _agentci(folder, index, "lock", "--check").code == 0
        _agentci(folder, index, "lock", "--upgrade")
        assert _scores(_agentci(folder, index, "run", "--locked")) == [1.0]

    def test_package_with_other_hash_is_rejected(self, folder: Path, index: PackageIndex) -> None:
        _agentci(folder, index, "lock")
        index.add("demo-greeting", "1.0", source="VERSION = '2.0'\n")
        [result] = _agentci(folder, index, "run", "--locked").results["results"]
        assert result["status"] == "errored"
        assert "run `agentci lock` and review the change" in result["reason"]

    def test_unlocked_requirements_are_rejected(self, folder: Path, index: PackageIndex) -> None:
        _agentci(folder, index, "lock")
        (folder / "greeting" / "requirements.txt").write_text("demo-greeting>=1\n")
        ran = _agentci(folder, index, "run", "--locked")
        assert ran.code == 2
        message = "the requirements.txt of greeting is not in agentci.lock"
        assert ran.results["problems"][0]["message"] == message
        check = _agentci(folder, index, "lock", "--check")
        assert check.code == 2
        assert message in check.out
        assert "no evaluator uses the requirements of greeting/requirements.txt" in check.out

    def test_requirements_of_remote_evaluator_are_locked(
        self, folder: Path, index: PackageIndex, github: FakeGitHub
    ) -> None:
        github.publish("a/b", {REF: PROGRAM, REF_REQUIREMENTS: "demo-greeting\n"})
        _configure(folder, f"{{name: greeting, type: remote, repo: a/b, ref: {REF}}}")
        hosts = {"AGENTCI_GITHUB_API_URL": github.api, "AGENTCI_GITHUB_RAW_URL": github.raw}
        _agentci(folder, index, "lock", **hosts)
        [locked] = yaml.safe_load((folder / "agentci.lock").read_text())["requirements"]
        assert locked["file"] == REF_REQUIREMENTS
        assert _agentci(folder, index, "lock", "--check", **hosts).code == 0
        assert _scores(_agentci(folder, index, "run", "--locked", **hosts)) == [0.5]

    def test_requirements_of_local_evaluator_are_locked(
        self, folder: Path, index: PackageIndex
    ) -> None:
        (folder / "index.yaml").write_text(
            "evaluators: [{name: greeting, path: greeting/greeting.py}]\n"
        )
        _configure(folder, "{name: greeting, type: remote, source: local, ref: greeting}")
        _agentci(folder, index, "lock")
        assert _agentci(folder, index, "lock", "--check").code == 0
        assert _scores(_agentci(folder, index, "run", "--locked")) == [0.5]
        (folder / "greeting" / "requirements.txt").write_text("demo-greeting>=1\n")
        assert _agentci(folder, index, "lock", "--check").code == 2

    def test_unresolvable_requirements_are_reported(
        self, folder: Path, index: PackageIndex
    ) -> None:
        (folder / "greeting" / "requirements.txt").write_text("no-such-package-of-ours\n")
        ran = _agentci(folder, index, "lock")
        assert ran.code == 2
        assert "no-such-package-of-ours" in str(ran.problems[0])
