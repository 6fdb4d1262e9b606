"""``agentci lock``: agree on what evaluators from elsewhere consist of."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from agentci._util.files import say, write_files
from agentci._util.text.escape import one_line
from agentci._util.text.suggest import did_you_mean, quoted, short_commit
from agentci._util.workspace import is_file
from agentci.cli.commands.lock_targets import contents_of, lockable, locked_names, requirements_of
from agentci.config.settings import Access
from agentci.errors import InputError
from agentci.model.lock import LOCK_NAME, Lock
from agentci.model.program import Wanted
from agentci.model.values import replace
from agentci.remote.lock.file import render_lock
from agentci.remote.lock.resolve import lock_programs
from agentci.runner.prepare_programs import load_lock, stock_of, workshop_of
from agentci.runner.services import World


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
    root = world.workspace.root
    wanted = lockable(configs, world)
    old = load_lock(world) or Lock()
    leaving = [name for name in names if name not in more]
    kept = old if upgrade is None else _without(leaving, wanted, old, root)
    locking = lock_programs(
        wanted,
        stock_of(access, world, lock=kept),
        workshop=workshop_of(world),
        workspace=world.workspace,
    )
    new = _joined(locking.lock, old) if configs else locking.lock
    refused = write_files(root, {LOCK_NAME: [render_lock(new)]}, world.workspace)
    if refused:
        raise InputError.of(f"{LOCK_NAME} cannot be written: {refused[LOCK_NAME]}")
    for line in (*locking.notices, *_changes(old, new)):
        say(f"{one_line(line)}\n", world.out)
    say(f"wrote {LOCK_NAME}: {contents_of(new)}\n", world.out)
    return 0


def _without(upgrade: Sequence[str], wanted: Sequence[Wanted], lock: Lock, root: Path) -> Lock:
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
    programs = locked_names(leaving)
    requirements = {digest for each in leaving for digest in requirements_of(each, lock, root)}
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


def _changes(old: Lock, new: Lock) -> Iterator[str]:
    """What a reviewer will find, a line an evaluator."""
    before = {each.named: each for each in old.programs}
    after = {each.named: each for each in new.programs}
    for key, each in sorted(after.items()):
        was = before.get(key)
        if was is None:
            yield f"added {each.ref} at {short_commit(each.commit)}"
        elif was.commit != each.commit:
            yield f"moved {each.ref} from {short_commit(was.commit)} to {short_commit(each.commit)}"
    for key, each in sorted(before.items()):
        if key not in after:
            yield f"removed {each.ref}"
