"""Prepare all programs of a run before its checks start."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from agentci._util.parallel import parallel_map
from agentci._util.workspace import ResolvedPath, read_file, restore_path, trust_path
from agentci.errors import EvaluatorError, InputError, PermanentFetchError, UnreachableError
from agentci.model.program import (
    LOCK_NAME,
    REQUIREMENTS_NAME,
    LocalProgram,
    Program,
    RequiredProgram,
)
from agentci.model.result import Provenance
from agentci.model.values import Problem
from agentci.remote.fetch import LOCK_HINT, FetchedProgram, FetchOptions, fetch_program
from agentci.remote.programs import (
    ProgramAvailability,
    ProgramTable,
    ReadyProgram,
    UnavailableProgram,
)

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
        InputError: if a program does not exist or differs from what was pinned; lists every
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
        PermanentFetchError: if the requirements must be locked and are not.
        EvaluatorError: if the environment cannot be created.
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
        EvaluatorError: if it cannot be read.
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
