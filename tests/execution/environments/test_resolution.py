"""The resolution of requirements to locked versions."""

import tempfile
from pathlib import Path

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.installers import resolve_requirements
from agentci.execution.requirements import Requirements, is_locked_line
from tests.execution.environments.installer_runners import (
    TOOLS,
    make_environment_store,
    make_installer_runner,
)
from tests.execution.environments.package_index import PackageIndex

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("tool", TOOLS)
class TestResolution:
    def test_resolution_has_version_and_hash_of_each_package(
        self, tool: str, index: PackageIndex
    ) -> None:
        digest = index.add("demo-words", "3.0")
        resolution = resolve_requirements(
            Requirements(text="Demo_Greeting"), runner=make_installer_runner(tool, index=index.url)
        )
        names = [line.partition(" ")[0] for line in resolution.lines]
        assert names == ["agentevals-evaluator-sdk==0.2.0", "demo-greeting==1.0", "demo-words==3.0"]
        assert all(is_locked_line(line) for line in resolution.lines)
        assert resolution.lines[-1] == f"demo-words==3.0 --hash=sha256:{digest}"
        assert resolution.universal == (tool == "uv")
        assert "127.0.0.1" not in str(resolution)

    def test_digest_missing_in_index_is_computed(self, tool: str, index: PackageIndex) -> None:
        index.algorithm = ""
        installer_runner = make_installer_runner(tool, index=index.url)
        resolution = resolve_requirements(Requirements(text="demo-words"), runner=installer_runner)
        assert all(is_locked_line(line) for line in resolution.lines)


class TestUvResolution:
    def test_resolved_lines_can_be_installed(self, tmp_path: Path, index: PackageIndex) -> None:
        text = "demo-words ; python_version >= '3.11'"
        installer_runner = make_installer_runner("uv", index=index.url)
        locked = Requirements(
            text=text,
            locked=resolve_requirements(Requirements(text=text), runner=installer_runner).lines,
        )
        assert make_environment_store(tmp_path, installer_runner).get_python(locked, name="words")

    def test_missing_package_error_names_package(self, index: PackageIndex) -> None:
        with pytest.raises(EvaluatorError, match="demo-missing"):
            resolve_requirements(
                Requirements(text="demo-missing"),
                runner=make_installer_runner("uv", index=index.url),
            )

    def test_resolution_covers_other_platforms(self, index: PackageIndex) -> None:
        text = "demo-words==1.0 ; sys_platform == 'win32'\ndemo-words==2.0 ; os_name == 'posix'"
        installer_runner = make_installer_runner("uv", index=index.url)
        lines = resolve_requirements(Requirements(text=text), runner=installer_runner).lines
        assert [line.partition(" --hash")[0] for line in lines[1:]] == [
            "demo-words==1.0 ; sys_platform == 'win32'",
            "demo-words==2.0 ; os_name == 'posix'",
        ]

    def test_resolution_ignores_existing_lock(self, index: PackageIndex) -> None:
        old = Requirements(text="demo-words", locked=(f"demo-words==1.0 --hash=sha256:{'a' * 64}",))
        resolution = resolve_requirements(old, runner=make_installer_runner("uv", index=index.url))
        assert resolution.lines[-1].startswith("demo-words==2.0 ")


class TestResolutionErrors:
    def test_missing_temporary_folder_raises_error(
        self, index: PackageIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
        with pytest.raises(EvaluatorError, match=r"could not install.*/nowhere"):
            resolve_requirements(
                Requirements(text="nltk"), runner=make_installer_runner("pip", index=index.url)
            )

    def test_package_with_address_cannot_be_locked(self, index: PackageIndex) -> None:
        with pytest.raises(EvaluatorError, match=r"cannot be locked.*name a package of an index"):
            resolve_requirements(
                Requirements(text="demo @ https://example.com/demo.whl"),
                runner=make_installer_runner("uv", index=index.url),
            )
        assert index.requested == []

    def test_rejected_line_cannot_be_locked(self, index: PackageIndex) -> None:
        with pytest.raises(EvaluatorError, match="includes another file"):
            resolve_requirements(
                Requirements(text="-r x"), runner=make_installer_runner("uv", index=index.url)
            )

    def test_index_with_md5_digests_cannot_be_locked(self, index: PackageIndex) -> None:
        index.algorithm = "md5"
        with pytest.raises(EvaluatorError, match="cannot be locked: its index provides no sha256"):
            resolve_requirements(
                Requirements(text="demo-words"), runner=make_installer_runner("uv", index=index.url)
            )
