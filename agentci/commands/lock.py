"""``agentci lock``: agree on what evaluators from elsewhere consist of, and see that it holds."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agentci.config.overrides import Overrides
from agentci.discovery import find_configs
from agentci.engines.world import World
from agentci.equipment import load_lock, needs_preparation, stock_of, workshop_of
from agentci.errors import InputError
from agentci.library.fetching import LOCK_HINT, SHOWN_DIGITS
from agentci.library.gathering import REQUIREMENTS_NAME, read_requirements
from agentci.lockfile import render_lock
from agentci.locking import lock_programs
from agentci.model.lock import LOCK_NAME, Lock, LockedProgram, Named, named
from agentci.model.place import Place
from agentci.model.problem import Problem
from agentci.model.program import LocalProgram, Wanted
from agentci.model.result import EXIT_INVALID
from agentci.reporters.problems import render_problems
from agentci.settings import Access
from agentci.sinks import say, write_files
from agentci.suites import load_suite
from agentci.text.escape import one_line
from agentci.text.names import did_you_mean, quoted
from agentci.text.words import count
from agentci.workspace import is_file


def check_lock(configs: Sequence[str], world: World) -> int:
    """Say what the lock lacks, or has too much of; nothing is fetched.

    Raises:
        InputError: a config or the lock cannot be read.
    """
    wanted = _wanted(configs, world)
    lock = load_lock(world) or Lock()
    problems = [problem for each in wanted for problem in _missing(each, lock)]
    if not configs:
        problems += _unused(wanted, lock)
    if not problems:
        world.out.write(f"{LOCK_NAME} is up to date: {_contents(lock)}\n")
        return 0
    world.out.write(render_problems(problems, "github" if world.github.active else "text"))
    return EXIT_INVALID


def lock(
    configs: Sequence[str], *, upgrade: Sequence[str] | None, access: Access, world: World
) -> int:
    """Lock what configs name; what was locked before stays, unless it is to be upgraded.

    Args:
        configs: those named on the command line; without any all are found, and what none of
            them names is dropped from the lock.
        upgrade: names of the evaluators that leave what they are locked to; empty ones mean all.
            A name that is no evaluator's but a file's is one more config.

    Raises:
        InputError: a config or the lock cannot be read, or something cannot be fetched.
    """
    names = [name for name in upgrade or () if name]
    more = [name for name in names if is_file(world.workspace.cwd / name)]
    configs = (*configs, *more)
    wanted = _wanted(configs, world)
    old = load_lock(world) or Lock()
    leaving = [name for name in names if name not in more]
    kept = old if upgrade is None else _without(leaving, wanted, old)
    locking = lock_programs(
        wanted,
        stock_of(access, world, lock=kept),
        workshop=workshop_of(world),
        workspace=world.workspace,
    )
    new = _joined(locking.lock, old) if configs else locking.lock
    refused = write_files(world.workspace.root, {LOCK_NAME: render_lock(new)}, world.workspace)
    if refused:
        raise InputError.of(f"{LOCK_NAME} cannot be written: {refused[LOCK_NAME]}")
    for line in (*locking.notices, *_changes(old, new)):
        say(f"{one_line(line)}\n", world.out)
    say(f"wrote {LOCK_NAME}: {_contents(new)}\n", world.out)
    return 0


def _wanted(configs: Sequence[str], world: World) -> tuple[Wanted, ...]:
    """All programs of the configs that a lock has a word on.

    Raises:
        InputError: with every problem of every config.
    """
    wanted: dict[Wanted, None] = {}
    problems: list[Problem] = []
    for path in find_configs(configs, world.workspace):
        try:
            suite = load_suite(path, Overrides(), world).suite
        except InputError as error:
            problems += error.problems
            continue
        for evaluator in suite.evaluators:
            wanted.update(dict.fromkeys(filter(needs_preparation, evaluator.needs)))
    if problems:
        raise InputError(problems)
    return tuple(wanted)


def _without(upgrade: Sequence[str], wanted: Sequence[Wanted], lock: Lock) -> Lock:
    """The lock without what is to be upgraded.

    Raises:
        InputError: there is no such evaluator.
    """
    names = list(dict.fromkeys(each.name for each in wanted))
    for name in upgrade:
        if name not in names:
            raise InputError.of(
                f"there is no evaluator {quoted(name)} to upgrade",
                hint=did_you_mean(name, names) or "only what comes from elsewhere is locked",
            )
    leaving = [each for each in wanted if each.name in (upgrade or names)]
    programs = _named(leaving)
    requirements = {digest for each in leaving for digest in _requirements(each, lock)}
    return replace(
        lock,
        programs=tuple(each for each in lock.programs if each.named not in programs),
        requirements=tuple(each for each in lock.requirements if each.sha256 not in requirements),
    )


def _joined(new: Lock, old: Lock) -> Lock:
    """Both locks; where they differ the new one counts."""
    programs = {each.named: each for each in (*old.programs, *new.programs)}
    requirements = {each.sha256: each for each in (*old.requirements, *new.requirements)}
    return Lock(programs=tuple(programs.values()), requirements=tuple(requirements.values()))


def _named(wanted: Sequence[Wanted]) -> set[Named]:
    return {named(each.program) for each in wanted if not isinstance(each.program, LocalProgram)}


def _requirements(wanted: Wanted, lock: Lock) -> tuple[str, ...]:
    """Digests of the requirements of one program, by the disk or by the lock."""
    program = wanted.program
    if isinstance(program, LocalProgram):
        file = program.requirements
        content = None if file is None else read_requirements(Path(file))
        return () if content is None else (hashlib.sha256(content).hexdigest(),)
    locked = lock.find(program)
    digest = None if locked is None else locked.files.get(REQUIREMENTS_NAME)
    return (digest,) if digest is not None and program.installs else ()


def _missing(wanted: Wanted, lock: Lock) -> Iterator[Problem]:
    program = wanted.program
    if not isinstance(program, LocalProgram) and lock.find(program) is None:
        yield _complaint(f"{program.ref} is not in {LOCK_NAME}", wanted.place)
    for digest in _requirements(wanted, lock):
        if lock.find_requirements(digest) is None:
            message = f"the {REQUIREMENTS_NAME} of {wanted.name} is not in {LOCK_NAME}"
            yield _complaint(message, wanted.place)


def _unused(wanted: Sequence[Wanted], lock: Lock) -> Iterator[Problem]:
    used = _named(wanted)
    for each in lock.programs:
        if each.named not in used:
            message = f"no config names {each.ref} ({each.source}: {each.repository}) any more"
            yield _complaint(message, Place(file=LOCK_NAME))
    digests = {digest for each in wanted for digest in _requirements(each, lock)}
    for locked in lock.requirements:
        if locked.sha256 not in digests:
            message = f"no evaluator has the requirements of {locked.file} any more"
            yield _complaint(message, Place(file=LOCK_NAME))


def _complaint(message: str, place: Place) -> Problem:
    return Problem(message=message, place=place, hint=LOCK_HINT)


def _changes(old: Lock, new: Lock) -> Iterator[str]:
    """What a reviewer will find, a line an evaluator."""
    before = {each.named: each for each in old.programs}
    after = {each.named: each for each in new.programs}
    for key, each in sorted(after.items()):
        was = before.get(key)
        if was is None:
            yield f"added {each.ref} at {_short(each)}"
        elif was.commit != each.commit:
            yield f"moved {each.ref} from {_short(was)} to {_short(each)}"
    for key, each in sorted(before.items()):
        if key not in after:
            yield f"removed {each.ref}"


def _short(locked: LockedProgram) -> str:
    return locked.commit.removeprefix("sha256:")[:SHOWN_DIGITS]


def _contents(lock: Lock) -> str:
    programs = count(len(lock.programs), "evaluator")
    return f"{programs}, {count(len(lock.requirements), 'requirements file')}"
