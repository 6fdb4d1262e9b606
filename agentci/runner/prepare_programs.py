"""Fetch and install the programs of a plan before its checks run.

Programs of the workspace without a requirements.txt need no preparation: `dispatch.py` runs them
from where they are.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentci._util.cache_folder import find_cache_owner, resolve_cache_folder
from agentci._util.files import FOLDER_MODE, write_to_stream
from agentci._util.text.escape import escape_for_log_line
from agentci._util.workspace import Workspace, limit_input, read_file
from agentci.config.settings import FetchSettings, Settings
from agentci.errors import InputError
from agentci.evaluators.evaluator import collect_needs
from agentci.model.program import LocalProgram, RequiredProgram
from agentci.model.values import Problem, replace
from agentci.runner.check import Check
from agentci.runner.fingerprints import Fingerprints
from agentci.runner.plan import Plan, PlannedSuite
from agentci.runner.services import Services

if TYPE_CHECKING:
    from agentci.execution.environments import EnvironmentStore
    from agentci.execution.installers import InstallerRunner
    from agentci.model.program import Lock
    from agentci.remote.fetch import FetchOptions
    from agentci.remote.programs import ProgramTable

MAX_LOCK_BYTES = 16 * 1024**2


def prepare_programs(plan: Plan, settings: Settings, services: Services) -> tuple[Plan, Services]:
    """Fetch the programs that the plan's evaluators need, and add them to the services.

    Raises:
        InputError: a program was not found, or does not match its pinned digest.
    """
    required = collect_needs((check.evaluator for check in plan.checks), RequiredProgram)
    if not any(needs_preparation(each) for each in required):
        return plan, services
    from agentci.remote.fetch import prepare_wanted_programs  # noqa: PLC0415 (most runs do not need it)

    access = settings.fetch_settings
    try:
        folder, notes = choose_cache_folder(access, services)
        plan = replace(plan, problems=(*plan.problems, *notes))
        options = make_fetch_options(access, services, lock=load_lock(services), folder=folder)
        gathered = prepare_wanted_programs(required, options)
    except InputError as error:
        raise InputError([*plan.problems, *error.problems]) from None
    notices = tuple(each for each in gathered.notices if each not in plan.problems)
    return (
        replace(
            plan,
            suites=add_fetched_code(plan.suites, gathered.table, services.workspace),
            problems=(*plan.problems, *notices),
            provenance=gathered.provenance,
        ),
        replace(services, ready_programs=gathered.table),
    )


def add_fetched_code(
    suites: Sequence[PlannedSuite], table: "ProgramTable", workspace: Workspace
) -> tuple[PlannedSuite, ...]:
    """Add the code of remote programs to the fingerprints of their checks."""
    fingerprints = Fingerprints(workspace)

    def add(check: Check) -> Check:
        found = fingerprints.add_fetched_code(check.fingerprint, check.evaluator, table)
        return check if found == check.fingerprint else replace(check, fingerprint=found)

    return tuple(replace(each, checks=tuple(map(add, each.checks))) for each in suites)


def needs_preparation(required: RequiredProgram) -> bool:
    """Whether a program has to be fetched, or packages installed for it."""
    program = required.program
    return not isinstance(program, LocalProgram) or program.requirements is not None


def load_lock(services: Services) -> "Lock | None":
    """The lock file of the workspace; None if there is none.

    Raises:
        InputError: it cannot be read.
    """
    from agentci.model.program import LOCK_NAME  # noqa: PLC0415 (likewise)

    path = services.workspace.root / LOCK_NAME
    # Not `exists`: a broken link is an error, not a missing lock file.
    if not os.path.lexists(path):
        return None
    from agentci.remote.lock_file import read_lock  # noqa: PLC0415 (most runs do not need it)

    with limit_input(LOCK_NAME):
        data = read_file(
            services.workspace.resolve(path), name=LOCK_NAME, limit_bytes=MAX_LOCK_BYTES
        )
        return read_lock(data, file=LOCK_NAME)


def make_fetch_options(
    access: FetchSettings, services: Services, *, lock: "Lock | None", folder: Path | None = None
) -> "FetchOptions":
    """Sources, cache and lock, from which programs are fetched.

    Args:
        folder: the cache; None for the one of ``find_cache_folder``.
    """
    from agentci.remote.evaluator_cache import EvaluatorCache  # noqa: PLC0415
    from agentci.remote.fetch import FetchOptions, LazyEnvironments  # noqa: PLC0415

    cache = folder or find_cache_folder(access, services)
    return FetchOptions(
        sources=services.sources.without_network() if access.offline else services.sources,
        cache=EvaluatorCache(cache, owner=find_cache_owner(cache)),
        make_fallback_folder=_make_temporary_folder,
        environments=LazyEnvironments(
            lambda: _make_environment_store(cache, services, offline=access.offline)
        ),
        lock=lock,
        require_locked=access.locked,
        offline=access.offline,
        refetch=access.no_cache,
    )


def _make_environment_store(
    folder: Path, services: Services, *, offline: bool
) -> "EnvironmentStore":
    from agentci.execution.environments import EnvironmentStore  # noqa: PLC0415 (likewise)

    return EnvironmentStore(
        folder,
        installer_runner=make_installer_runner(services),
        notify=lambda text: write_to_stream(f"{escape_for_log_line(text)}\n", services.err),
        offline=offline,
        owner=find_cache_owner(folder),
    )


def make_installer_runner(services: Services) -> "InstallerRunner":
    """The runner of package installers."""
    from agentci.execution.installers import InstallerRunner  # noqa: PLC0415 (likewise)

    return InstallerRunner(
        executor=services.executors["local"],
        environment=services.installer_environment,
        search_path=services.search_path,
        workspace=services.workspace,
    )


def find_cache_folder(access: FetchSettings, services: Services) -> Path:
    """The cache folder: that of --cache-dir, relative to the working directory, or the default.

    Raises:
        InputError: a pull request or another user may have written to it.
    """
    folder = services.workspace.cwd / (access.cache_dir or services.cache_folder)
    return resolve_cache_folder(folder, services.workspace)


def choose_cache_folder(
    access: FetchSettings, services: Services
) -> tuple[Path, tuple[Problem, ...]]:
    """The cache folder of a run; in place of one that is not trusted an empty one, with a note.

    Raises:
        InputError: there is no place for an empty one.
    """
    try:
        return find_cache_folder(access, services), ()
    except InputError as error:
        try:
            folder = _make_temporary_folder()
        except OSError:
            raise error from None
        return folder, tuple(replace(each, severity="note") for each in error.problems)


def _make_temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="agentci-"))
    folder.chmod(FOLDER_MODE)  # programs may run as another user
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
