"""The installer that is chosen is one that this machine has."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentci.execution.environments.installers import Pip, Uv, choose_installer, find_python
from agentci.execution.environments.key import find_base_python
from tests.execution.environments.package_index import PackageIndex
from tests.execution.environments.workshops import workshop_with
from tests.helpers.packages import copy_msgspec
from tests.helpers.support import ROOT

pytestmark = pytest.mark.slow

CHOICE = """
from agentci.execution.environments.installers import choose_installer
from tests.execution.environments.workshops import workshop_with
print(choose_installer(workshop_with("pip", index="https://a.example")).python)
"""


class TestTheChoice:
    def test_is_uv_where_there_is_one(self) -> None:
        chosen = choose_installer(workshop_with("uv", index="https://a.example"))
        assert chosen == Uv(program=str(Path(sys.executable).with_name("uv")))

    def test_is_the_pip_beside_us_where_there_is_no_uv(self) -> None:
        chosen = choose_installer(workshop_with("pip", index="https://a.example"))
        assert chosen == Pip(python=sys.executable)

    def test_is_the_pip_of_the_base_where_we_run_without_one(self, tmp_path: Path) -> None:
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
        assert asked.strip() in {find_base_python()[-1], "None"}


def test_where_there_is_no_pip_each_environment_gets_one(
    tmp_path: Path, index: PackageIndex
) -> None:
    workshop = workshop_with("pip", index=index.url)
    folder = tmp_path / "environment"
    file = tmp_path / "requirements.txt"
    file.write_text("demo-greeting\n")
    pip = Pip(python=None)
    workshop.run(pip.venv_command(folder))
    workshop.run(pip.install_command(folder, file, locked=False))
    assert workshop.succeeds((str(find_python(folder)), "-P", "-c", "import demo_greeting"))
    assert not workshop.succeeds((str(find_python(folder)), "-P", "-c", "import demo_missing"))
