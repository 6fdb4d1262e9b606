"""Fetch remote programs from the cache or their sources, verify them, and prepare all of a run."""

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from agentci._util.parallel import parallel_map
from agentci._util.text.suggest import shorten_commit
from agentci._util.workspace import ResolvedPath, read_file, restore_path, trust_path
from agentci.errors import (
    EvaluatorError,
    InputError,
    OfflineError,
    PermanentFetchError,
    UnreachableError,
)
from agentci.model.program import (
    LOCK_NAME,
    REQUIREMENTS_NAME,
    LocalProgram,
    Lock,
    LockedProgram,
    Program,
    ProgramSnapshot,
    RemoteProgram,
    RequiredProgram,
)
from agentci.model.result import Provenance
from agentci.model.values import Problem, replace
from agentci.remote.cache_index import CachedEvaluator, EvaluatorKey
from agentci.remote.evaluator_cache import EvaluatorCache
from agentci.remote.programs import (
    ProgramAvailability,
    ProgramTable,
    ReadyProgram,
    Sources,
    UnavailableProgram,
)

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
            EvaluatorError: the packages cannot be installed; its message is the predicate of a
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
        PermanentFetchError: a file differs; names it.
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
        FetchError: it is not available under the rules of ``options``.
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


MAX_REQUIREMENTS_BYTES = 1024**2


class PreparedPrograms(Struct, frozen=True, kw_only=True):
    """Programs that are ready to run, with notes for the user and their provenance."""

    table: ProgramTable
    notices: tuple[Problem, ...] = ()
    provenance: tuple[Provenance, ...] = ()


def prepare_wanted_programs(
    required: Sequence[RequiredProgram], options: FetchOptions
) -> PreparedPrograms:
    """Fetch and verify all programs and install their requirements, several at a time.

    A temporarily unavailable program is recorded with the reason, and its checks are errored.

    Raises:
        InputError: a program does not exist or differs from what was pinned; lists every
            problem.
    """
    outcomes = parallel_map(lambda each: _prepare_program(each, options), required)
    problems = [each for each in outcomes if isinstance(each, Problem)]
    if problems:
        raise InputError(problems)
    programs: dict[Program, ProgramAvailability] = {}
    notices: dict[Problem, None] = {}
    for outcome in outcomes:
        if not isinstance(outcome, Problem):
            programs[outcome.program] = outcome.availability
            notices.update(dict.fromkeys(outcome.notices))
    return PreparedPrograms(
        table=ProgramTable(programs=programs),
        notices=tuple(notices),
        provenance=tuple(
            each.provenance
            for each in outcomes
            if not isinstance(each, Problem) and each.provenance is not None
        ),
    )


class _PreparedProgram(Struct, frozen=True, kw_only=True):
    program: Program
    availability: ProgramAvailability
    notices: tuple[Problem, ...] = ()
    provenance: Provenance | None = None


_PreparedOrProblem: TypeAlias = _PreparedProgram | Problem


def _prepare_program(required: RequiredProgram, options: FetchOptions) -> _PreparedOrProblem:
    """Prepare one program; a permanent failure is a problem of its config."""
    program = required.program
    notices: tuple[Problem, ...] = ()
    provenance: Provenance | None = None
    tree: Path | None = None
    try:
        if isinstance(program, LocalProgram):
            path = Path(program.path)
            named = program.requirements
            requirements = None if named is None else restore_path(named)
        else:
            fetched = fetch_program(program, options)
            notices = tuple(_make_warnings(fetched, required, options))
            provenance = _make_provenance(fetched, required)
            path, requirements = fetched.cached.path, find_requirements_file(fetched)
            tree = fetched.cached.folder
        python = _install_requirements(requirements, required, options)
    except PermanentFetchError as error:
        return Problem(message=str(error), place=required.place, hint=error.hint)
    except UnreachableError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return _PreparedProgram(
            program=program,
            availability=UnavailableProgram(reason=f"could not be fetched: {error}{hint}"),
        )
    except EvaluatorError as error:
        found: ProgramAvailability = UnavailableProgram(reason=str(error))
    else:
        found = ReadyProgram(path=path, python=python, tree=tree)
    return _PreparedProgram(
        program=program, availability=found, notices=notices, provenance=provenance
    )


def find_requirements_file(fetched: FetchedProgram) -> ResolvedPath | None:
    """Return the requirements file of a fetched program; None if none is to be installed."""
    if not fetched.program.installs_requirements or fetched.cached.path.suffix != ".py":
        return None
    file = fetched.cached.path.parent / REQUIREMENTS_NAME
    name = file.relative_to(fetched.cached.folder).as_posix()
    return trust_path(file) if name in fetched.cached.digests else None


def _install_requirements(
    file: ResolvedPath | None, required: RequiredProgram, options: FetchOptions
) -> str | None:
    """Return the interpreter of the environment for ``file``.

    Raises:
        PermanentFetchError: the requirements must be locked and are not.
        EvaluatorError: the environment cannot be created.
    """
    if file is None:
        return None
    content = read_requirements(file)
    digest = hashlib.sha256(content).hexdigest()
    locked = None if options.lock is None else options.lock.find_requirements(digest)
    if locked is None and options.require_locked:
        message = f"the {REQUIREMENTS_NAME} of {required.name} is not in {LOCK_NAME}"
        raise PermanentFetchError(message, hint=LOCK_HINT)
    lines = () if locked is None else locked.requirement_lines
    return options.environments.python_for(
        content, locked=lines, allow_source=required.program.allow_source, name=required.name
    )


def read_requirements(file: ResolvedPath) -> bytes:
    """Read a requirements file.

    Raises:
        EvaluatorError: it cannot be read.
    """
    try:
        return read_file(file, name=REQUIREMENTS_NAME, limit_bytes=MAX_REQUIREMENTS_BYTES)
    except InputError as error:
        raise EvaluatorError(
            f"has a requirements.txt that cannot be read: {error.problems[0].message}"
        ) from None


def _make_provenance(fetched: FetchedProgram, required: RequiredProgram) -> Provenance:
    program = fetched.program
    return Provenance(
        config=required.place.file,
        evaluator=required.name,
        source=program.source,
        repository=program.repository,
        revision=program.revision,
        ref=program.ref,
        commit=fetched.commit,
        digest=fetched.cached.folder.name,
    )


def _make_warnings(
    fetched: FetchedProgram, required: RequiredProgram, options: FetchOptions
) -> list[Problem]:
    program = fetched.program
    notices = [
        Problem(message=text, place=required.place, severity="warning") for text in fetched.notices
    ]
    if fetched.pin is not None:
        message = f"{required.name} follows {program.revision} of {program.repository}"
        advice = "or run `agentci lock`" if options.lock is None else f"or {LOCK_HINT}"
        notices.append(
            Problem(
                message=f"{message}, so it can change without a commit of yours",
                place=required.place,
                hint=f"pin it with `{fetched.pin}`, {advice}",
                severity="warning",
            )
        )
    return notices
