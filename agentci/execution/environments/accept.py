"""Check the files that an installer made, before they enter the cache.

With ``allow_source``, build scripts of packages wrote them: they are untrusted, and so is every
link, mode and owner.
"""

import os
import stat
import sys
from pathlib import Path
from typing import Final

from agentci._util.files import FILE_MODE, FOLDER_MODE, PROGRAM_MODE, set_mode
from agentci.errors import EvaluatorError
from agentci.execution.environments.key import find_base_python

# An environment with torch has 20 thousand files, 20 folders deep.
MAX_DEPTH: Final = 100
MAX_FILES: Final = 1_000_000
MAX_BYTES: Final = 24 * 1024**3
SPECIAL_BITS: Final = stat.S_ISUID | stat.S_ISGID
# The folder with the links to the interpreter.
PROGRAMS_FOLDER: Final = "bin"


def accept_environment(folder: Path, owner: Path | None) -> None:
    """Check all files of an environment, and make them readable for all users.

    Call it when no process can write to the folder any more.

    Args:
        folder: the environment; root and the owner of the cache get its files.
        owner: a path whose owner gets the files; None for this process's user.

    Raises:
        EvaluatorError: there is something that no wheel contains.
        OSError: a file cannot be read.
    """
    interpreters = {sys.executable, find_base_python()[-1], os.path.realpath(sys.executable)}
    _adopt(str(folder), os.lstat(folder), owner)
    count = size = 0
    unseen = [(str(folder), 0)]
    while unseen:
        path, depth = unseen.pop()
        with os.scandir(path) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                count, size = count + 1, size + status.st_size
                name = os.path.relpath(entry.path, folder)
                if depth > MAX_DEPTH or count > MAX_FILES or size > MAX_BYTES:
                    raise _make_error("have too many or too large files, or too deep folders")
                if stat.S_ISLNK(status.st_mode):
                    _check_link(name, os.readlink(entry.path), interpreters)  # noqa: PTH115 (as stored)
                elif stat.S_ISREG(status.st_mode):
                    _check_file(name, status)
                elif not stat.S_ISDIR(status.st_mode):
                    raise _make_error(f"have an entry that is no file, folder or link: {name!r}")
                _adopt(entry.path, status, owner)
                if stat.S_ISDIR(status.st_mode):
                    unseen.append((entry.path, depth + 1))


def _check_link(name: str, target: str, interpreters: set[str]) -> None:
    """Check that a link leads to the interpreter or to a name in its own folder."""
    folder = os.path.dirname(name)  # noqa: PTH120 (names are text here)
    in_folder = "/" not in target and target not in {"", ".", ".."}
    if not in_folder and not (folder == PROGRAMS_FOLDER and target in interpreters):
        raise _make_error(f"have a link that leads out of its folder: {name!r} to {target!r}")


def _check_file(name: str, status: os.stat_result) -> None:
    if status.st_mode & SPECIAL_BITS:
        raise _make_error(f"have a file that changes the user or group of programs: {name!r}")
    if status.st_nlink != 1:
        raise _make_error(f"have a file that is also elsewhere (a hard link): {name!r}")


def _adopt(path: str, status: os.stat_result, owner: Path | None) -> None:
    """Set mode and owner of an entry; a link has no mode."""
    if os.geteuid() == 0:
        home = None if owner is None else owner.stat()
        user, group = (0, 0) if home is None else (home.st_uid, home.st_gid)
        if (status.st_uid, status.st_gid) != (user, group):
            os.chown(path, user, group, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return
    executable = status.st_mode & 0o111
    mode = (
        FOLDER_MODE if stat.S_ISDIR(status.st_mode) else PROGRAM_MODE if executable else FILE_MODE
    )
    if stat.S_IMODE(status.st_mode) != mode:
        set_mode(Path(path), mode)


def _make_error(what: str) -> EvaluatorError:
    return EvaluatorError(
        f"could not install its requirements (requirements.txt): the installed packages {what};"
        " use other packages"
    )
