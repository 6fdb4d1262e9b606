"""The choice of an installer that exists on this machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.installers import Pip, Uv, choose_installer, find_python
from agentci.execution.requirements import find_base_python
from tests.execution.environments.installer_runners import make_installer_runner
from tests.execution.environments.package_index import PackageIndex
from tests.helpers.packages import copy_msgspec
from tests.helpers.support import ROOT

pytestmark = pytest.mark.slow

CHOICE = """
from agentci.execution.installers import choose_installer
from tests.execution.environments.installer_runners import make_installer_runner
print(choose_installer(make_installer_runner("pip", index="https://a.example")).runner)
"""


class TestInstallerChoice:
    def test_uv_is_chosen_if_available(self) -> None:
        chosen = choose_installer(make_installer_runner("uv", index="https://a.example"))
        assert chosen == Uv(program=str(Path(sys.executable).with_name("uv")))

    def test_pip_of_current_environment_is_chosen_without_uv(self) -> None:
        chosen = choose_installer(make_installer_runner("pip", index="https://a.example"))
        assert chosen == Pip(runner=find_pip(sys.executable))

    def test_pip_of_base_python_is_fallback(self, tmp_path: Path) -> None:
        bare = tmp_path / "bare"
        subprocess.run((sys.executable, "-m", "venv", "--without-pip", bare), check=True)
        home = {
            "HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": copy_msgspec(tmp_path),
        }
        asked = subprocess.check_output(
            (find_python(bare), "-c", CHOICE), cwd=ROOT, env=home, text=True
        )
        assert asked.strip() in {find_pip(find_base_python()[-1]), ""}


def test_environment_gets_pip_if_none_exists(tmp_path: Path, index: PackageIndex) -> None:
    installer_runner = make_installer_runner("pip", index=index.url)
    folder = tmp_path / "environment"
    folder.mkdir()
    pip = Pip(runner="")
    installer_runner.run(
        pip.venv_command(folder),
        pip.install_command(folder, locked=False, allow_source=False),
        stdin="demo-greeting\n",
        folder=folder,
    )
    installer_runner.run(
        (str(find_python(folder)), "-P", "-c", "import demo_greeting"), folder=folder
    )
    with pytest.raises(EvaluatorError, match="No module named"):
        installer_runner.run(
            (str(find_python(folder)), "-P", "-c", "import demo_missing"), folder=folder
        )


def find_pip(python: str) -> str:
    """Where the pip of a Python has the file that runs it."""
    code = "import pip; print(pip.__path__[0])"
    ran = subprocess.run((python, "-c", code), capture_output=True, text=True, check=False)
    return f"{ran.stdout.strip()}/__pip-runner__.py" if ran.stdout else ""
