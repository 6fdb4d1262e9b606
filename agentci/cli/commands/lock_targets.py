"""What of some configs a lock has a word on."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from agentci._util.text.format import count
from agentci._util.workspace import is_file, read_file
from agentci.config.discovery import find_configs
from agentci.config.overrides import Overrides
from agentci.errors import InputError
from agentci.evaluators.evaluator import needs_of
from agentci.model.lock import Lock, Named, named
from agentci.model.program import REQUIREMENTS_NAME, LocalProgram, Wanted
from agentci.remote.prepare import MAX_REQUIREMENTS_BYTES
from agentci.runner.load_configs import load_suite
from agentci.runner.prepare_programs import needs_preparation
from agentci.runner.services import World


def lockable(configs: Sequence[str], world: World) -> tuple[Wanted, ...]:
    """All programs of the configs that a lock has a word on.

    Raises:
        InputError: with every problem of every config.
    """
    wanted: dict[Wanted, None] = {}
    paths, missing = find_configs(configs, world.workspace)
    problems = [*missing]
    for path in paths:
        try:
            suite = load_suite(path, Overrides(), world).suite
        except InputError as error:
            problems += error.problems
            continue
        programs = needs_of(suite.evaluators, Wanted)
        wanted.update(dict.fromkeys(filter(needs_preparation, programs)))
    if problems:
        raise InputError(problems)
    return tuple(wanted)


def locked_names(wanted: Sequence[Wanted]) -> set[Named]:
    """What the programs that belong into a lock are found by in it."""
    remote = (each.program for each in wanted if not isinstance(each.program, LocalProgram))
    return {named(program) for program in remote if not program.is_own}


def requirements_of(wanted: Wanted, lock: Lock, root: Path) -> tuple[str, ...]:
    """The digest of a program's requirements, by the disk or by the lock; empty without any.

    Args:
        root: of the workspace.

    Raises:
        InputError: they cannot be read.
    """
    program = wanted.program
    if isinstance(program, LocalProgram):
        return _digest(program.requirements)
    if not program.installs or not program.ref.endswith(".py"):
        return ()
    if program.is_own:
        file = (root / program.repository / program.ref).parent / REQUIREMENTS_NAME
        return _digest(str(file) if is_file(file) else None)
    locked = lock.find(program)
    digest = None if locked is None else locked.files.get(REQUIREMENTS_NAME)
    return () if digest is None else (digest,)


def contents_of(lock: Lock) -> str:
    """How much a lock holds, in words."""
    programs = count(len(lock.programs), "evaluator")
    return f"{programs}, {count(len(lock.requirements), 'requirements file')}"


def _digest(file: str | None) -> tuple[str, ...]:
    if file is None:
        return ()
    content = read_file(Path(file), name=file, limit_bytes=MAX_REQUIREMENTS_BYTES)
    return (hashlib.sha256(content).hexdigest(),)
