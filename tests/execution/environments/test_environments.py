"""Environments in the cache: created once, verified and shared."""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.requirements import Requirements
from agentci.model.values import replace
from tests.execution.environments.installer_runners import (
    TOOLS,
    make_environment_store,
    make_installer_runner,
)
from tests.execution.environments.package_index import PackageIndex
from tests.helpers.support import ROOT

pytestmark = pytest.mark.slow

GREETING = Requirements(text="demo-greeting\n")
LINES = "import demo_greeting, demo_words, agentevals_evaluator_sdk as sdk; print(sdk.VERSION)"


def run(python: str, code: str) -> str:
    """Run code in the environment as evaluators are run; return its output."""
    return subprocess.run(
        (python, "-P", "-c", code), capture_output=True, text=True, check=True, env={}
    ).stdout.strip()


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("tool", TOOLS)
class TestEnvironment:
    def test_environment_has_compiled_packages_and_no_installer(
        self, tool: str, tmp_path: Path, index: PackageIndex
    ) -> None:
        notices: list[str] = []
        installer_runner = make_installer_runner(tool, index=index.url)
        python = make_environment_store(
            tmp_path, installer_runner, notify=notices.append
        ).get_python(GREETING, name="greets")
        assert Path(python).is_absolute()
        assert run(python, LINES) == "0.2.0"
        assert run(python, "import agentci.sdk; print(agentci.sdk.__name__)") == "agentci.sdk"
        assert notices == ["installing requirements of greets (2 packages)"]
        packages = Path(run(python, "import demo_words; print(demo_words.__file__)")).parent
        compiled = {path.name.partition(".")[0] for path in (packages / "__pycache__").iterdir()}
        assert {"demo_words", "demo_greeting", "agentevals_evaluator_sdk"} <= compiled
        assert list((packages / "agentci" / "__pycache__").iterdir())
        assert not (packages / "pip").exists()

    def test_environment_contains_only_locked_versions(
        self, tool: str, tmp_path: Path, index: PackageIndex
    ) -> None:
        digest = index.add("demo-words", "1.5")
        locked = Requirements(
            text="demo-words", locked=(f"demo-words==1.5 --hash=sha256:{digest}",)
        )
        installer_runner = make_installer_runner(tool, index=index.url)
        python = make_environment_store(tmp_path, installer_runner).get_python(locked, name="words")
        assert run(python, "import demo_words; print(demo_words.VERSION)") == "1.5"
        assert index.count("agentevals") == 0

    def test_package_with_other_hash_is_rejected(
        self, tool: str, tmp_path: Path, index: PackageIndex
    ) -> None:
        line = f"demo-words==2.0 --hash=sha256:{'0' * 64}"
        environments = make_environment_store(
            tmp_path, make_installer_runner(tool, index=index.url)
        )
        with pytest.raises(EvaluatorError) as refused:
            environments.get_python(Requirements(text="x", locked=(line,)), name="words")
        assert str(refused.value).startswith(
            "could not install its requirements (requirements.txt): "
        )
        assert "0" * 64 in str(refused.value)
        assert "run `agentci lock` and review the change" in str(refused.value)

    def test_missing_package_is_requested_only_once(
        self, tool: str, tmp_path: Path, index: PackageIndex
    ) -> None:
        environments = make_environment_store(
            tmp_path, make_installer_runner(tool, index=index.url)
        )
        for _ in range(2):
            with pytest.raises(EvaluatorError, match=r"(?s)could not install.*demo-missing"):
                environments.get_python(Requirements(text="demo-missing"), name="misses")
        assert index.count("/simple/demo-missing") == 1

    def test_stop_interrupts_installation(
        self, tool: str, tmp_path: Path, index: PackageIndex
    ) -> None:
        index.hold("demo-words")
        installer_runner = make_installer_runner(tool, index=index.url)
        environments = make_environment_store(tmp_path, installer_runner)
        with ThreadPoolExecutor() as pool:
            asked = pool.submit(environments.get_python, GREETING, name="greets")
            index.wait_for("/files/demo-words")
            installer_runner.executor.stop()
            assert "was interrupted" in str(asked.exception())

    def test_incomplete_environment_is_reinstalled(
        self, tool: str, tmp_path: Path, index: PackageIndex
    ) -> None:
        index.hold("demo-words")
        killed = start_run(tmp_path, index, tool)
        index.wait_for("/files/demo-words")
        killed.kill()
        killed.communicate()
        assert files_below(tmp_path / "environments")
        second = start_run(tmp_path, index, tool)
        index.wait_for("/files/demo-words")
        index.release("demo-words")
        notice, python = second.communicate()[0].split("\n")[:2]
        assert notice.startswith("notice: installing")
        assert run(python, LINES) == "0.2.0"


class TestEqualRequirements:
    def test_equal_requirements_share_one_environment(
        self, tmp_path: Path, index: PackageIndex
    ) -> None:
        notices: list[str] = []
        installer_runner = make_installer_runner("uv", index=index.url)
        first = make_environment_store(tmp_path, installer_runner, notify=notices.append)
        texts = (
            "demo-greeting",
            "# mine\ndemo-greeting\n",
            " demo-greeting # yes",
            "demo-greeting",
        )
        with ThreadPoolExecutor() as pool:
            pythons = set(
                pool.map(lambda text: first.get_python(Requirements(text=text), name="a"), texts)
            )
        second = make_environment_store(
            tmp_path, installer_runner, notify=notices.append, offline=True
        )
        pythons.add(second.get_python(GREETING, name="b"))
        assert len(pythons) == 1
        assert notices == ["installing requirements of a (2 packages)"]

    def test_only_one_of_two_processes_installs(self, tmp_path: Path, index: PackageIndex) -> None:
        index.hold("demo-words")
        both = [start_run(tmp_path, index, "uv") for _ in range(2)]
        index.wait_for("/files/demo-words")
        index.release("demo-words")
        printed = [each.communicate()[0].splitlines() for each in both]
        assert sorted(map(len, printed)) == [1, 2]
        assert printed[0][-1] == printed[1][-1]
        assert run(printed[0][-1], LINES) == "0.2.0"


class TestInstallation:
    def test_installation_timeout_raises_error(self, tmp_path: Path, index: PackageIndex) -> None:
        index.hold("demo-words")
        installer_runner = make_installer_runner("uv", index=index.url, timeout_seconds=0.8)
        with pytest.raises(EvaluatorError, match=r"uv timed out after 0\.8 s"):
            make_environment_store(tmp_path, installer_runner).get_python(GREETING, name="greets")
        assert not files_below(tmp_path / "environments")

    def test_hashes_in_requirements_file_are_verified(
        self, tmp_path: Path, index: PackageIndex
    ) -> None:
        digest = index.add("demo-words", "1.5")
        environments = make_environment_store(
            tmp_path, make_installer_runner("uv", index=index.url)
        )
        good = Requirements(text=f"demo-words==1.5 --hash=sha256:{digest}")
        bad = Requirements(text=f"demo-words==1.5 --hash=sha256:{'0' * 64}")
        assert environments.get_python(good, name="words")
        with pytest.raises(EvaluatorError, match="could not install"):
            environments.get_python(bad, name="words")

    def test_uv_settings_in_workspace_are_ignored(
        self, tmp_path: Path, index: PackageIndex
    ) -> None:
        (tmp_path / "uv.toml").write_text("no-index = true\n")
        installer_runner = make_installer_runner("uv", index=index.url)
        environment = {k: v for k, v in installer_runner.environment.items() if k != "UV_NO_CONFIG"}
        environments = make_environment_store(
            tmp_path / ".c", replace(installer_runner, environment=environment)
        )
        assert environments.get_python(GREETING, name="greets")


class TestOffline:
    def test_missing_environment_error_has_hint(self, tmp_path: Path, index: PackageIndex) -> None:
        environments = make_environment_store(
            tmp_path, make_installer_runner("uv", index=index.url), offline=True
        )
        with pytest.raises(EvaluatorError) as refused:
            environments.get_python(Requirements(text="demo-words==2"), name="words")
        assert str(refused.value) == (
            "requires agentevals-evaluator-sdk>=0.1.1, demo-words==2, and the cache has no"
            " environment with these packages;"
            " run once without --offline and with the same --cache-dir"
        )
        assert index.requested == []
        assert list(tmp_path.iterdir()) == []

    def test_damaged_environment_is_not_used_offline(
        self, tmp_path: Path, index: PackageIndex
    ) -> None:
        installer_runner = make_installer_runner("uv", index=index.url)
        python = make_environment_store(tmp_path, installer_runner).get_python(
            GREETING, name="greets"
        )
        Path(python).with_name("sitecustomize.py").write_text("")
        offline = make_environment_store(tmp_path, installer_runner, offline=True)
        with pytest.raises(EvaluatorError) as refused:
            offline.get_python(GREETING, name="greets")
        assert "changed files: bin/sitecustomize.py" in str(refused.value)
        assert "run once without --offline" in str(refused.value)


class TestDamagedEnvironment:
    def test_damaged_environment_is_reinstalled(self, tmp_path: Path, index: PackageIndex) -> None:
        notices: list[str] = []
        installer_runner = make_installer_runner("uv", index=index.url)
        python = make_environment_store(tmp_path, installer_runner).get_python(
            GREETING, name="greets"
        )
        module = Path(run(python, "import demo_words; print(demo_words.__file__)"))
        module.write_text("raise SystemExit('other content')")
        again = make_environment_store(tmp_path, installer_runner, notify=notices.append)
        mended = again.get_python(GREETING, name="greets")
        assert run(mended, LINES) == "0.2.0"
        assert "reinstalling the damaged environment of greets" in notices[0]
        assert "demo_words.py" in notices[0]
        assert notices[1:] == ["installing requirements of greets (2 packages)"]
        assert not module.exists()


class TestCacheFolder:
    def test_unwritable_cache_raises_error(self, tmp_path: Path, index: PackageIndex) -> None:
        (tmp_path / "file").write_text("")
        environments = make_environment_store(
            tmp_path / "file" / "cache", make_installer_runner("uv", index=index.url)
        )
        with pytest.raises(EvaluatorError, match=r"(?s)could not install.*--cache-dir"):
            environments.get_python(GREETING, name="greets")

    def test_folder_with_other_files_is_not_used(self, tmp_path: Path, index: PackageIndex) -> None:
        (tmp_path / "thesis.txt").write_text("")
        environments = make_environment_store(
            tmp_path, make_installer_runner("uv", index=index.url)
        )
        with pytest.raises(EvaluatorError, match=r"not an agentci cache"):
            environments.get_python(GREETING, name="greets")
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]

    def test_environment_belongs_to_cache_owner(self, tmp_path: Path, index: PackageIndex) -> None:
        environments = make_environment_store(
            tmp_path / "cache", make_installer_runner("uv", index=index.url)
        )
        environments.owner = tmp_path
        python = environments.get_python(GREETING, name="greets")
        assert Path(python).lstat().st_uid == tmp_path.stat().st_uid


def start_run(cache: Path, index: PackageIndex, tool: str) -> subprocess.Popen[str]:
    command: Sequence[str] = (
        *(sys.executable, "-m", "tests.execution.environments.one_run"),
        *(str(cache), index.url, tool, "demo-greeting"),
    )
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)
