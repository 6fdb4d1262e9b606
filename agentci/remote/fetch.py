"""One remote program: resolved or locked, taken from the cache or fetched, and verified."""

from typing import Final

from msgspec import Struct

from agentci._util.text.suggest import short_commit
from agentci.errors import OfflineError, RefusedError, UnreachableError
from agentci.model.lock import LOCK_NAME, LockedProgram
from agentci.model.program import RemoteProgram, Snapshot
from agentci.model.values import replace
from agentci.remote.cache.entry import Key, Stored
from agentci.remote.cache.evaluators import EvaluatorStore
from agentci.remote.options import Stock
from agentci.remote.verify import check_pins, digests_of

LOCK_HINT: Final = f"run `agentci lock`, review the change of {LOCK_NAME}, and commit it"


class Fetched(Struct, frozen=True, kw_only=True):
    """A remote program on disk.

    Attributes:
        pin: what to write into its entry so that it stays as it is; None where it does anyway.
        notices: what the user should know about how it was had.
    """

    program: RemoteProgram
    commit: str
    stored: Stored
    pin: str | None
    notices: tuple[str, ...] = ()


def fetch(program: RemoteProgram, stock: Stock) -> Fetched:
    """Have a completed program on disk, every byte of it verified.

    Raises:
        FetchError: it cannot be had by the rules of ``stock``.
    """
    locked = None if stock.lock is None or program.is_own else stock.lock.find(program)
    if locked is None and stock.locked and not program.is_own:
        raise RefusedError(f"{program.ref} is not in {LOCK_NAME}", hint=LOCK_HINT)
    source = stock.sources.named(program.source)
    commit = _commit(program, stock) if locked is None else locked.commit
    pin = source.pin(program, commit) if locked is None else None
    stored, notices = _stored(program, commit, locked, stock)
    return Fetched(program=program, commit=commit, stored=stored, pin=pin, notices=notices)


def _commit(program: RemoteProgram, stock: Stock) -> str:
    try:
        return stock.sources.named(program.source).resolve(program)
    except OfflineError:
        of = f" of {program.repository}" if program.repository else ""
        raise RefusedError(
            f"{program.ref} may have changed: what {program.revision}{of} is now cannot be asked"
            " for offline",
            hint=f"pin it with `rev`, or in {LOCK_NAME} with `agentci lock`",
        ) from None


def _stored(
    program: RemoteProgram, commit: str, locked: LockedProgram | None, stock: Stock
) -> tuple[Stored, tuple[str, ...]]:
    key = Key(source=program.source, repository=program.repository, commit=commit, ref=program.ref)
    if program.is_own:
        return _copied(key, program, stock)
    found = _found(key, program, locked, stock)
    if found is not None:
        return found, ()
    with stock.store.claim(key):
        found = _found(key, program, locked, stock)  # another process may have been faster
        if found is not None:
            return found, ()
        snapshot = _snapshot(program, commit, locked, stock)
        check_pins(digests_of(snapshot), snapshot.entry, program, locked)
        return _put(key, snapshot, stock)


def _copied(key: Key, program: RemoteProgram, stock: Stock) -> tuple[Stored, tuple[str, ...]]:
    """A program of the workspace: what lies there counts, whatever the cache has."""
    snapshot = _snapshot(program, key.commit, None, stock)
    digests = digests_of(snapshot)
    check_pins(digests, snapshot.entry, program, None)
    stored = stock.store.find(key)
    if stored is not None and (stored.digests, _entry_of(stored)) == (digests, snapshot.entry):
        return stored, ()
    return _put(key, snapshot, stock)


def _snapshot(
    program: RemoteProgram, commit: str, locked: LockedProgram | None, stock: Stock
) -> Snapshot:
    source = stock.sources.named(program.source)
    try:
        if locked is None:
            return source.fetch(program, commit, paths=())
        snapshot = source.fetch(program, commit, paths=tuple(locked.files))
    except OfflineError:
        raise RefusedError(
            f"{_shown(program, commit)} is not in the cache",
            hint="fetch it with `agentci evaluator fetch` while there is a network",
        ) from None
    files = {
        path: replace(file, executable=path in locked.executables)
        for path, file in snapshot.files.items()
    }
    return replace(snapshot, files=files)


def _found(
    key: Key, program: RemoteProgram, locked: LockedProgram | None, stock: Stock
) -> Stored | None:
    """What the cache has, if it is what was asked for."""
    stored = None if stock.anew and not stock.offline else stock.store.find(key)
    if stored is None:
        return None
    try:
        check_pins(stored.digests, _entry_of(stored), program, locked)
    except RefusedError:
        if stock.offline:
            raise
        return None
    return stored


def _entry_of(stored: Stored) -> str:
    return stored.path.relative_to(stored.folder).as_posix()


def _put(key: Key, snapshot: Snapshot, stock: Stock) -> tuple[Stored, tuple[str, ...]]:
    try:
        return stock.store.put(key, snapshot), ()
    except UnreachableError as error:
        try:
            stored = EvaluatorStore(stock.spare()).put(key, snapshot)
        except (OSError, UnreachableError):
            raise error from None  # of the cache: nobody asked for the other folder
        way_out = f" ({error.hint})" if error.hint else ""
        return stored, (f"{error}; what was fetched is not kept{way_out}",)


def _shown(program: RemoteProgram, commit: str) -> str:
    where = f" of {program.repository}" if program.repository else ""
    return f"{program.ref}{where} at {short_commit(commit)}"
