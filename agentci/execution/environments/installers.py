"""The commands that make an environment and fill it: uv's where there is uv, else pip's."""

import os
import shutil
import sys
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from agentci.execution.environments.installer_runner import Workshop
from agentci.execution.environments.key import base_python

Command: TypeAlias = tuple[str, ...]

# The oldest Python that a lock is for.
OLDEST_PYTHON: Final = "3.11"


class Installer(Protocol):
    """Knows the commands of one installer."""

    def making(self, folder: Path) -> Command:
        """Make an empty environment of the Python that runs us, in a folder that is not there."""
        ...

    def installing(self, folder: Path, file: Path, *, locked: bool) -> Command:
        """Install what the requirements file ``file`` says into the environment ``folder``.

        Args:
            locked: the file names every package and its hashes, and nothing else is installed.
        """
        ...


class Uv(Struct, frozen=True, kw_only=True):
    """uv, in tenths of a second."""

    program: str

    def making(self, folder: Path) -> Command:
        """Make an empty environment."""
        return (self.program, "venv", "--quiet", "--no-project", "--python", sys.executable,
                str(folder))  # fmt: skip

    def installing(self, folder: Path, file: Path, *, locked: bool) -> Command:
        """Install into it."""
        strictly = ("--require-hashes", "--no-deps") if locked else ()
        return (self.program, "pip", "install", "--quiet", "--compile-bytecode", *strictly,
                "--python", str(python_in(folder)), "--requirements", str(file))  # fmt: skip

    def resolving(self, file: Path) -> Command:
        """Print all packages that ``file`` comes to, on any platform, with their hashes."""
        return (self.program, "pip", "compile", "--quiet", "--universal", "--generate-hashes",
                "--no-header", "--no-annotate", "--python-version", OLDEST_PYTHON,
                "--python", sys.executable, str(file))  # fmt: skip


class Pip(Struct, frozen=True, kw_only=True):
    """The standard library's ``venv``, and pip.

    Attributes:
        python: has a pip that can work on other environments; None where each needs its own.
    """

    python: str | None

    def making(self, folder: Path) -> Command:
        """Make an environment; with a pip of its own only where there is no other."""
        without = ("--without-pip",) if self.python else ()
        return (sys.executable, "-P", "-m", "venv", *without, str(folder))

    def installing(self, folder: Path, file: Path, *, locked: bool) -> Command:
        """Install into it."""
        strictly = ("--require-hashes", "--no-deps") if locked else ()
        return (*self._pip(folder), "install", "--quiet", "--compile", *strictly,
                "--requirement", str(file))  # fmt: skip

    def reporting(self, folder: Path, file: Path) -> Command:
        """Print in JSON what would be installed into it."""
        return (*self._pip(folder), "install", "--quiet", "--dry-run", "--ignore-installed",
                "--report", "-", "--requirement", str(file))  # fmt: skip

    def _pip(self, folder: Path) -> Command:
        if self.python:
            return (self.python, "-P", "-m", "pip", "--python", str(python_in(folder)))
        return (str(python_in(folder)), "-P", "-m", "pip")


def choose(workshop: Workshop) -> Uv | Pip:
    """Find the quickest installer of this machine."""
    uv = shutil.which("uv", path=workshop.search_path)
    if uv is not None:
        return Uv(program=os.path.abspath(uv))  # noqa: PTH100 (a shim is called by its own name)
    # An image may run us in an environment without pip, made by a Python that has it.
    for python in dict.fromkeys((sys.executable, base_python()[-1])):
        if workshop.succeeds((python, "-P", "-m", "pip", "--version")):
            return Pip(python=python)
    return Pip(python=None)


def python_in(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / "bin" / "python"
