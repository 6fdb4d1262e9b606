"""Packages without a wheel: refused, or built in the sandbox with `allow_source`."""

import os
import subprocess
from pathlib import Path

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.installers import resolve_requirements
from agentci.execution.requirements import Requirements
from tests.execution.environments.installer_runners import (
    TOOLS,
    make_environment_store,
    make_installer_runner,
)
from tests.execution.environments.package_index import PackageIndex

pytestmark = pytest.mark.slow

# Finds the environment that the installer fills, as an argument of a parent process.
FIND_ENVIRONMENT = """
import os
number, folder = os.getppid(), ""
while number > 1 and not folder:
    words = open(f"/proc/{number}/cmdline").read().split("\\0")
    found = [word for word in words if "/environments/" in word and word.endswith("/bin/python")]
    folder = found[0].removesuffix("/bin/python") if found else ""
    number = int(open(f"/proc/{number}/stat").read().rpartition(")")[2].split()[1])
"""


@pytest.mark.parametrize("tool", TOOLS)
class TestSourcePackages:
    def test_package_without_wheel_is_not_built(
        self, tool: str, tmp_path: Path, index: PackageIndex
    ) -> None:
        index.add_source("demo-source", "1.0")
        environments = make_environment_store(
            tmp_path, make_installer_runner(tool, index=index.url)
        )
        with pytest.raises(EvaluatorError) as refused:
            environments.get_python(Requirements(text="demo-source"), name="builds")
        assert "demo-source" in str(refused.value)
        assert "`allow_source: true`" in str(refused.value)

    def test_package_is_built_with_allow_source(
        self, tool: str, tmp_path: Path, index: PackageIndex
    ) -> None:
        index.add_source("demo-source", "1.0")
        environments = make_environment_store(
            tmp_path, make_installer_runner(tool, index=index.url)
        )
        python = environments.get_python(
            Requirements(text="demo-source", allow_source=True), name="builds"
        )
        code = "import demo_source; print(demo_source.VERSION)"
        assert subprocess.check_output((python, "-P", "-c", code), env={}, text=True) == "1.0\n"
        with pytest.raises(EvaluatorError, match="allow_source"):
            environments.get_python(Requirements(text="demo-source"), name="does not")

    def test_dependency_from_url_is_not_built(
        self, tool: str, tmp_path: Path, index: PackageIndex
    ) -> None:
        index.add_source("demo-source", "1.0")
        address = index.url.replace("/simple", "/files/demo-source/demo_source-1.0.tar.gz")
        index.add("demo-parent", "1.0", needs=[f"demo-source @ {address}"])
        environments = make_environment_store(
            tmp_path, make_installer_runner(tool, index=index.url)
        )
        with pytest.raises(EvaluatorError, match="could not install"):
            environments.get_python(Requirements(text="demo-parent"), name="builds")

    def test_build_script_cannot_write_elsewhere(
        self, tool: str, tmp_path: Path, index: PackageIndex
    ) -> None:
        tmp_path.chmod(0o755)
        installer_runner = make_installer_runner(tool, index=index.url)
        cache = tmp_path / "cache"
        other = make_environment_store(cache, installer_runner).get_python(
            Requirements(text="demo-words"), name="other"
        )
        target = tmp_path / "evaluator.py"
        target.write_text("original")
        target.chmod(0o666)
        tmp_path.chmod(0o777)
        folder = Path(other).parent.parent
        home = Path(os.environ["HOME"])
        index.add_source("demo-source", "1.0", make_writer(target, tmp_path, cache, folder, home))
        environments = make_environment_store(cache, installer_runner)
        environments.get_python(Requirements(text="demo-source", allow_source=True), name="builds")
        assert target.read_text() == "original"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "evaluator.py"]
        again = make_environment_store(cache, installer_runner, offline=True)
        assert again.get_python(Requirements(text="demo-words"), name="other") == other

    def test_planted_link_is_rejected(self, tool: str, tmp_path: Path, index: PackageIndex) -> None:
        # Some installers run the script twice.
        plant = "link = folder + '/lib/link'\nos.path.lexists(link) or os.symlink('/etc', link)\n"
        index.add_source("demo-source", "1.0", FIND_ENVIRONMENT + plant)
        environments = make_environment_store(
            tmp_path, make_installer_runner(tool, index=index.url)
        )
        with pytest.raises(EvaluatorError, match="link that leads out of its folder"):
            environments.get_python(
                Requirements(text="demo-source", allow_source=True), name="builds"
            )
        assert not [path for path in (tmp_path / "environments").rglob("*") if path.is_file()]

    def test_lock_builds_only_with_allow_source(self, tool: str, index: PackageIndex) -> None:
        digest = index.add_source("demo-source", "1.0")
        installer_runner = make_installer_runner(tool, index=index.url)
        with pytest.raises(EvaluatorError, match="`allow_source: true`"):
            resolve_requirements(Requirements(text="demo-source"), runner=installer_runner)
        allowed = Requirements(text="demo-source", allow_source=True)
        lines = resolve_requirements(allowed, runner=installer_runner).lines
        assert f"demo-source==1.0 --hash=sha256:{digest}" in lines


def make_writer(target: Path, *folders: Path) -> str:
    """A build script that tries to change a file, and to make one in each folder."""
    return f"""
import contextlib
with contextlib.suppress(OSError):
    open({str(target)!r}, "w").write("changed")
for folder in {[*map(str, folders)]!r}:
    with contextlib.suppress(OSError):
        open(folder + "/sitecustomize.py", "w").write("changed")
"""


@pytest.mark.parametrize("tool", TOOLS)
def test_code_of_wheel_does_not_run_during_installation(
    tool: str, tmp_path: Path, index: PackageIndex
) -> None:
    tmp_path.chmod(0o755)
    index.add("demo-wheel", "1.0", files={"start.pth": "import os; os.environ['X'] = 1\n"})
    installer_runner = make_installer_runner(tool, index=index.url)
    python = make_environment_store(tmp_path / "cache", installer_runner).get_python(
        Requirements(text="demo-wheel"), name="starts"
    )
    site = subprocess.run((python, "-c", ""), env={}, capture_output=True, text=True, check=False)
    assert "start.pth" in site.stderr  # the environment's own Python runs it


class TestRefusedLines:
    @pytest.mark.parametrize(
        "line",
        [
            "demo @ git+https://example.com/demo.git",
            "git+https://example.com/demo.whl",
            "https://example.com/demo-1.0.tar.gz",
            "https://example.com/demo-1.0.tar.gz#egg=demo.whl",
            "https://example.com/demo-1.0.zip?demo.whl",
            "--no-binary :all:\ndemo",
            "--no-binary=demo\ndemo",
        ],
    )
    def test_line_that_builds_a_package_is_rejected(self, line: str) -> None:
        with pytest.raises(EvaluatorError, match="`allow_source: true`"):
            Requirements(text=line).install_lines()
        assert Requirements(text=line, allow_source=True).install_lines()

    def test_url_of_wheel_is_accepted(self) -> None:
        line = "demo @ https://example.com/demo-1.0-py3-none-any.whl#sha256=00"
        assert line in Requirements(text=line).install_lines()
