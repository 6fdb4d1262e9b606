"""``agentci lock``: pin remote evaluators and requirements in ``agentci.lock``, or check it."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from agentci._util.files import write_output_files, write_to_stream
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name, shorten_commit, suggest_name
from agentci._util.workspace import ResolvedPath, Workspace, is_file, read_file, restore_path
from agentci.cli.session import Session
from agentci.config.discovery import find_configs
from agentci.config.overrides import Overrides
from agentci.config.settings import FetchSettings
from agentci.config.variables import ANY_NAME
from agentci.errors import InputError
from agentci.evaluators.evaluator import collect_needs
from agentci.model.program import (
    LOCK_NAME,
    REQUIREMENTS_NAME,
    LocalProgram,
    Lock,
    ProgramKey,
    RequiredProgram,
    make_program_key,
)
from agentci.model.result import EXIT_INVALID_INPUT
from agentci.model.values import Place, Problem, replace
from agentci.remote.fetch import LOCK_HINT, MAX_REQUIREMENTS_BYTES
from agentci.remote.lock_file import render_lock
from agentci.remote.resolve_lock import lock_programs
from agentci.reports.problems import render_problems
from agentci.runner import prepare
from agentci.runner.load_configs import load_suite
from agentci.runner.services import Services


def find_lockable_programs(
    configs: Sequence[str], services: Services
) -> tuple[RequiredProgram, ...]:
    """Find all programs of the configs that a lock covers.

    Raises:
        InputError: with every problem of every config.
    """
    required: dict[RequiredProgram, None] = {}
    # No program runs, and no value of a variable gets into the lock.
    services = replace(services, variables=services.variables.allow((ANY_NAME,)))
    paths, missing = find_configs(configs, services.workspace)
    problems = [*missing]
    for path in paths:
        try:
            suite = load_suite(path, Overrides(), services).suite
        except InputError as error:
            problems += error.problems
            continue
        programs = collect_needs(suite.evaluators, RequiredProgram)
        required.update(dict.fromkeys(filter(prepare.needs_preparation, programs)))
    if problems:
        raise InputError(problems)
    return tuple(required)


def list_program_keys(required: Sequence[RequiredProgram]) -> set[ProgramKey]:
    """List the lock keys of all remote programs."""
    remote = (each.program for each in required if not isinstance(each.program, LocalProgram))
    return {make_program_key(program) for program in remote if not program.is_local}


def find_requirements_digest(required: RequiredProgram, lock: Lock, root: Path) -> tuple[str, ...]:
    """Return the digest of a program's requirements file, on disk or in the lock; empty if none.

    Args:
        root: of the workspace.

    Raises:
        InputError: the file cannot be read.
    """
    program = required.program
    if isinstance(program, LocalProgram):
        named = program.requirements
        return _read_digest(None if named is None else restore_path(named))
    if not program.installs_requirements or not program.ref.endswith(".py"):
        return ()
    if program.is_local:
        file = (root / program.repository / program.ref).parent / REQUIREMENTS_NAME
        workspace = Workspace(root=root, cwd=root)
        return _read_digest(workspace.resolve_given(file) if is_file(file) else None)
    locked = lock.find(program)
    digest = None if locked is None else locked.files.get(REQUIREMENTS_NAME)
    return () if digest is None else (digest,)


def format_lock_contents(lock: Lock) -> str:
    """Format the size of a lock: ``2 evaluators, 1 requirements file``."""
    programs = format_count(len(lock.programs), "evaluator")
    return f"{programs}, {format_count(len(lock.requirements), 'requirements file')}"


def _read_digest(file: ResolvedPath | None) -> tuple[str, ...]:
    if file is None:
        return ()
    content = read_file(file, name=str(file), limit_bytes=MAX_REQUIREMENTS_BYTES)
    return (hashlib.sha256(content).hexdigest(),)


def check_lock(configs: Sequence[str], session: Session) -> int:
    """Print missing and unused entries of the lock without fetching anything.

    Raises:
        InputError: a config or the lock cannot be read.
    """
    required = find_lockable_programs(configs, session.services)
    root = session.services.workspace.root
    lock = prepare.load_lock(session.services) or Lock()
    problems = [problem for each in required for problem in _find_missing(each, lock, root)]
    if not configs:
        problems += _find_unused(required, lock, root)
    if not problems:
        session.out.write(f"{LOCK_NAME} is up to date: {format_lock_contents(lock)}\n")
        return 0
    session.out.write(
        render_problems(problems, "github" if session.workflow.context.active else "text")
    )
    return EXIT_INVALID_INPUT


def _find_missing(required: RequiredProgram, lock: Lock, root: Path) -> Iterator[Problem]:
    program = required.program
    if not (isinstance(program, LocalProgram) or program.is_local or lock.find(program)):
        yield _make_lock_problem(f"{program.ref} is not in {LOCK_NAME}", required.place)
    for digest in find_requirements_digest(required, lock, root):
        if lock.find_requirements(digest) is None:
            message = f"the {REQUIREMENTS_NAME} of {required.name} is not in {LOCK_NAME}"
            yield _make_lock_problem(message, required.place)


def _find_unused(required: Sequence[RequiredProgram], lock: Lock, root: Path) -> Iterator[Problem]:
    used = list_program_keys(required)
    for each in lock.programs:
        if each.key not in used:
            message = f"no config uses {each.ref} ({each.source}: {each.repository})"
            yield _make_lock_problem(message, Place(file=LOCK_NAME))
    digests = {digest for each in required for digest in find_requirements_digest(each, lock, root)}
    for locked in lock.requirements:
        if locked.sha256 not in digests:
            message = f"no evaluator uses the requirements of {locked.file}"
            yield _make_lock_problem(message, Place(file=LOCK_NAME))


def _make_lock_problem(message: str, place: Place) -> Problem:
    return Problem(message=message, place=place, hint=LOCK_HINT)


def lock_configs(
    configs: Sequence[str],
    *,
    upgrade: Sequence[str] | None,
    access: FetchSettings,
    services: Services,
    out: TextIO,
) -> int:
    """Lock the programs of configs; existing entries stay unless they are upgraded.

    Args:
        configs: configs of the command line; without any, all configs are found, and unused
            entries are removed from the lock.
        upgrade: names of the evaluators to upgrade; an empty name means all. A name of a file is
            another config.

    Raises:
        InputError: a config or the lock cannot be read, or a download failed.
    """
    names = [name for name in upgrade or () if name]
    more = [name for name in names if is_file(services.workspace.cwd / name)]
    configs = (*configs, *more)
    root = services.workspace.root
    required = find_lockable_programs(configs, services)
    old = prepare.load_lock(services) or Lock()
    upgraded = [name for name in names if name not in more]
    kept = old if upgrade is None else _remove_upgraded(upgraded, required, old, root)
    locking = lock_programs(
        required,
        prepare.make_fetch_options(access, services, lock=kept),
        run_installer=prepare.make_installer_runner(services),
        workspace=services.workspace,
    )
    new = _merge_locks(locking.lock, old) if configs else locking.lock
    folder = services.workspace.resolve(root)
    errors = write_output_files(folder, {LOCK_NAME: [render_lock(new)]}, services.workspace)
    if errors:
        raise InputError.from_message(f"cannot write {LOCK_NAME}: {errors[LOCK_NAME]}")
    for line in (*locking.notices, *_format_changes(old, new)):
        write_to_stream(f"{escape_for_log_line(line)}\n", out)
    write_to_stream(f"wrote {LOCK_NAME}: {format_lock_contents(new)}\n", out)
    return 0


def _remove_upgraded(
    upgrade: Sequence[str], required: Sequence[RequiredProgram], lock: Lock, root: Path
) -> Lock:
    """Return the lock without the entries to upgrade.

    Raises:
        InputError: there is no such evaluator.
    """
    names = list(dict.fromkeys(each.name for each in required))
    for name in upgrade:
        if name not in names:
            raise InputError.from_message(
                f"there is no evaluator {quote_name(name)} to upgrade",
                hint=suggest_name(name, names) or "only remote evaluators are locked",
            )
    upgraded = [each for each in required if each.name in (upgrade or names)]
    programs = list_program_keys(upgraded)
    requirements = {
        digest for each in upgraded for digest in find_requirements_digest(each, lock, root)
    }
    return replace(
        lock,
        programs=tuple(each for each in lock.programs if each.key not in programs),
        requirements=tuple(each for each in lock.requirements if each.sha256 not in requirements),
    )


def _merge_locks(new: Lock, old: Lock) -> Lock:
    """Merge two locks; entries of the new one take precedence."""
    programs = {each.key: each for each in (*old.programs, *new.programs)}
    requirements = {each.sha256: each for each in (*old.requirements, *new.requirements)}
    return Lock(programs=tuple(programs.values()), requirements=tuple(requirements.values()))


def _format_changes(old: Lock, new: Lock) -> Iterator[str]:
    """Format the changes, one line per evaluator."""
    before = {each.key: each for each in old.programs}
    after = {each.key: each for each in new.programs}
    for key, each in sorted(after.items()):
        was = before.get(key)
        if was is None:
            yield f"added {each.ref} at {shorten_commit(each.commit)}"
        elif was.commit != each.commit:
            yield (
                f"updated {each.ref} from {shorten_commit(was.commit)} to "
                f"{shorten_commit(each.commit)}"
            )
    for key, each in sorted(before.items()):
        if key not in after:
            yield f"removed {each.ref}"
