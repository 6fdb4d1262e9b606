"""What runs a program, as far as it can change what the program prints."""

import os
import platform
import shutil
import site
import sys
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from agentci._util.child_programs import GRADE_PATH
from agentci.execution.runtimes.command import find_interpreter
from agentci.model.json import Json

# By which Python finds packages on its own, beside the lists of what was installed.
PATHS: Final = ".pth"
INSTALLED: Final = (".dist-info", ".egg-info")
ENV: Final = "env"
PYTHON: Final = "python"
# Where Debian's Python looks, too.
LOCAL: Final = "/usr/local"


class Interpreters:
    """What programs are run by; each interpreter is looked at once."""

    def __init__(self, search_path: str) -> None:
        self._search_path = search_path
        self._known: dict[str, Json] = {}

    def of(self, command: Sequence[str], programs: Collection[Path]) -> list[Json]:
        """What stands beside ``programs`` in a command, and what runs one that it begins with.

        Raises:
            OSError: it is not there any more.
        """
        started = [part for part in command if part != GRADE_PATH and Path(part) not in programs]
        named = () if command[0] in started else self._named(Path(command[0]))
        return [self._identity(part) for part in (*named, *started)]

    def _named(self, program: Path) -> Iterator[str]:
        """The interpreter of a first line; of ``env`` also what that finds."""
        interpreter = find_interpreter(program)
        if interpreter:
            yield interpreter
        if Path(interpreter).name == ENV:
            with program.open("rb") as file:
                words = os.fsdecode(file.readline()).split()[1:]
            yield from (each for each in words if not each.startswith("-") and "=" not in each)

    def _identity(self, part: str) -> Json:
        if part not in self._known:
            self._known[part] = _identity(shutil.which(part, path=self._search_path) or part)
        return self._known[part]


def packages_of(python: str) -> tuple[str, ...]:
    """The folders that ``python`` has its packages in, whether or not they are there."""
    if python == sys.executable:
        return (*site.getsitepackages(), site.getusersitepackages())
    programs = (python, os.path.realpath(python))
    prefixes = dict.fromkeys([*(Path(each).parent.parent for each in programs), Path(LOCAL)])
    found = (path for each in prefixes for path in each.glob("lib*/python3*/*-packages"))
    return (*map(str, found), site.getusersitepackages())


def _identity(part: str) -> Json:
    """A word of a command: an interpreter by what it is, anything else as it stands."""
    path = os.path.realpath(part)
    if not (Path(part).is_absolute() and Path(path).is_file()):
        return part
    known: list[Json] = [platform.machine()]
    if path == os.path.realpath(sys.executable):
        known.append(sys.version)
    else:
        status = Path(path).stat()
        known += [path, status.st_size, status.st_mtime_ns]
    if Path(path).name.startswith(PYTHON):
        known += [_packages(Path(folder)) for folder in packages_of(part)]
    return known


def _packages(folder: Path) -> str:
    """A digest of what is installed in a folder: names, and the lists of files with digests."""
    digest = sha256()
    try:
        names = sorted(each.name for each in folder.iterdir() if each.name != "__pycache__")
    except OSError:
        return ""
    for name in names:
        digest.update(os.fsencode(name) + b"\0")
        if name.endswith((PATHS, *INSTALLED)):
            digest.update(_installed(folder / name))
    return digest.hexdigest()


def _installed(path: Path) -> bytes:
    """What was installed under a name; where no list says so, when that was."""
    try:
        listed = (path if path.suffix == PATHS else path / "RECORD").read_bytes()
    except OSError:
        return str(path.lstat().st_mtime_ns).encode()
    # Programs outside of the folder are named with the place that they were installed to.
    if b"../" in listed:
        inside = (line for line in listed.splitlines() if not line.startswith(b"../"))
        listed = b"\n".join(inside)
    return sha256(listed).digest()
