"""Resolve programs to the commits, file digests and packages that a lock file pins."""

import hashlib
from collections.abc import Sequence

from msgspec import Struct

from agentci._util.parallel import parallel_map
from agentci._util.workspace import ResolvedPath, Workspace, restore_path
from agentci.errors import EvaluatorError, FetchError, InputError
from agentci.execution.installers import InstallerRunner, resolve_requirements
from agentci.execution.requirements import decode_requirements
from agentci.model.program import (
    REQUIREMENTS_NAME,
    LocalProgram,
    Lock,
    LockedProgram,
    LockedRequirements,
    ProgramKey,
    RemoteProgram,
    RequiredProgram,
    make_program_key,
)
from agentci.model.values import Problem
from agentci.remote.fetch import (
    FetchOptions,
    fetch_program,
    find_requirements_file,
    read_requirements,
)


class LockResult(Struct, frozen=True, kw_only=True):
    """A lock, and notes about how it was made."""

    lock: Lock
    notices: tuple[str, ...] = ()


def lock_programs(
    required: Sequence[RequiredProgram],
    options: FetchOptions,
    *,
    run_installer: InstallerRunner,
    workspace: Workspace,
) -> LockResult:
    """Lock all programs; entries of the lock in ``options`` are kept, others are resolved now.

    Raises:
        InputError: a program cannot be fetched or resolved; lists every problem.
    """
    outcomes = parallel_map(
        lambda each: _lock_one(each, options, run_installer=run_installer, workspace=workspace),
        required,
    )
    problems = [each for each in outcomes if isinstance(each, Problem)]
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    programs: dict[ProgramKey, LockedProgram] = {}
    requirements: dict[str, LockedRequirements] = {}
    notices: dict[str, None] = {}
    for outcome in outcomes:
        if isinstance(outcome, _LockedParts):
            if outcome.program is not None:
                programs[outcome.program.key] = outcome.program
            if outcome.requirements is not None:
                requirements.setdefault(outcome.requirements.sha256, outcome.requirements)
            notices.update(dict.fromkeys(outcome.notices))
    return LockResult(
        lock=Lock(programs=tuple(programs.values()), requirements=tuple(requirements.values())),
        notices=tuple(notices),
    )


class _LockedParts(Struct, frozen=True, kw_only=True):
    program: LockedProgram | None
    requirements: LockedRequirements | None
    notices: tuple[str, ...] = ()


def _lock_one(
    required: RequiredProgram,
    options: FetchOptions,
    *,
    run_installer: InstallerRunner,
    workspace: Workspace,
) -> _LockedParts | Problem:
    program = required.program
    try:
        if isinstance(program, LocalProgram):
            locked = None
            named = program.requirements
            file = None if named is None else restore_path(named)
            shown = "" if file is None else workspace.display_path(file.path)
        else:
            locked, file = _lock_remote_program(program, options)
            locked = None if program.is_local else locked
            shown = "" if file is None else f"{program.ref.rpartition('/')[0]}/{REQUIREMENTS_NAME}"
        if file is None:
            return _LockedParts(program=locked, requirements=None)
        content = read_requirements(file)
        digest = hashlib.sha256(content).hexdigest()
        known = None if options.lock is None else options.lock.find_requirements(digest)
        if known is not None:
            return _LockedParts(program=locked, requirements=known)
        requirements = decode_requirements(content, allow_source=program.allow_source)
        resolution = resolve_requirements(requirements, runner=run_installer)
    except FetchError as error:
        return Problem(message=str(error), place=required.place, hint=error.hint)
    except EvaluatorError as error:
        return Problem(message=f"{required.name} {error}", place=required.place)
    notice = f"{shown} is locked only for this platform; install uv to lock it for all platforms"
    return _LockedParts(
        program=locked,
        requirements=LockedRequirements(
            file=shown.removeprefix("/"), sha256=digest, packages=_parse_hashes(resolution.lines)
        ),
        notices=() if resolution.universal else (notice,),
    )


def _lock_remote_program(
    program: RemoteProgram, options: FetchOptions
) -> tuple[LockedProgram, ResolvedPath | None]:
    fetched = fetch_program(program, options)
    source, repository, revision, ref = make_program_key(program)
    folder = fetched.cached.folder
    locked = LockedProgram(
        source=source,
        repository=repository,
        revision=revision,
        ref=ref,
        commit=fetched.commit,
        files=fetched.cached.digests,
        executables=tuple(
            path for path in fetched.cached.digests if (folder / path).stat().st_mode & 0o111
        ),
    )
    return locked, find_requirements_file(fetched)


def _parse_hashes(lines: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parse requirement lines with ``--hash`` options into hashes by package."""
    split = (line.split(" --hash=") for line in lines)
    return {package: tuple(hashes) for package, *hashes in split}
