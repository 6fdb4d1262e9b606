"""The commands that make and fill an environment with uv or pip, and the runner for them."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from agentci._util.text import truncate
from agentci.errors import EvaluatorError
from agentci.execution.environments.key import find_base_python
from agentci.execution.executor_api import Executor, ProgramTimeoutError

# uv reads settings from the folders above its working directory. Settings in the workspace must
# not apply: a pull request may contain them.
CWD: Final = Path("/")

LAST_LINES: Final = 10
MAX_OUTPUT_CHARS: Final = 1200

CHANGED_INDEX_HINT: Final = (
    "the index serves other content than was locked; if this is intended, run `agentci lock` and"
    " review the change"
)
# By text in the output of pip or uv, in lower case.
HINTS: Final = {
    "do not match the hashes": CHANGED_INDEX_HINT,
    "hash mismatch": CHANGED_INDEX_HINT,
    "ensurepip": "install uv, or install pip for the Python that runs agentci",
    "no space left": "free disk space, or use another disk with --cache-dir",
}
DEFAULT_HINT: Final = (
    "check that the configured package index has it and is reachable; try pip by hand"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallerRunner:
    """Runs installers through an executor, so that a signal ends them too.

    Attributes:
        executor: runs the commands.
        environment: the complete environment of the installers.
        search_path: folders to search for ``uv``, as in ``PATH``.
        timeout_seconds: timeout of each installation step; most take one second, torch about a
            hundred.
    """

    executor: Executor
    environment: Mapping[str, str] = field(repr=False)
    search_path: str
    timeout_seconds: float = 600.0

    def run(self, command: Sequence[str]) -> bytes:
        """Run one step to its end, and return its stdout.

        Raises:
            EvaluatorError: the step failed; the message completes a sentence about the evaluator.
        """
        try:
            response = self.executor.run(
                command,
                stdin=b"",
                timeout_seconds=self.timeout_seconds,
                cwd=CWD,
                environment=self.environment,
            )
        except ProgramTimeoutError:
            raise make_install_error(
                f"{Path(command[0]).name} timed out after {self.timeout_seconds:g} s",
                hint="the package index is slow, or a package takes long to build",
            ) from None
        except EvaluatorError as error:
            raise make_install_error(f"{Path(command[0]).name} {error}") from None
        if response.exit_code != 0:
            output = response.stderr.strip() or response.stdout.decode("utf-8", "replace").strip()
            raise make_install_error(
                _format_last_lines(output) or f"exit code {response.exit_code}",
                hint=_find_hint(output),
            )
        return response.stdout

    def succeeds(self, command: Sequence[str]) -> bool:
        """Whether a command succeeds on this machine."""
        try:
            self.run(command)
        except EvaluatorError:
            return False
        return True


def make_install_error(reason: str, *, hint: str = "") -> EvaluatorError:
    """Make the error of an evaluator whose requirements cannot be installed."""
    return EvaluatorError(
        f"could not install its requirements (requirements.txt): {reason}"
        + (f"\n({hint})" if hint else "")
    )


def _format_last_lines(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return truncate.middle("\n".join(lines[-LAST_LINES:]), MAX_OUTPUT_CHARS)


def _find_hint(output: str) -> str:
    text = output.lower()
    return next((hint for words, hint in HINTS.items() if words in text), DEFAULT_HINT)


InstallerCommand: TypeAlias = tuple[str, ...]

# The oldest Python that a lock supports.
OLDEST_PYTHON: Final = "3.11"


class Installer(Protocol):
    """The commands of one installer."""

    def venv_command(self, folder: Path) -> InstallerCommand:
        """Return the command that makes an empty environment of this Python in a new folder."""
        ...

    def install_command(self, folder: Path, file: Path, *, locked: bool) -> InstallerCommand:
        """Return the command that installs requirements file ``file`` into environment ``folder``.

        Args:
            folder: the environment.
            file: the requirements file.
            locked: whether the file names every package with its hashes; nothing else is then
                installed.
        """
        ...


class Uv(Struct, frozen=True, kw_only=True):
    """The commands of uv, which takes tenths of a second.

    Attributes:
        program: the absolute path of uv.
    """

    program: str

    def venv_command(self, folder: Path) -> InstallerCommand:
        """See :class:`Installer`."""
        return (self.program, "venv", "--quiet", "--no-project", "--python", sys.executable,
                str(folder))  # fmt: skip

    def install_command(self, folder: Path, file: Path, *, locked: bool) -> InstallerCommand:
        """See :class:`Installer`."""
        strictly = ("--require-hashes", "--no-deps") if locked else ()
        return (self.program, "pip", "install", "--quiet", "--compile-bytecode", *strictly,
                "--python", str(find_python(folder)), "--requirements", str(file))  # fmt: skip

    def compile_command(self, file: Path) -> InstallerCommand:
        """Return the command that prints all packages for any platform, with their hashes."""
        return (self.program, "pip", "compile", "--quiet", "--universal", "--generate-hashes",
                "--no-header", "--no-annotate", "--python-version", OLDEST_PYTHON,
                "--python", sys.executable, str(file))  # fmt: skip


class Pip(Struct, frozen=True, kw_only=True):
    """The commands of the standard library's ``venv`` and of pip.

    Attributes:
        python: a Python with a pip that can install into other environments; None if each
            environment needs its own pip.
    """

    python: str | None

    def venv_command(self, folder: Path) -> InstallerCommand:
        """See :class:`Installer`; the environment has its own pip only if there is no other."""
        without = ("--without-pip",) if self.python else ()
        return (sys.executable, "-P", "-m", "venv", *without, str(folder))

    def install_command(self, folder: Path, file: Path, *, locked: bool) -> InstallerCommand:
        """See :class:`Installer`."""
        strictly = ("--require-hashes", "--no-deps") if locked else ()
        return (*self._pip(folder), "install", "--quiet", "--compile", *strictly,
                "--requirement", str(file))  # fmt: skip

    def report_command(self, folder: Path, file: Path) -> InstallerCommand:
        """Return the command that prints, as JSON, the packages that would be installed."""
        return (*self._pip(folder), "install", "--quiet", "--dry-run", "--ignore-installed",
                "--report", "-", "--requirement", str(file))  # fmt: skip

    def _pip(self, folder: Path) -> InstallerCommand:
        if self.python:
            return (self.python, "-P", "-m", "pip", "--python", str(find_python(folder)))
        return (str(find_python(folder)), "-P", "-m", "pip")


def choose_installer(runner: InstallerRunner) -> Uv | Pip:
    """Find the fastest installer on this machine."""
    uv = shutil.which("uv", path=runner.search_path)
    if uv is not None:
        return Uv(program=os.path.abspath(uv))  # noqa: PTH100 (a shim must keep its own name)
    # In an image, agentci may run in an environment without pip, made by a Python with pip.
    for python in dict.fromkeys((sys.executable, find_base_python()[-1])):
        if runner.succeeds((python, "-P", "-m", "pip", "--version")):
            return Pip(python=python)
    return Pip(python=None)


def find_python(folder: Path) -> Path:
    """Return the path of an environment's interpreter."""
    return folder / "bin" / "python"
