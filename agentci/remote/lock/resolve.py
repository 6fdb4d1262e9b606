"""What programs are locked to: their commits, contents and packages, as they are now."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from agentci._util.parallel import side_by_side
from agentci._util.workspace import Workspace
from agentci.errors import EvaluatorError, FetchError, InputError
from agentci.execution.environments.installer_runner import Workshop
from agentci.execution.environments.requirements import requirements_of
from agentci.execution.environments.resolution import resolve
from agentci.model.lock import Lock, LockedProgram, LockedRequirements, Named, named
from agentci.model.problem import Problem
from agentci.model.program import LocalProgram, RemoteProgram, Wanted
from agentci.remote.fetch import fetch
from agentci.remote.options import Stock
from agentci.remote.prepare import read_requirements, requirements_file


class Locking(Struct, frozen=True, kw_only=True):
    """A lock, and what is worth knowing about how it came to be."""

    lock: Lock
    notices: tuple[str, ...] = ()


def lock_programs(
    wanted: Sequence[Wanted], stock: Stock, *, workshop: Workshop, workspace: Workspace
) -> Locking:
    """Lock all programs: to what the stock's lock says of them, else to what they are now.

    Raises:
        InputError: something cannot be fetched or resolved; with every problem.
    """
    outcomes = side_by_side(
        lambda each: _outcome(each, stock, workshop=workshop, workspace=workspace), wanted
    )
    problems = [each for each in outcomes if isinstance(each, Problem)]
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    programs: dict[Named, LockedProgram] = {}
    requirements: dict[str, LockedRequirements] = {}
    notices: dict[str, None] = {}
    for outcome in outcomes:
        if isinstance(outcome, _Locked):
            if outcome.program is not None:
                programs[outcome.program.named] = outcome.program
            if outcome.requirements is not None:
                requirements.setdefault(outcome.requirements.sha256, outcome.requirements)
            notices.update(dict.fromkeys(outcome.notices))
    return Locking(
        lock=Lock(programs=tuple(programs.values()), requirements=tuple(requirements.values())),
        notices=tuple(notices),
    )


class _Locked(Struct, frozen=True, kw_only=True):
    program: LockedProgram | None
    requirements: LockedRequirements | None
    notices: tuple[str, ...] = ()


def _outcome(
    wanted: Wanted, stock: Stock, *, workshop: Workshop, workspace: Workspace
) -> _Locked | Problem:
    program = wanted.program
    try:
        if isinstance(program, LocalProgram):
            locked = None
            file = None if program.requirements is None else Path(program.requirements)
            shown = "" if file is None else workspace.name_of(file)
        else:
            locked, file = _locked(program, stock)
            locked = None if program.is_own else locked
            shown = "" if file is None else f"{program.ref.rpartition('/')[0]}/{file.name}"
        if file is None:
            return _Locked(program=locked, requirements=None)
        content = read_requirements(file)
        digest = hashlib.sha256(content).hexdigest()
        known = None if stock.lock is None else stock.lock.find_requirements(digest)
        if known is not None:
            return _Locked(program=locked, requirements=known)
        resolution = resolve(requirements_of(content), workshop=workshop)
    except FetchError as error:
        return Problem(message=str(error), place=wanted.place, hint=error.hint)
    except EvaluatorError as error:
        return Problem(message=f"{wanted.name} {error}", place=wanted.place)
    notice = f"{shown} is locked for this platform alone; install uv to lock it for all"
    return _Locked(
        program=locked,
        requirements=LockedRequirements(
            file=shown.removeprefix("/"), sha256=digest, packages=_packages(resolution.lines)
        ),
        notices=() if resolution.universal else (notice,),
    )


def _locked(program: RemoteProgram, stock: Stock) -> tuple[LockedProgram, Path | None]:
    fetched = fetch(program, stock)
    source, repository, revision, ref = named(program)
    folder = fetched.stored.folder
    locked = LockedProgram(
        source=source,
        repository=repository,
        revision=revision,
        ref=ref,
        commit=fetched.commit,
        files=fetched.stored.digests,
        executables=tuple(path for path in fetched.stored.digests if _can_run(folder / path)),
    )
    return locked, requirements_file(fetched)


def _can_run(file: Path) -> bool:
    return bool(file.stat().st_mode & 0o111)


def _packages(lines: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Hashes by package, of lines as installers read them."""
    split = (line.split(" --hash=") for line in lines)
    return {package: tuple(hashes) for package, *hashes in split}
