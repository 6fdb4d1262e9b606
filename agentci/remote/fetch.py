"""Fetches one remote program from the cache or its source, and verifies it."""

import hashlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci._util.text.suggest import shorten_commit
from agentci.errors import OfflineError, PermanentFetchError, UnreachableError
from agentci.model.lock import LOCK_NAME, Lock, LockedProgram
from agentci.model.program import ProgramSnapshot, RemoteProgram
from agentci.model.values import replace
from agentci.remote.cache.index import CachedEvaluator, EvaluatorKey
from agentci.remote.cache.store import EvaluatorCache
from agentci.remote.run_sources import Sources

if TYPE_CHECKING:
    from agentci.execution.environments.store import EnvironmentStore


class LazyEnvironments:
    """Makes environments; loads what it takes when the first one is wanted."""

    def __init__(self, make: "Callable[[], EnvironmentStore]") -> None:
        self._make = make
        self._environments: EnvironmentStore | None = None
        self._lock = threading.Lock()

    def python_for(self, content: bytes, *, locked: tuple[str, ...], name: str) -> str:
        """The interpreter of an environment.

        Args:
            content: of a ``requirements.txt``.
            locked: its packages with their hashes, a line each; empty where they are not locked.
            name: the evaluator's, for what is told.

        Raises:
            EvaluatorError: the packages cannot be installed; as the end of a sentence about it.
        """
        # Most runs need none.
        from agentci.execution.environments.requirements import decode_requirements  # noqa: PLC0415

        with self._lock:
            self._environments = self._environments or self._make()
        return self._environments.get_python(decode_requirements(content, locked=locked), name=name)


class FetchOptions(Struct, frozen=True, kw_only=True):
    """Where programs come from.

    Attributes:
        cache: the cache.
        make_fallback_folder: makes the folder for programs that the cache cannot store.
        lock: None where there is no lock file.
        require_locked: nothing is taken that is not in the lock.
        offline: nothing is asked of a network.
        refetch: what the cache has is not taken.
    """

    sources: Sources
    cache: EvaluatorCache
    make_fallback_folder: Callable[[], Path]
    environments: LazyEnvironments
    lock: Lock | None
    require_locked: bool = False
    offline: bool = False
    refetch: bool = False


def verify_digests(
    digests: Mapping[str, str], entry: str, program: RemoteProgram, locked: LockedProgram | None
) -> None:
    """Refuse what is not what was pinned, wherever it came from.

    Args:
        digests: sha256 of every file, by path in the program's folder.
        entry: the file that is to be run.

    Raises:
        RefusedError: says which file differs.
    """
    if not _is_program(entry, digests, program):
        raise PermanentFetchError(
            f"the cache has another program in the place of {program.ref}: {entry}",
            hint="empty it with `agentci cache clean`, and find out who else can write to it",
        )
    if program.sha256 and not _is_archive(program) and digests[entry] != program.sha256:
        raise PermanentFetchError(
            f"{program.ref} has the sha256 {digests[entry]}, not {program.sha256}",
            hint="find out why; if the change is wanted, write the new digest into the config",
        )
    if locked is None:
        return
    for path in sorted({*digests, *locked.files}):
        if digests.get(path) != locked.files.get(path):
            raise PermanentFetchError(
                f"{path} of {program.ref} is not what {LOCK_NAME} says",
                hint="find out why; if the change is wanted, run `agentci lock --upgrade`",
            )


def compute_digests(snapshot: ProgramSnapshot) -> dict[str, str]:
    """The sha256 of every file, by its path."""
    return {path: hashlib.sha256(file.content).hexdigest() for path, file in snapshot.files.items()}


def _is_program(entry: str, digests: Mapping[str, str], program: RemoteProgram) -> bool:
    """Whether the ref names ``entry``, as far as the refs of a source tell."""
    if program.source == "url" and not _is_archive(program):
        return set(digests) == {entry}  # its name may be escaped, but nothing lies beside it
    if program.source in {"github", "url"}:
        return entry == program.ref.rpartition("#")[2].rpartition("/")[2]
    return True


def _is_archive(program: RemoteProgram) -> bool:
    """Whether the config's sha256 is that of something else than the program's file."""
    return program.source == "url" and "#" in program.ref


LOCK_HINT: Final = f"run `agentci lock`, review the change of {LOCK_NAME}, and commit it"


class FetchedProgram(Struct, frozen=True, kw_only=True):
    """A remote program on disk.

    Attributes:
        pin: what to write into its entry so that it stays as it is; None where it does anyway.
        notices: what the user should know about how it was had.
    """

    program: RemoteProgram
    commit: str
    cached: CachedEvaluator
    pin: str | None
    notices: tuple[str, ...] = ()


def fetch_program(program: RemoteProgram, stock: FetchOptions) -> FetchedProgram:
    """Have a completed program on disk, every byte of it verified.

    Raises:
        FetchError: it cannot be had by the rules of ``stock``.
    """
    locked = None if stock.lock is None or program.is_local else stock.lock.find(program)
    if locked is None and stock.require_locked and not program.is_local:
        raise PermanentFetchError(f"{program.ref} is not in {LOCK_NAME}", hint=LOCK_HINT)
    source = stock.sources.get(program.source)
    commit = _find_commit(program, stock) if locked is None else locked.commit
    pin = source.pin(program, commit) if locked is None else None
    stored, notices = _find_or_fetch(program, commit, locked, stock)
    return FetchedProgram(program=program, commit=commit, cached=stored, pin=pin, notices=notices)


def _find_commit(program: RemoteProgram, stock: FetchOptions) -> str:
    try:
        return stock.sources.get(program.source).resolve(program)
    except OfflineError:
        of = f" of {program.repository}" if program.repository else ""
        raise PermanentFetchError(
            f"{program.ref} may have changed: what {program.revision}{of} is now cannot be asked"
            " for offline",
            hint=f"pin it with `rev`, or in {LOCK_NAME} with `agentci lock`",
        ) from None


def _find_or_fetch(
    program: RemoteProgram, commit: str, locked: LockedProgram | None, stock: FetchOptions
) -> tuple[CachedEvaluator, tuple[str, ...]]:
    key = EvaluatorKey(
        source=program.source, repository=program.repository, commit=commit, ref=program.ref
    )
    if program.is_local:
        return _copy_from_workspace(key, program, stock)
    found = _find_cached(key, program, locked, stock)
    if found is not None:
        return found, ()
    with stock.cache.lock(key):
        found = _find_cached(key, program, locked, stock)  # another process may have been faster
        if found is not None:
            return found, ()
        snapshot = _fetch_snapshot(program, commit, locked, stock)
        verify_digests(compute_digests(snapshot), snapshot.entry, program, locked)
        return _put_in_cache(key, snapshot, stock)


def _copy_from_workspace(
    key: EvaluatorKey, program: RemoteProgram, stock: FetchOptions
) -> tuple[CachedEvaluator, tuple[str, ...]]:
    """A program of the workspace: what lies there counts, whatever the cache has."""
    snapshot = _fetch_snapshot(program, key.commit, None, stock)
    digests = compute_digests(snapshot)
    verify_digests(digests, snapshot.entry, program, None)
    stored = stock.cache.find(key)
    if stored is not None and (stored.digests, _find_entry_path(stored)) == (
        digests,
        snapshot.entry,
    ):
        return stored, ()
    return _put_in_cache(key, snapshot, stock)


def _fetch_snapshot(
    program: RemoteProgram, commit: str, locked: LockedProgram | None, stock: FetchOptions
) -> ProgramSnapshot:
    source = stock.sources.get(program.source)
    try:
        if locked is None:
            return source.fetch(program, commit, paths=())
        snapshot = source.fetch(program, commit, paths=tuple(locked.files))
    except OfflineError:
        raise PermanentFetchError(
            f"{_format_program(program, commit)} is not in the cache",
            hint="fetch it with `agentci evaluator fetch` while there is a network",
        ) from None
    files = {
        path: replace(file, executable=path in locked.executables)
        for path, file in snapshot.files.items()
    }
    return replace(snapshot, files=files)


def _find_cached(
    key: EvaluatorKey, program: RemoteProgram, locked: LockedProgram | None, stock: FetchOptions
) -> CachedEvaluator | None:
    """What the cache has, if it is what was asked for."""
    stored = None if stock.refetch and not stock.offline else stock.cache.find(key)
    if stored is None:
        return None
    try:
        verify_digests(stored.digests, _find_entry_path(stored), program, locked)
    except PermanentFetchError:
        if stock.offline:
            raise
        return None
    return stored


def _find_entry_path(stored: CachedEvaluator) -> str:
    return stored.path.relative_to(stored.folder).as_posix()


def _put_in_cache(
    key: EvaluatorKey, snapshot: ProgramSnapshot, stock: FetchOptions
) -> tuple[CachedEvaluator, tuple[str, ...]]:
    try:
        return stock.cache.put(key, snapshot), ()
    except UnreachableError as error:
        try:
            stored = EvaluatorCache(stock.make_fallback_folder()).put(key, snapshot)
        except (OSError, UnreachableError):
            raise error from None  # of the cache: nobody asked for the other folder
        way_out = f" ({error.hint})" if error.hint else ""
        return stored, (f"{error}; what was fetched is not kept{way_out}",)


def _format_program(program: RemoteProgram, commit: str) -> str:
    where = f" of {program.repository}" if program.repository else ""
    return f"{program.ref}{where} at {shorten_commit(commit)}"
