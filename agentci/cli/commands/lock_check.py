"""``agentci lock --check``: see that the lock still says all there is to say."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from agentci.cli.commands.lock_targets import contents_of, lockable, locked_names, requirements_of
from agentci.model.lock import LOCK_NAME, Lock
from agentci.model.place import Place
from agentci.model.problem import Problem
from agentci.model.program import REQUIREMENTS_NAME, LocalProgram, Wanted
from agentci.model.result import EXIT_INVALID
from agentci.remote.fetch import LOCK_HINT
from agentci.reports.problems import render_problems
from agentci.runner.prepare_programs import load_lock
from agentci.runner.services import World


def check_lock(configs: Sequence[str], world: World) -> int:
    """Say what the lock lacks, or has too much of; nothing is fetched.

    Raises:
        InputError: a config or the lock cannot be read.
    """
    wanted = lockable(configs, world)
    root = world.workspace.root
    lock = load_lock(world) or Lock()
    problems = [problem for each in wanted for problem in _missing(each, lock, root)]
    if not configs:
        problems += _unused(wanted, lock, root)
    if not problems:
        world.out.write(f"{LOCK_NAME} is up to date: {contents_of(lock)}\n")
        return 0
    world.out.write(render_problems(problems, "github" if world.github.active else "text"))
    return EXIT_INVALID


def _missing(wanted: Wanted, lock: Lock, root: Path) -> Iterator[Problem]:
    program = wanted.program
    if not (isinstance(program, LocalProgram) or program.is_own or lock.find(program)):
        yield _complaint(f"{program.ref} is not in {LOCK_NAME}", wanted.place)
    for digest in requirements_of(wanted, lock, root):
        if lock.find_requirements(digest) is None:
            message = f"the {REQUIREMENTS_NAME} of {wanted.name} is not in {LOCK_NAME}"
            yield _complaint(message, wanted.place)


def _unused(wanted: Sequence[Wanted], lock: Lock, root: Path) -> Iterator[Problem]:
    used = locked_names(wanted)
    for each in lock.programs:
        if each.named not in used:
            message = f"no config names {each.ref} ({each.source}: {each.repository}) any more"
            yield _complaint(message, Place(file=LOCK_NAME))
    digests = {digest for each in wanted for digest in requirements_of(each, lock, root)}
    for locked in lock.requirements:
        if locked.sha256 not in digests:
            message = f"no evaluator has the requirements of {locked.file} any more"
            yield _complaint(message, Place(file=LOCK_NAME))


def _complaint(message: str, place: Place) -> Problem:
    return Problem(message=message, place=place, hint=LOCK_HINT)
