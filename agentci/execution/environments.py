"""The environments in the cache, each made once for all evaluators with equal requirements.

The files that an installer made are checked before they enter the cache. With ``allow_source``,
build scripts of packages wrote them: they are untrusted, and so is every link, mode and owner.

Each run verifies the files of an environment against its manifest. That detects environments that
are incomplete, restored in part, or changed by accident or by a program. It does not protect
against an attacker who can write to the cache, because the manifest is in the cache too.
"""

import errno
import hashlib
import json
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Final

from agentci._util.cache_folder import ENVIRONMENTS_FOLDER, hold_cache_lock, init_cache
from agentci._util.files import (
    FILE_MODE,
    FOLDER_MODE,
    PROGRAM_MODE,
    make_folder,
    remove_path,
    set_mode,
    write_file_atomically,
)
from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.errors import EvaluatorError, UnreachableError
from agentci.execution.child.tmpdir import remove_tmpdir
from agentci.execution.installers import (
    InstallerRunner,
    choose_installer,
    find_python,
    make_compile_command,
    make_install_error,
)
from agentci.execution.requirements import (
    Requirements,
    compute_environment_key,
    find_base_python,
    install_sdk,
)

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


@dataclass(slots=True)
class EnvironmentStore:
    """Makes environments on first use, one process at a time, and verifies each once per run.

    An environment is a folder with a random name in ``FOLDER/environments/DIGEST/``; the manifest
    next to it has the name. The manifest is written last, and an environment without one is not
    complete. So an installer that outlives a killed agentci process writes to a folder that is
    never used.

    Programs that share an environment could change it for each other while they run, as any two
    programs of one user can; the next run detects that.

    Attributes:
        folder: the cache folder.
        installer_runner: runs the installers.
        notify: called with a sentence before a step that takes long.
        offline: whether installing is forbidden.
        owner: a path whose owner gets the files that are made as root.
    """

    folder: Path
    _: KW_ONLY
    installer_runner: InstallerRunner
    notify: Callable[[str], None]
    offline: bool = False
    owner: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _key_locks: dict[str, threading.Lock] = field(default_factory=dict, init=False, repr=False)
    _outcomes: dict[str, Path | str] = field(default_factory=dict, init=False, repr=False)

    def get_python(self, requirements: Requirements, *, name: str) -> str:
        """Return the absolute path of a Python with ``requirements`` installed.

        A failure is not retried. Several threads may call this at once.

        Args:
            requirements: the evaluator's requirements.
            name: the evaluator's name, for messages.

        Raises:
            EvaluatorError: the requirements cannot be installed; the message completes a sentence
                about the evaluator.
        """
        digest = compute_environment_key(requirements)
        with self._lock:
            turn = self._key_locks.setdefault(digest, threading.Lock())
        with turn:
            outcome = self._outcomes.get(digest)
            if outcome is None:
                outcome = self._find_or_make(requirements, digest, name)
                self._outcomes[digest] = outcome
        if isinstance(outcome, str):
            raise EvaluatorError(outcome)
        return str(find_python(outcome))

    def _find_or_make(self, requirements: Requirements, digest: str, name: str) -> Path | str:
        home = self.folder.absolute() / ENVIRONMENTS_FOLDER / digest
        try:
            return self._find(home, name) or self._make(requirements, home, name)
        except (EvaluatorError, UnreachableError) as error:
            return str(error)
        except OSError as error:
            hint = "check free space and permissions, or use another folder with --cache-dir"
            return str(make_install_error(str(error), hint=hint))

    def _find(self, home: Path, name: str) -> Path | None:
        try:
            return find_environment(home)
        except DamagedEnvironmentError as error:
            if self.offline:
                raise EvaluatorError(
                    f"has a damaged environment, {home} ({error});"
                    " run once without --offline to reinstall it"
                ) from None
            self.notify(f"reinstalling the damaged environment of {name} ({error})")
            return None

    def _make(self, requirements: Requirements, home: Path, name: str) -> Path:
        packages = [line for line in requirements.install_lines() if not line.startswith("-")]
        if self.offline:
            names = ", ".join(line.partition(" --hash")[0] for line in packages)
            raise EvaluatorError(
                f"requires {names}, and the cache has no environment with these packages;"
                " run once without --offline and with the same --cache-dir"
            )
        with hold_cache_lock(self.folder, f"environment {home.name}", owner=self.owner):
            # Another process may have made it while this one waited for the lock.
            with suppress(DamagedEnvironmentError):
                if found := find_environment(home):
                    return found
            self.notify(
                f"installing requirements of {name} ({format_count(len(packages), 'package')})"
            )
            return self._install(requirements, home)

    def _install(self, requirements: Requirements, home: Path) -> Path:
        init_cache(self.folder, self.owner)
        _remove_environment(home)
        make_folder(home, self.owner)
        folder = home / os.urandom(4).hex()
        try:
            make_folder(folder, None)
            self._install_packages(folder, requirements)
            accept_environment(folder, self.owner)
            install_sdk(folder, self.owner)
            write_file_atomically(home / MANIFEST, format_manifest(folder), owner=self.owner)
        except BaseException:
            _remove_environment(home)
            raise
        return folder

    def _install_packages(self, folder: Path, requirements: Requirements) -> None:
        installer = choose_installer(self.installer_runner)
        allow_source = requirements.allow_source
        self.installer_runner.run(
            installer.venv_command(folder),
            installer.install_command(
                folder, locked=bool(requirements.locked), allow_source=allow_source
            ),
            make_compile_command(folder),
            stdin="".join(f"{line}\n" for line in requirements.install_lines()),
            folder=folder,
            allow_source=allow_source,
        )


def _remove_environment(home: Path) -> None:
    """Remove an environment and its manifest, regardless of what an installer left."""
    with suppress(OSError):
        (home / MANIFEST).unlink()  # first: without it, the environment is not used
    remove_tmpdir(os.fsencode(home))
    remove_path(home)


MANIFEST: Final = "manifest.json"

# From this size on, hashing a file takes longer than passing it to another thread.
LARGE_BYTES: Final = 256 * 1024
THREADS: Final = 4


def hash_files(folder: Path) -> dict[str, str]:
    """Return the digest of each file and the target of each link, by relative path.

    Raises:
        OSError: a file cannot be read.
    """
    found: dict[str, str] = {}
    large: list[str] = []
    for entry in _list_entries(str(folder)):
        name = os.path.relpath(entry.path, folder)
        if entry.is_symlink():
            found[name] = f"link:{os.readlink(entry.path)}"  # noqa: PTH115 (the target as stored)
        elif not entry.is_file():
            found[name] = "neither file nor folder"
        elif entry.stat().st_size >= LARGE_BYTES:
            large.append(name)
        else:
            found[name] = f"sha256:{hashlib.sha256(Path(entry.path).read_bytes()).hexdigest()}"
    if large:
        with ThreadPoolExecutor(THREADS) as pool:
            digests = pool.map(lambda name: _hash_file(folder / name), large)
            found.update(zip(large, digests, strict=True))
    return found


def format_manifest(folder: Path) -> bytes:
    """Format the manifest of ``folder``, a complete environment.

    Raises:
        OSError: a file cannot be read.
    """
    facts = {"folder": folder.name, "files": dict(sorted(hash_files(folder).items()))}
    return json.dumps(facts, indent=0).encode()


def find_differences(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Return the names of changed, missing and new files, compared with a manifest.

    Raises:
        OSError: a file cannot be read.
    """
    found = hash_files(folder)
    return sorted(
        name for name in found.keys() | files.keys() if found.get(name) != files.get(name)
    )


def _list_entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _list_entries(entry.path)
            else:
                yield entry


def _hash_file(file: Path) -> str:
    with file.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


# Errors about this process, which do not mean that the environment is damaged.
RESOURCE_ERRORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
MAX_NAMES: Final = 3


class DamagedEnvironmentError(Exception):
    """The environment is damaged; the message completes a sentence with the reason."""


def find_environment(home: Path) -> Path | None:
    """Return the verified environment in ``home``; None if none was completed.

    Raises:
        DamagedEnvironmentError: a completed environment has changed.
        OSError: the machine lacks memory or file descriptors.
    """
    try:
        content = (home / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _make_read_error(error, f"{MANIFEST} cannot be read") from None
    try:
        manifest = json.loads(content)
        folder = home / Path(manifest["folder"]).name
        _verify(folder, manifest["files"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DamagedEnvironmentError(f"{MANIFEST} is invalid") from None
    except OSError as error:
        raise _make_read_error(error, f"{error.filename} cannot be read") from None
    return folder


def _verify(folder: Path, files: Mapping[str, str]) -> None:
    changed = find_differences(folder, files)
    if changed:
        raise DamagedEnvironmentError(
            f"changed files: {', '.join(truncate.truncate_list(changed, MAX_NAMES))}"
        )
    if not os.access(find_python(folder), os.X_OK):
        raise DamagedEnvironmentError(f"its Python is missing: {find_python(folder).resolve()}")


def _make_read_error(error: OSError, message: str) -> Exception:
    return (
        error
        if error.errno in RESOURCE_ERRORS
        else DamagedEnvironmentError(f"{message}: {error.strerror}")
    )
