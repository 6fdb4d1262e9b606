"""Run uv or pip, with the user's settings: make and fill an environment, resolve requirements.

Build scripts of packages are untrusted code, so installers run in the sandbox, and without
``allow_source`` they install only wheels, which are not built. A wheel's code could still run where
a Python starts in the environment that it is installed in, so none does: modules are compiled by
another Python, without ``site``.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from agentci._util.files import FOLDER_MODE, set_mode
from agentci._util.text import truncate
from agentci._util.workspace import ResolvedPath, Workspace, read_file
from agentci.errors import EvaluatorError, InputError
from agentci.execution.child.tmpdir import remove_tmpdir
from agentci.execution.executor_api import Executor, ProgramTimeoutError, SandboxPolicy
from agentci.execution.requirements import (
    Requirements,
    check_lockable,
    find_base_python,
    is_locked_line,
    list_wanted_lines,
    normalize_name,
)

# Settings that all users of this machine may read.
SYSTEM_SETTINGS: Final = ("/etc/pip.conf", "/etc/xdg/pip", "/etc/uv")
PIP_SETTINGS: Final = "pip/pip.conf"
UV_SETTINGS: Final = "uv/uv.toml"
# The variable that names a file to use instead, and the file's path below ``.config``.
SETTINGS_VARIABLES: Final = {"PIP_CONFIG_FILE": PIP_SETTINGS, "UV_CONFIG_FILE": UV_SETTINGS}
MAX_BYTES: Final = 1024**2

HomeFiles = tuple[tuple[str, bytes], ...]


def make_private_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Make the environment of an installer whose home has the files of ``read_home_files``."""
    return {
        name: value
        for name, value in environment.items()
        if name not in SETTINGS_VARIABLES or value == os.devnull
    }


def find_settings(
    environment: Mapping[str, str], workspace: Workspace, *, with_netrc: bool
) -> dict[str, ResolvedPath]:
    """Find the files with the user's settings, by their path in a home; some may not exist.

    Without them, an installer would look up names in another index than the user means.

    Args:
        environment: the environment of installers, with ``HOME``.
        workspace: a link in it leads to no settings outside.
        with_netrc: whether the credentials in ``.netrc`` are included.
    """
    home = Path(environment.get("HOME") or "/nonexistent")
    folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    found = {
        f".config/{name}": Path(environment.get(variable) or folder / name)
        for variable, name in SETTINGS_VARIABLES.items()
    }
    if not environment.get("PIP_CONFIG_FILE"):
        found[".pip/pip.conf"] = home / ".pip/pip.conf"
    if with_netrc:
        found[".netrc"] = home / ".netrc"
    resolved = {name: workspace.find_given(path) for name, path in found.items()}
    return {name: path for name, path in resolved.items() if path is not None}


def read_home_files(settings: Mapping[str, ResolvedPath]) -> HomeFiles:
    """Read the files of ``find_settings`` that exist."""
    return tuple(_read_files(settings))


def _read_files(settings: Mapping[str, ResolvedPath]) -> Iterator[tuple[str, bytes]]:
    for name, path in settings.items():
        with suppress(InputError):
            yield name, read_file(path, name=name, limit_bytes=MAX_BYTES)


def find_local_sources(
    environment: Mapping[str, str], home_files: Iterable[tuple[str, bytes]]
) -> tuple[Path, ...]:
    """Return the files and folders on this machine that the user's settings name.

    These are indexes, folders of packages and certificates.

    Args:
        environment: the environment of installers.
        home_files: files from outside the workspace; a pull request can change the others.
    """
    texts = (
        *(value for name, value in environment.items() if name.startswith(("PIP_", "UV_", "SSL_"))),
        *(content.decode("utf-8", "replace") for name, content in home_files if name != ".netrc"),
    )
    words = (word for text in texts for word in re.split(r"[\s,;='\"\[\]]+", text))
    paths = (word.removeprefix("file://") for word in (*words, *SYSTEM_SETTINGS))
    return tuple(Path(path) for path in dict.fromkeys(paths) if _is_on_disk(path))


def _is_on_disk(path: str) -> bool:
    return path.startswith("/") and "\0" not in path and os.path.exists(path)  # noqa: PTH110 (raises no OSError)


# uv reads settings from the folders above its working directory. Settings in the workspace must
# not apply: a pull request may contain them.
CWD: Final = Path("/")

# Installers need more than evaluators: the libraries of torch are several gigabytes.
MEMORY_MB: Final = 8192
PROCESSES: Final = 1024
FILES_MB: Final = 24 * 1024

# Runs the commands in its arguments, each a JSON list. Environments are readable for all users.
RUN_COMMANDS: Final = """
import json, os, subprocess, sys
os.umask(0o022)
for argument in sys.argv[1:]:
    command = json.loads(argument)
    try:
        code = subprocess.call(command)
    except OSError as error:
        sys.exit(f"{command[0]} could not be started: {error.strerror}")
    if code:
        sys.exit(code)
"""
# Compiles the modules in a folder; those that are not valid Python stay as they are.
COMPILE_MODULES: Final = """
import compileall, sys
try:
    compileall.compile_dir(sys.argv[1], quiet=2, workers=0)
except OSError:  # without shared memory, only one process can work
    compileall.compile_dir(sys.argv[1], quiet=2)
"""
# Runs pip: from the file in the first argument, or the environment's own. Without `allow_source`,
# no process may be started: pip ignores `--only-binary` for packages from a URL.
RUN_PIP: Final = """
import runpy, sys
_, runner, allows_source, *arguments = sys.argv
def refuse(event, _):
    if event in {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn"}:
        raise PermissionError("a package without a wheel is built only with `allow_source: true`")
if allows_source != "True":
    sys.addaudithook(refuse)
sys.argv = [runner or "pip", *arguments]
if runner:
    runpy.run_path(runner, run_name="__main__")
else:
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
FIND_PIP: Final = """
import os, pip
file = os.path.join(os.path.dirname(os.path.abspath(pip.__file__)), "__pip-runner__.py")
print(file if os.path.isfile(file) else "")
"""

LAST_LINES: Final = 10
MAX_OUTPUT_CHARS: Final = 1200

CHANGED_INDEX_HINT: Final = (
    "the index serves other content than was locked; if this is intended, run `agentci lock` and"
    " review the change"
)
WHEEL_HINT: Final = (
    "a package without a wheel for this machine is built only with `allow_source: true` in the"
    " entry; otherwise check that the configured package index has it"
)
# By text in the output of pip or uv, in lower case.
HINTS: Final = {
    "do not match the hashes": CHANGED_INDEX_HINT,
    "hash mismatch": CHANGED_INDEX_HINT,
    "ensurepip": "install uv, or install pip for the Python that runs agentci",
    "no space left": "free disk space, or use another disk with --cache-dir",
    "and was killed": "packages and downloads are too large; use a smaller package",
    "allow_source": "its build scripts then run in the sandbox",
    "no usable wheel": WHEEL_HINT,
    "no wheels with a matching": WHEEL_HINT,
    "building from source is disabled": WHEEL_HINT,
    "building source distributions": WHEEL_HINT,
    "no matching distribution found": WHEEL_HINT,
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
        workspace: links in it make nothing outside readable for the installers.
        timeout_seconds: timeout of each installation step; most take one second, torch about a
            hundred.
    """

    executor: Executor
    environment: Mapping[str, str] = field(repr=False)
    search_path: str
    workspace: Workspace
    timeout_seconds: float = 600.0

    def run(
        self,
        *commands: Sequence[str],
        stdin: str = "",
        folder: Path | None = None,
        allow_source: bool = False,
    ) -> bytes:
        """Run commands one after another in one sandbox, and return their stdout.

        Args:
            commands: the commands; one that fails is the last to run.
            stdin: what the commands read from stdin.
            folder: an existing folder that they may change; None for no folder.
            allow_source: whether they may run build scripts; these must not see the user's
                ``.netrc``.

        Raises:
            EvaluatorError: a command failed; the message completes a sentence about the evaluator.
        """
        name = Path(commands[0][0]).name
        settings = find_settings(self.environment, self.workspace, with_netrc=not allow_source)
        home_files = read_home_files(settings)
        outer = [each for each in home_files if not self.workspace.contains(settings[each[0]].path)]
        sources = find_local_sources(self.environment, outer)
        readable = (*_list_programs(commands), *sources)
        try:
            response = self.executor.run(
                (sys.executable, "-I", "-S", "-c", RUN_COMMANDS, *map(json.dumps, commands)),
                stdin=stdin.encode(),
                timeout_seconds=self.timeout_seconds,
                cwd=CWD,
                environment=make_private_environment(self.environment),
                sandbox_policy=SandboxPolicy(
                    readable=tuple(filter(None, map(self.workspace.find_given, readable))),
                    workspace=self.workspace.root,
                    interpreter=sys.executable,
                    writable=folder,
                    home_files=home_files,
                    memory_mb=MEMORY_MB,
                    processes=PROCESSES,
                    file_mb=FILES_MB,
                    folder_mb=FILES_MB,
                ),
            )
        except ProgramTimeoutError:
            raise make_install_error(
                f"{name} timed out after {self.timeout_seconds:g} s",
                hint="the package index is slow, or a package takes long to build",
            ) from None
        except EvaluatorError as error:
            raise make_install_error(f"{name} {error}") from None
        if response.exit_code != 0:
            output = response.stderr.strip() or response.stdout.decode("utf-8", "replace").strip()
            raise make_install_error(
                _format_last_lines(output) or f"exit code {response.exit_code}",
                hint=_find_hint(output),
            )
        return response.stdout


def _list_programs(commands: Sequence[Sequence[str]]) -> list[Path]:
    """List the programs of ``commands`` with the targets of links, outside environments."""
    named = [Path(command[0]) for command in commands]
    return [way for path in named if os.path.lexists(path) for way in (path, path.resolve())]


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

STDIN_FILE: Final = "/dev/stdin"
# The oldest Python that a lock supports.
OLDEST_PYTHON: Final = "3.11"


class Installer(Protocol):
    """The commands of one installer; they read requirements from stdin."""

    def venv_command(self, folder: Path) -> InstallerCommand:
        """Return the command that makes an empty environment of this Python in a folder."""
        ...

    def install_command(
        self, folder: Path, *, locked: bool, allow_source: bool
    ) -> InstallerCommand:
        """Return the command that installs requirements into environment ``folder``.

        Args:
            folder: the environment.
            locked: whether the requirements name every package with its hashes; nothing else is
                then installed.
            allow_source: whether packages without a wheel are built.
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

    def install_command(
        self, folder: Path, *, locked: bool, allow_source: bool
    ) -> InstallerCommand:
        """See :class:`Installer`."""
        strictly = ("--require-hashes", "--no-deps") if locked else ()
        return (self.program, "pip", "install", "--quiet", *strictly,
                *_forbid_source("--no-build", allow_source=allow_source),
                "--python", str(find_python(folder)), "--requirements", "-")  # fmt: skip

    def compile_command(self, *, allow_source: bool) -> InstallerCommand:
        """Return the command that prints all packages for any platform, with their hashes."""
        return (self.program, "pip", "compile", "--quiet", "--universal", "--generate-hashes",
                "--no-header", "--no-annotate", "--python-version", OLDEST_PYTHON,
                *_forbid_source("--no-build", allow_source=allow_source),
                "--python", sys.executable, "-")  # fmt: skip


class Pip(Struct, frozen=True, kw_only=True):
    """The commands of the standard library's ``venv`` and of pip.

    Attributes:
        runner: pip's file that runs it in other environments; empty if each environment needs its
            own pip.
    """

    runner: str

    def venv_command(self, folder: Path) -> InstallerCommand:
        """See :class:`Installer`; the environment has its own pip only if there is no other."""
        without = ("--without-pip",) if self.runner else ()
        return (sys.executable, "-P", "-m", "venv", *without, str(folder))

    def install_command(
        self, folder: Path, *, locked: bool, allow_source: bool
    ) -> InstallerCommand:
        """See :class:`Installer`."""
        strictly = ("--require-hashes", "--no-deps") if locked else ()
        return (*self._pip(folder, allow_source=allow_source),
                "install", "--quiet", "--no-compile", *strictly,
                *_forbid_source("--only-binary", ":all:", allow_source=allow_source),
                "--requirement", STDIN_FILE)  # fmt: skip

    def report_command(self, folder: Path, *, allow_source: bool) -> InstallerCommand:
        """Return the command that prints, as JSON, the packages that would be installed."""
        return (*self._pip(folder, allow_source=allow_source),
                "install", "--quiet", "--dry-run", "--ignore-installed",
                *_forbid_source("--only-binary", ":all:", allow_source=allow_source),
                "--report", "-", "--requirement", STDIN_FILE)  # fmt: skip

    def _pip(self, folder: Path, *, allow_source: bool) -> InstallerCommand:
        return (str(find_python(folder)), "-P", "-c", RUN_PIP, self.runner, str(allow_source))


def make_compile_command(folder: Path) -> InstallerCommand:
    """Return the command that compiles the modules of an environment without running any code."""
    return (sys.executable, "-I", "-S", "-c", COMPILE_MODULES, str(folder / "lib"))


def _forbid_source(*options: str, allow_source: bool) -> InstallerCommand:
    return () if allow_source else options


def choose_installer(runner: InstallerRunner) -> Uv | Pip:
    """Find the fastest installer on this machine."""
    uv = shutil.which("uv", path=runner.search_path)
    if uv is not None:
        return Uv(program=os.path.abspath(uv))  # noqa: PTH100 (a shim must keep its own name)
    # In an image, agentci may run in an environment without pip, made by a Python with pip.
    for python in dict.fromkeys((sys.executable, find_base_python()[-1])):
        with suppress(EvaluatorError):
            return Pip(runner=runner.run((python, "-P", "-c", FIND_PIP)).decode().strip())
    return Pip(runner="")


def find_python(folder: Path) -> Path:
    """Return the path of an environment's interpreter."""
    return folder / "bin" / "python"


class ResolvedRequirements(Struct, frozen=True, kw_only=True):
    """Resolved packages with their dependencies.

    Attributes:
        lines: one ``name==1.2 --hash=sha256:...`` per package, sorted, without indexes.
        universal: whether the lines are valid for every supported platform and Python; otherwise
            only for the current ones.
    """

    lines: tuple[str, ...]
    universal: bool


def resolve_requirements(
    requirements: Requirements, *, runner: InstallerRunner
) -> ResolvedRequirements:
    """Find the newest compatible packages, ignoring ``requirements.locked``.

    Raises:
        EvaluatorError: there are none, or they cannot be locked; the message completes a sentence
            about the evaluator.
    """
    allow_source = requirements.allow_source
    lines = Requirements(text=requirements.text, allow_source=allow_source).parse_lines()
    check_lockable(lines)
    installer = choose_installer(runner)
    try:
        text = "".join(f"{line}\n" for line in (*lines.options, *list_wanted_lines(lines)))
        if isinstance(installer, Uv):
            command = installer.compile_command(allow_source=allow_source)
            printed = runner.run(command, stdin=text, allow_source=allow_source)
            found = _parse_compiled(printed.decode())
        else:
            found = _resolve_with_pip(installer, text, runner, allow_source=allow_source)
    except OSError as error:
        raise make_install_error(str(error)) from None
    return ResolvedRequirements(lines=_check_locked(found), universal=isinstance(installer, Uv))


def _parse_compiled(printed: str) -> list[str]:
    """Parse the output of uv into one line per package."""
    lines = re.sub(r"\s*\\\n\s*", " ", printed).splitlines()
    packages = [line.split(" --hash=") for line in lines if not line.startswith(("-", "#"))]
    return [
        _format_locked_line(package.strip(), hashes)
        for package, *hashes in packages
        if package.strip()
    ]


def _resolve_with_pip(
    pip: Pip, text: str, runner: InstallerRunner, *, allow_source: bool
) -> list[str]:
    folder = Path(tempfile.mkdtemp(prefix="agentci-"))
    try:
        set_mode(folder, FOLDER_MODE)  # installers may run as another user
        printed = runner.run(
            pip.venv_command(folder),
            pip.report_command(folder, allow_source=allow_source),
            stdin=text,
            folder=folder,
            allow_source=allow_source,
        )
    finally:
        remove_tmpdir(os.fsencode(folder))
    return [_format_reported_package(each) for each in json.loads(printed)["install"]]


def _format_reported_package(report: dict[str, Any]) -> str:
    metadata = report["metadata"]
    hashes = report["download_info"].get("archive_info", {}).get("hashes", {})
    package = f"{normalize_name(metadata['name'])}=={metadata['version']}"
    return _format_locked_line(
        package, [f"{algorithm}:{digest}" for algorithm, digest in hashes.items()]
    )


def _format_locked_line(package: str, hashes: Iterable[str]) -> str:
    kept = sorted({each.strip() for each in hashes if each.startswith("sha256:")})
    return " ".join([package, *(f"--hash={each}" for each in kept)])


def _check_locked(lines: Iterable[str]) -> tuple[str, ...]:
    checked = tuple(sorted(set(lines)))
    for line in checked:
        if not is_locked_line(line):
            raise make_install_error(
                f"{line.partition(' --hash')[0]} cannot be locked: its index provides no sha256"
            )
    return checked
