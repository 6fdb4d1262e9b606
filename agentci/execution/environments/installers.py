"""The commands that make and fill an environment, with uv or pip, and what runs them."""

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from agentci._util.text import truncate
from agentci.errors import EvaluatorError
from agentci.execution.environments.key import find_base_python
from agentci.execution.executor_api import Executor

# uv takes settings from the folders above the one it is started in. Those of the workspace are
# not the user's to install by: a pull request may hold them.
CWD: Final = Path("/")

LAST_LINES: Final = 10
MAX_OUTPUT_CHARS: Final = 1200

# By what pip or uv says, in lower case.
HINTS: Final = {
    "do not match the hashes": "an index has other content than was locked: if that is meant,"
    " run `agentci lock` and review the change",
    "hash mismatch": "an index has other content than was locked: if that is meant,"
    " run `agentci lock` and review the change",
    "ensurepip": "install uv, or pip beside the Python that runs agentci",
    "no space left": "make room on the disk, or name another with --cache-dir",
}
DEFAULT_HINT: Final = "try the same with pip by hand; is an index that has it named and reachable?"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallerRunner:
    """Runs installers as an executor runs programs, so that a signal ends them, too.

    Attributes:
        environment: all that installers see of ours.
        search_path: folders in which ``uv`` is looked for, as in ``PATH``.
        timeout_seconds: for each step of an installation; most need one second, torch some hundred.
    """

    executor: Executor
    environment: Mapping[str, str] = field(repr=False)
    search_path: str
    timeout_seconds: float = 600.0

    def run(self, command: Sequence[str]) -> bytes:
        """Run one step to its end, and return what it printed to stdout.

        Raises:
            EvaluatorError: it failed; as the end of a sentence about the evaluator.
        """
        begun = time.monotonic()
        try:
            reply = self.executor.run(
                command,
                stdin=b"",
                timeout_seconds=self.timeout_seconds,
                cwd=CWD,
                environment=self.environment,
            )
        except EvaluatorError as error:
            if time.monotonic() - begun < self.timeout_seconds:
                raise make_install_error(f"{Path(command[0]).name} {error}") from None
            took = f"it took longer than {self.timeout_seconds:g}s and was ended"
            raise make_install_error(
                f"{took} (is the package index slow, or much to be built?)"
            ) from None
        if reply.exit_code != 0:
            said = reply.stderr.strip() or reply.stdout.decode("utf-8", "replace").strip()
            raise make_install_error(
                _format_last_lines(said) or f"exit code {reply.exit_code}", hint=_find_hint(said)
            )
        return reply.stdout

    def succeeds(self, command: Sequence[str]) -> bool:
        """Whether a command works on this machine."""
        try:
            self.run(command)
        except EvaluatorError:
            return False
        return True


def make_install_error(reason: str, *, hint: str = "") -> EvaluatorError:
    """The error of an evaluator that lacks what it needs."""
    way_out = f"\n({hint})" if hint else ""
    return EvaluatorError(
        f"could not install its requirements (requirements.txt): {reason}{way_out}"
    )


def _format_last_lines(said: str) -> str:
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    return truncate.middle("\n".join(lines[-LAST_LINES:]), MAX_OUTPUT_CHARS)


def _find_hint(said: str) -> str:
    heard = said.lower()
    return next((hint for words, hint in HINTS.items() if words in heard), DEFAULT_HINT)


InstallerCommand: TypeAlias = tuple[str, ...]

# The oldest Python that a lock is for.
OLDEST_PYTHON: Final = "3.11"


class Installer(Protocol):
    """Knows the commands of one installer."""

    def venv_command(self, folder: Path) -> InstallerCommand:
        """Make an empty environment of the Python that runs us, in a folder that is not there."""
        ...

    def install_command(self, folder: Path, file: Path, *, locked: bool) -> InstallerCommand:
        """Install what the requirements file ``file`` says into the environment ``folder``.

        Args:
            locked: the file names every package and its hashes, and nothing else is installed.
        """
        ...


class Uv(Struct, frozen=True, kw_only=True):
    """uv, in tenths of a second."""

    program: str

    def venv_command(self, folder: Path) -> InstallerCommand:
        """Make an empty environment."""
        return (self.program, "venv", "--quiet", "--no-project", "--python", sys.executable,
                str(folder))  # fmt: skip

    def install_command(self, folder: Path, file: Path, *, locked: bool) -> InstallerCommand:
        """Install into it."""
        strictly = ("--require-hashes", "--no-deps") if locked else ()
        return (self.program, "pip", "install", "--quiet", "--compile-bytecode", *strictly,
                "--python", str(find_python(folder)), "--requirements", str(file))  # fmt: skip

    def compile_command(self, file: Path) -> InstallerCommand:
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

    def venv_command(self, folder: Path) -> InstallerCommand:
        """Make an environment; with a pip of its own only where there is no other."""
        without = ("--without-pip",) if self.python else ()
        return (sys.executable, "-P", "-m", "venv", *without, str(folder))

    def install_command(self, folder: Path, file: Path, *, locked: bool) -> InstallerCommand:
        """Install into it."""
        strictly = ("--require-hashes", "--no-deps") if locked else ()
        return (*self._pip(folder), "install", "--quiet", "--compile", *strictly,
                "--requirement", str(file))  # fmt: skip

    def report_command(self, folder: Path, file: Path) -> InstallerCommand:
        """Print in JSON what would be installed into it."""
        return (*self._pip(folder), "install", "--quiet", "--dry-run", "--ignore-installed",
                "--report", "-", "--requirement", str(file))  # fmt: skip

    def _pip(self, folder: Path) -> InstallerCommand:
        if self.python:
            return (self.python, "-P", "-m", "pip", "--python", str(find_python(folder)))
        return (str(find_python(folder)), "-P", "-m", "pip")


def choose_installer(workshop: InstallerRunner) -> Uv | Pip:
    """Find the quickest installer of this machine."""
    uv = shutil.which("uv", path=workshop.search_path)
    if uv is not None:
        return Uv(program=os.path.abspath(uv))  # noqa: PTH100 (a shim is called by its own name)
    # An image may run us in an environment without pip, made by a Python that has it.
    for python in dict.fromkeys((sys.executable, find_base_python()[-1])):
        if workshop.succeeds((python, "-P", "-m", "pip", "--version")):
            return Pip(python=python)
    return Pip(python=None)


def find_python(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / "bin" / "python"
