"""Fetch one remote program from the cache or its source, and verify it."""

import hashlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci._util.text.suggest import shorten_commit
from agentci.errors import OfflineError, PermanentFetchError, UnreachableError
from agentci.model.program import LOCK_NAME, Lock, LockedProgram, ProgramSnapshot, RemoteProgram
from agentci.model.values import replace
from agentci.remote.cache import EvaluatorCache
from agentci.remote.cache_index import CachedEvaluator, EvaluatorKey
from agentci.remote.programs import Sources

if TYPE_CHECKING:
    from agentci.execution.environments import EnvironmentStore


class LazyEnvironments:
    """Creates environments for requirements; loads the installer on first use."""

    def __init__(self, make: "Callable[[], EnvironmentStore]") -> None:
        self._make = make
        self._environments: EnvironmentStore | None = None
        self._lock = threading.Lock()

    def python_for(
        self, content: bytes, *, locked: tuple[str, ...], allow_source: bool, name: str
    ) -> str:
        """Return the interpreter of an environment.

        Args:
            content: a ``requirements.txt`` file.
            locked: its packages with their hashes, one per line; empty if they are not locked.
            allow_source: whether packages without a wheel may be built.
            name: the evaluator's name, for messages.

        Raises:
            EvaluatorError: if the packages cannot be installed; its message is the predicate of a
                sentence about the evaluator.
        """
        # Imported on use: most runs need no environment.
        from agentci.execution.requirements import decode_requirements  # noqa: PLC0415

        with self._lock:
            self._environments = self._environments or self._make()
        requirements = decode_requirements(content, locked=locked, allow_source=allow_source)
        return self._environments.get_python(requirements, name=name)


class FetchOptions(Struct, frozen=True, kw_only=True):
    """Sources, cache and rules for fetching programs.

    Attributes:
        make_fallback_folder: makes the folder for programs that the cache cannot store.
        lock: None without a lock file.
        require_locked: whether to reject programs that are not in the lock.
        offline: whether to avoid all network access.
        refetch: whether to ignore cached programs.
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
    """Reject files that differ from what was pinned, whether cached or fetched.

    Args:
        digests: sha256 of every file, by path in the program's folder.
        entry: the file to run.

    Raises:
        PermanentFetchError: if a file differs; names it.
    """
    if not _is_program(entry, digests, program):
        raise PermanentFetchError(
            f"the cache contains another program instead of {program.ref}: {entry}",
            hint="run `agentci cache clean`, and check who else can write to the cache",
        )
    if program.sha256 and not _is_archive(program) and digests[entry] != program.sha256:
        raise PermanentFetchError(
            f"{program.ref} has sha256 {digests[entry]}, expected {program.sha256}",
            hint="check why; if the change is intended, update `sha256` in the config",
        )
    if locked is None:
        return
    for path in sorted({*digests, *locked.files}):
        if digests.get(path) != locked.files.get(path):
            raise PermanentFetchError(
                f"{path} of {program.ref} differs from {LOCK_NAME}",
                hint="check why; if the change is intended, run `agentci lock --upgrade`",
            )


def compute_digests(snapshot: ProgramSnapshot) -> dict[str, str]:
    """Return the sha256 of every file, by path."""
    return {path: hashlib.sha256(file.content).hexdigest() for path, file in snapshot.files.items()}


def _is_program(entry: str, digests: Mapping[str, str], program: RemoteProgram) -> bool:
    """Whether ``entry`` can be the file of the program's ref; True for other sources."""
    if program.source == "url" and not _is_archive(program):
        return set(digests) == {entry}  # the name may be percent-encoded, but it is the only file
    if program.source in {"github", "url"}:
        return entry == program.ref.rpartition("#")[2].rpartition("/")[2]
    return True


def _is_archive(program: RemoteProgram) -> bool:
    """Whether the ref names an archive; the config's sha256 is then the archive's."""
    return program.source == "url" and "#" in program.ref


LOCK_HINT: Final = f"run `agentci lock`, review the changes in {LOCK_NAME}, and commit it"


class FetchedProgram(Struct, frozen=True, kw_only=True):
    """A remote program on disk.

    Attributes:
        pin: what to write into its config entry to pin the commit; None if it is already pinned.
        notices: warnings for the user about how it was fetched.
    """

    program: RemoteProgram
    commit: str
    cached: CachedEvaluator
    pin: str | None
    notices: tuple[str, ...] = ()


def fetch_program(program: RemoteProgram, options: FetchOptions) -> FetchedProgram:
    """Return a completed program on disk with every byte verified, from the cache or its source.

    Raises:
        FetchError: if it is not available under the rules of ``options``.
    """
    locked = None if options.lock is None or program.is_local else options.lock.find(program)
    if locked is None and options.require_locked and not program.is_local:
        raise PermanentFetchError(f"{program.ref} is not in {LOCK_NAME}", hint=LOCK_HINT)
    source = options.sources.get(program.source)
    commit = _find_commit(program, options) if locked is None else locked.commit
    pin = source.pin(program, commit) if locked is None else None
    stored, notices = _find_or_fetch(program, commit, locked, options)
    return FetchedProgram(program=program, commit=commit, cached=stored, pin=pin, notices=notices)


def _find_commit(program: RemoteProgram, options: FetchOptions) -> str:
    try:
        return options.sources.get(program.source).resolve(program)
    except OfflineError:
        of = f" of {program.repository}" if program.repository else ""
        raise PermanentFetchError(
            f"{program.ref} is not pinned: the commit of {program.revision}{of} cannot be looked up"
            " offline",
            hint=f"pin it with `rev`, or in {LOCK_NAME} with `agentci lock`",
        ) from None


def _find_or_fetch(
    program: RemoteProgram, commit: str, locked: LockedProgram | None, options: FetchOptions
) -> tuple[CachedEvaluator, tuple[str, ...]]:
    key = EvaluatorKey(
        source=program.source, repository=program.repository, commit=commit, ref=program.ref
    )
    if program.is_local:
        return _copy_from_workspace(key, program, options)
    found = _find_cached(key, program, locked, options)
    if found is not None:
        return found, ()
    with options.cache.lock(key):
        found = _find_cached(key, program, locked, options)  # another process may have fetched it
        if found is not None:
            return found, ()
        snapshot = _fetch_snapshot(program, commit, locked, options)
        verify_digests(compute_digests(snapshot), snapshot.entry, program, locked)
        return _put_in_cache(key, snapshot, options)


def _copy_from_workspace(
    key: EvaluatorKey, program: RemoteProgram, options: FetchOptions
) -> tuple[CachedEvaluator, tuple[str, ...]]:
    """Copy a program of the workspace; its current files win over a cached copy."""
    snapshot = _fetch_snapshot(program, key.commit, None, options)
    digests = compute_digests(snapshot)
    verify_digests(digests, snapshot.entry, program, None)
    stored = options.cache.find(key)
    facts = (digests, snapshot.entry)
    if stored is not None and (stored.digests, _find_entry_path(stored)) == facts:
        return stored, ()
    return _put_in_cache(key, snapshot, options)


def _fetch_snapshot(
    program: RemoteProgram, commit: str, locked: LockedProgram | None, options: FetchOptions
) -> ProgramSnapshot:
    source = options.sources.get(program.source)
    try:
        if locked is None:
            return source.fetch(program, commit, paths=())
        snapshot = source.fetch(program, commit, paths=tuple(locked.files))
    except OfflineError:
        raise PermanentFetchError(
            f"{_format_program(program, commit)} is not in the cache",
            hint="run `agentci evaluator fetch` with a network connection",
        ) from None
    files = {
        path: replace(file, executable=path in locked.executables)
        for path, file in snapshot.files.items()
    }
    return replace(snapshot, files=files)


def _find_cached(
    key: EvaluatorKey, program: RemoteProgram, locked: LockedProgram | None, options: FetchOptions
) -> CachedEvaluator | None:
    """Return the cached program if it matches what is pinned."""
    stored = None if options.refetch and not options.offline else options.cache.find(key)
    if stored is None:
        return None
    try:
        verify_digests(stored.digests, _find_entry_path(stored), program, locked)
    except PermanentFetchError:
        if options.offline:
            raise
        return None
    return stored


def _find_entry_path(stored: CachedEvaluator) -> str:
    return stored.path.relative_to(stored.folder).as_posix()


def _put_in_cache(
    key: EvaluatorKey, snapshot: ProgramSnapshot, options: FetchOptions
) -> tuple[CachedEvaluator, tuple[str, ...]]:
    try:
        return options.cache.put(key, snapshot), ()
    except UnreachableError as error:
        try:
            stored = EvaluatorCache(options.make_fallback_folder()).put(key, snapshot)
        except (OSError, UnreachableError):
            raise error from None  # report the cache, since the fallback folder is internal
        advice = f" ({error.hint})" if error.hint else ""
        return stored, (f"{error}; the downloaded files are not cached{advice}",)


def _format_program(program: RemoteProgram, commit: str) -> str:
    where = f" of {program.repository}" if program.repository else ""
    return f"{program.ref}{where} at {shorten_commit(commit)}"
