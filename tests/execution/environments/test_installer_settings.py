"""Installers in the sandbox get the user's settings of pip and uv."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agentci._util.workspace import find_workspace
from agentci.execution.installers import (
    HomeFiles,
    InstallerRunner,
    find_local_sources,
    find_settings,
    make_private_environment,
    read_home_files,
)
from agentci.execution.local import LocalExecutor
from agentci.execution.requirements import Requirements
from tests.execution.environments.installer_runners import (
    TOOLS,
    make_environment_store,
    make_installer_runner,
)
from tests.execution.environments.package_index import PackageIndex


def find_home_files(environment: Mapping[str, str], *, with_netrc: bool) -> HomeFiles:
    workspace = find_workspace(Path.cwd())
    return read_home_files(find_settings(environment, workspace, with_netrc=with_netrc))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with settings of pip and uv, and with credentials."""
    for name in (".pip/pip.conf", ".config/pip/pip.conf", ".config/uv/uv.toml", ".netrc"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return tmp_path


def test_settings_and_credentials_are_copied(home: Path) -> None:
    found = dict(find_home_files({"HOME": str(home)}, with_netrc=True))
    assert found == {
        name: name.encode()
        for name in (".pip/pip.conf", ".config/pip/pip.conf", ".config/uv/uv.toml", ".netrc")
    }
    assert ".netrc" not in dict(find_home_files({"HOME": str(home)}, with_netrc=False))


def test_named_settings_replace_those_of_the_user(home: Path) -> None:
    (home / "other.conf").write_text("other")
    environment = {"HOME": str(home), "PIP_CONFIG_FILE": str(home / "other.conf")}
    found = dict(find_home_files(environment, with_netrc=False))
    assert found[".config/pip/pip.conf"] == b"other"
    assert ".pip/pip.conf" not in found
    assert "PIP_CONFIG_FILE" not in make_private_environment(environment)
    disabled = {"PIP_CONFIG_FILE": os.devnull}
    assert make_private_environment(disabled) == disabled


def test_user_without_settings_has_no_files(tmp_path: Path) -> None:
    assert find_home_files({"HOME": str(tmp_path)}, with_netrc=True) == ()
    assert find_home_files({}, with_netrc=True) == ()


def test_local_sources_are_readable(tmp_path: Path) -> None:
    wheels, index = tmp_path / "wheels", tmp_path / "index"
    wheels.mkdir()
    index.mkdir()
    environment = {
        "PIP_FIND_LINKS": f"{wheels} https://example.com/{wheels}",
        "UV_INDEX": "/nonexistent",
        "PATH": str(tmp_path),
    }
    files = ((".config/pip/pip.conf", f"[global]\nindex-url=file://{index}\n".encode()),)
    found = find_local_sources(environment, files)
    assert {wheels, index} <= {*found}
    assert tmp_path not in found
    assert Path("/nonexistent") not in found


class TestSettingsInWorkspace:
    """A workspace whose installers print their home and a file beside the workspace."""

    PRINT_ALL = """\
import os, sys
for folder, _, names in os.walk(os.environ["HOME"]):
    for name in names:
        print(open(os.path.join(folder, name)).read())
try:
    print(open(sys.argv[1]).read())
except PermissionError:
    print("not permitted")
"""

    @pytest.fixture
    def top(self) -> Iterator[Path]:
        with TemporaryDirectory(dir="/tmp") as folder:
            top = Path(os.path.realpath(folder))
            top.chmod(0o755)
            (top / "ws").mkdir()
            (top / "file").write_text("a secret")
            yield top

    def print_all(self, top: Path, **variables: str) -> str:
        runner = InstallerRunner(
            executor=LocalExecutor(),
            environment={"PATH": os.environ["PATH"], **variables},
            search_path="",
            workspace=find_workspace(top / "ws"),
        )
        command = (sys.executable, "-P", "-c", self.PRINT_ALL, str(top / "file"))
        return runner.run(command).decode()

    @pytest.mark.parametrize(
        ("name", "variable", "value"),
        [
            ("pip.conf", "PIP_CONFIG_FILE", "pip.conf"),
            ("pip.conf", "PIP_CONFIG_FILE", "{ws}/pip.conf"),
            ("uv.toml", "UV_CONFIG_FILE", "{ws}/uv.toml"),
            (".config/pip/pip.conf", "HOME", "{ws}"),
            (".pip/pip.conf", "HOME", "{ws}"),
            (".netrc", "HOME", "{ws}"),
            ("uv/uv.toml", "XDG_CONFIG_HOME", "{ws}"),
        ],
    )
    def test_planted_link_is_not_read(
        self, top: Path, name: str, variable: str, value: str
    ) -> None:
        file = top / "ws" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(top / "file")
        variables = {variable: value.format(ws=top / "ws")}
        assert "a secret" not in self.print_all(top, **variables)
        file.unlink()
        file.write_text("own settings")
        assert "own settings" in self.print_all(top, **variables)

    def test_settings_make_nothing_outside_readable(self, top: Path) -> None:
        for folder in (top / "ws", top):
            (folder / "pip.conf").write_text(f"[global]\nfind-links = {top}/file\n")
        inside = self.print_all(top, PIP_CONFIG_FILE=f"{top}/ws/pip.conf")
        assert ("find-links" in inside, "not permitted" in inside) == (True, True)
        assert "a secret" in self.print_all(top, PIP_CONFIG_FILE=f"{top}/pip.conf")


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_index_in_settings_of_the_user_is_used(
    tool: str, tmp_path: Path, index: PackageIndex
) -> None:
    settings = {
        "pip": (".config/pip/pip.conf", f"[global]\nindex-url = {index.url}\n"),
        "uv": (".config/uv/uv.toml", f'index-url = "{index.url}"\n'),
    }
    name, content = settings[tool]
    file = tmp_path / "home" / name
    file.parent.mkdir(parents=True)
    file.write_text(content)
    file.chmod(0o600)
    (tmp_path / "home").chmod(0o700)
    installer_runner = make_installer_runner(tool, index="", home=str(tmp_path / "home"))
    environments = make_environment_store(tmp_path / "cache", installer_runner)
    assert environments.get_python(Requirements(text="demo-words"), name="words")
    assert index.count("demo-words")
