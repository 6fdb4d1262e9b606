"""What the key of a program's cached responses is made from: the program and how it is run."""

import os
import platform
import shutil
import site
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.child_programs import GRADE_PATH
from agentci._util.workspace import resolve_path
from agentci.execution.executor_api import ProgramJob
from agentci.execution.runtimes import NODE, PYTHON, find_interpreter
from agentci.model.values import Json

SCRIPT_SUFFIXES: Final = frozenset({*NODE.EXTENSIONS, *PYTHON.EXTENSIONS})

# Files with further import paths, and folders that describe an installed distribution.
PTH_SUFFIX: Final = ".pth"
METADATA_SUFFIXES: Final = (".dist-info", ".egg-info")
# Debian's Python also searches here.
DEBIAN_PREFIX: Final = "/usr/local"


class CacheableProgram(Struct, frozen=True, kw_only=True):
    """A program and how it is run, without its stdin.

    Attributes:
        name: of the evaluator, for messages.
        job: how it is run; its stdin is not part of the key.
        executor: name of the executor.
        variables: environment variables from `env` of the evaluator's entry, and others that can
            change what it prints.
        files: the program's file; for a command line, the files that it names.
        command_line: the command line in the config; empty for a program.
        tree: folder of a fetched program, named by its digest; None for other programs.
        input_digest: digest of everything that the program can read; None if it can read the
            workspace.
    """

    name: str
    job: ProgramJob
    executor: str
    variables: Mapping[str, str]
    files: tuple[Path, ...]
    command_line: tuple[str, ...] = ()
    tree: Path | None = None
    input_digest: str | None = None

    def find_folders(self) -> tuple[Path, ...]:
        """The folders of the program or of a command's scripts, and of the targets of links.

        A command's scripts are the files in it that are executable or have the extension of a
        supported language; if there are none, its first file.
        """
        scripts = [each for each in self.files if not self.command_line or _is_script(each)]
        chosen = scripts or self.files[:1]
        folders = (path.parent for each in chosen for path in (each, resolve_path(each)))
        return tuple(dict.fromkeys(folders))


def _is_script(path: Path) -> bool:
    return path.suffix in SCRIPT_SUFFIXES or os.access(path, os.X_OK)


def make_repeat_key(key: bytes, ordinal: int) -> bytes:
    """The key of the response to repeat ``ordinal`` of a request; that of repeat 0 is ``key``."""
    return sha256(b"repeat %d " % ordinal + key).digest() if ordinal else key


class Interpreters:
    """Describes the interpreters in commands, each once per run.

    Args:
        search_path: folders with interpreters, as in ``PATH``.
    """

    def __init__(self, search_path: str) -> None:
        self._search_path = search_path
        self._known: dict[str, Json] = {}

    def describe(self, command: Sequence[str], programs: Collection[Path]) -> list[Json]:
        """What of a command can change the output, apart from the ``programs`` in it.

        That is each word, or the version of the interpreter and its packages that it names; if the
        command begins with a script, also those of the interpreter in its first line.

        Raises:
            OSError: an interpreter does not exist any more.
        """
        words = [part for part in command if part != GRADE_PATH and Path(part) not in programs]
        interpreters = () if command[0] in words else self._read_shebang(Path(command[0]))
        return [self._describe(part) for part in (*interpreters, *words)]

    def _read_shebang(self, program: Path) -> Iterator[str]:
        """The interpreter in a script's first line; after ``env`` also the one that it starts."""
        interpreter = find_interpreter(program)
        if interpreter:
            yield interpreter
        if Path(interpreter).name == "env":
            with program.open("rb") as file:
                words = os.fsdecode(file.readline()).split()[1:]
            yield from (each for each in words if not each.startswith("-") and "=" not in each)

    def _describe(self, part: str) -> Json:
        if part not in self._known:
            self._known[part] = _describe_word(shutil.which(part, path=self._search_path) or part)
        return self._known[part]


def list_package_folders(python: str) -> tuple[str, ...]:
    """The package folders of ``python``; some may not exist."""
    if python == sys.executable:
        return (*site.getsitepackages(), site.getusersitepackages())
    programs = (python, os.path.realpath(python))
    prefixes = dict.fromkeys(
        [*(Path(each).parent.parent for each in programs), Path(DEBIAN_PREFIX)]
    )
    found = (path for each in prefixes for path in each.glob("lib*/python3*/*-packages"))
    return (*map(str, found), site.getusersitepackages())


def _describe_word(part: str) -> Json:
    """A word of a command; a program's path with its version and its installed packages."""
    path = os.path.realpath(part)
    if not (Path(part).is_absolute() and Path(path).is_file()):
        return part
    known: list[Json] = [platform.machine()]
    if path == os.path.realpath(sys.executable):
        known.append(sys.version)
    else:
        status = Path(path).stat()
        known += [path, status.st_size, status.st_mtime_ns]
    if Path(path).name.startswith("python"):
        known += [_digest_packages(Path(folder)) for folder in list_package_folders(part)]
    return known


def _digest_packages(folder: Path) -> str:
    """A digest of the packages in a folder: their names, and their lists of files with digests."""
    digest = sha256()
    try:
        names = sorted(each.name for each in folder.iterdir() if each.name != "__pycache__")
    except OSError:
        return ""
    for name in names:
        digest.update(os.fsencode(name) + b"\0")
        if name.endswith((PTH_SUFFIX, *METADATA_SUFFIXES)):
            digest.update(_digest_installed(folder / name))
    return digest.hexdigest()


def _digest_installed(path: Path) -> bytes:
    """The list of an installed distribution's files; without a list, its time of change."""
    try:
        listed = (path if path.suffix == PTH_SUFFIX else path / "RECORD").read_bytes()
    except OSError:
        return str(path.lstat().st_mtime_ns).encode()
    # Scripts outside the folder have a path that depends on where they were installed.
    if b"../" in listed:
        inside = (line for line in listed.splitlines() if not line.startswith(b"../"))
        listed = b"\n".join(inside)
    return sha256(listed).digest()
