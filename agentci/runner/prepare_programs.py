"""Has the programs of a plan ready before anything is judged by them."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from agentci._util.files import say
from agentci._util.ownership import FOLDER_MODE
from agentci._util.text.escape import one_line
from agentci._util.workspace import read_file, real
from agentci.config.settings import Access, Settings
from agentci.errors import InputError
from agentci.evaluators.evaluator import needs_of
from agentci.github.checkout import is_committed
from agentci.model.program import LocalProgram, Wanted
from agentci.model.values import replace
from agentci.runner.plan import Plan
from agentci.runner.services import World

if TYPE_CHECKING:
    from agentci.execution.environments.installer_runner import Workshop
    from agentci.execution.environments.store import Environments
    from agentci.model.lock import Lock
    from agentci.remote.options import Stock

MAX_LOCK_BYTES = 16 * 1024**2


def equip(plan: Plan, settings: Settings, world: World) -> tuple[Plan, World]:
    """Fetch what the plan's evaluators need; the plan tells of it, the world has it.

    Raises:
        InputError: what a config names is not there, or not what was pinned.
    """
    wanted = needs_of((check.evaluator for check in plan.checks), Wanted)
    if not any(needs_preparation(each) for each in wanted):
        return plan, world
    from agentci.remote.prepare import gather  # noqa: PLC0415 (of no use to most runs)

    try:
        gathered = gather(wanted, stock_of(settings.access, world, lock=load_lock(world)))
    except InputError as error:
        raise InputError([*plan.problems, *error.problems]) from None
    notices = tuple(each for each in gathered.notices if each not in plan.problems)
    return (
        replace(plan, problems=(*plan.problems, *notices), provenance=gathered.provenance),
        replace(world, shelf=gathered.shelf),
    )


def needs_preparation(wanted: Wanted) -> bool:
    """Whether a program is not ready as it lies there."""
    program = wanted.program
    return not isinstance(program, LocalProgram) or program.requirements is not None


def load_lock(world: World) -> "Lock | None":
    """The lock of the workspace, None where there is none.

    Raises:
        InputError: it cannot be read.
    """
    from agentci.model.lock import LOCK_NAME  # noqa: PLC0415 (likewise)

    path = world.workspace.root / LOCK_NAME
    # What is there and cannot be read is no reason to go without.
    if not os.path.lexists(path):
        return None
    from agentci.remote.lock.file import read_lock  # noqa: PLC0415 (of no use to most runs)

    return read_lock(read_file(path, name=LOCK_NAME, limit_bytes=MAX_LOCK_BYTES), file=LOCK_NAME)


def stock_of(access: Access, world: World, *, lock: "Lock | None") -> "Stock":
    """Where programs are taken from."""
    from agentci.remote.cache.evaluators import EvaluatorStore  # noqa: PLC0415
    from agentci.remote.environments import Packages  # noqa: PLC0415 (likewise)
    from agentci.remote.options import Stock  # noqa: PLC0415

    folder = cache_folder(access, world)
    return Stock(
        sources=world.sources.offline() if access.offline else world.sources,
        store=EvaluatorStore(folder, owner=world.workspace.root),
        spare=_spare_folder,
        packages=Packages(lambda: _environments(folder, world, offline=access.offline)),
        lock=lock,
        locked=access.locked,
        offline=access.offline,
        anew=access.anew,
    )


def _environments(folder: Path, world: World, *, offline: bool) -> "Environments":
    from agentci.execution.environments.store import Environments  # noqa: PLC0415 (likewise)

    return Environments(
        folder,
        workshop=workshop_of(world),
        tell=lambda text: say(f"{one_line(text)}\n", world.err),
        offline=offline,
        owner=world.workspace.root,
    )


def workshop_of(world: World) -> "Workshop":
    """Where installers of packages do their work."""
    from agentci.execution.environments.installer_runner import Workshop  # noqa: PLC0415 (likewise)

    return Workshop(
        executor=world.executors["local"],
        environment=world.installer_environment,
        search_path=world.search_path,
    )


def cache_folder(access: Access, world: World) -> Path:
    """The folder of the cache: what the user names, from the working directory.

    Raises:
        InputError: the repository brings it along, or leads it elsewhere.
    """
    named, workspace = access.cache_dir, world.workspace
    folder = workspace.cwd / named if named else world.cache_folder
    if not Path(os.path.normpath(folder)).is_relative_to(workspace.root):
        if not workspace.holds(folder):
            return folder
        folder = real(folder)  # a link leads in, as one to the whole workspace does
    shown = workspace.name_of(folder)
    if not workspace.holds(folder):
        message = f"the cache {shown} leads out of the workspace by a link"
        raise InputError.of(message, hint="remove the link, or name the folder with --cache-dir")
    if is_committed(folder, workspace):
        raise InputError.of(
            f"the cache {shown} is committed: evaluators would come from it that nobody reviewed",
            hint=f"git rm -r --cached {shown}, or name another folder with --cache-dir",
        )
    return folder


def _spare_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="agentci-"))
    folder.chmod(FOLDER_MODE)  # programs may run as another user
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
