"""Prepare a run: get the programs and judges that its checks need, and open folders to them."""

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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from agentci._util.workspace import restore_path
from agentci.errors import EvaluatorError, FetchError
from agentci.execution.executor_api import SandboxPolicy
from agentci.model.judges import JudgeConfig, RequiredJudge
from agentci.model.requests import LOCAL_EXECUTOR, RequiredService
from agentci.model.result import JudgeSpending
from agentci.model.values import Severity

if TYPE_CHECKING:
    from agentci.judges.budget import Budget
    from agentci.judges.client import ServiceClient
    from agentci.judges.command import CommandClient
    from agentci.judges.judge import OfflineModelClient
    from agentci.judges.keys import ApiKeys
    from agentci.judges.transport import Transport
from agentci._util.workspace import ResolvedPath, is_folder
from agentci.config.variables import RESERVED_HINT, is_reserved
from agentci.execution.environment_variables import is_harmless
from agentci.execution.executor_api import BROAD_FOLDERS, TMP_FOLDERS

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
    """The cache folder of a run; an untrusted one is replaced by an empty one, with a note.

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


OPENAI_HOST: Final = "api.openai.com"
OPENAI_EVALS_ENDED: Final = (
    "OpenAI ended its Evals API on 2026-10-31; remove `backend` to have agentci run the graders"
)


def prepare_graders(plan: Plan, settings: Settings, services: Services) -> Services:
    """Add the client of grading services to ``services`` if the plan's evaluators need one.

    Raises:
        InputError: a service has an invalid address or no API key.
    """
    graded = collect_needs((check.evaluator for check in plan.checks), RequiredService)
    if not graded:
        return services
    from agentci.judges.evals_api_client import (  # noqa: PLC0415 (most runs do not need it)
        EvalsApiClient,
        OfflineEvalsApiClient,
    )
    from agentci.judges.transport import Transport  # noqa: PLC0415 (likewise)

    if settings.fetch_settings.offline:
        return replace(services, remote_grading=OfflineEvalsApiClient())
    if problems := (*find_service_problems(graded), *_find_missing_service_keys(graded, services)):
        raise InputError([*plan.problems, *problems])
    transport = Transport(
        report=lambda text: write_to_stream(f"{escape_for_log_line(text)}\n", services.err),
        stopped=services.interruption.is_requested,
    )
    return replace(services, remote_grading=EvalsApiClient(transport, variables=services.variables))


def find_service_problems(required: Iterable[RequiredService]) -> Iterator[Problem]:
    """Errors in the settings of grading services; no request is made."""
    # requests is slow to import, and most runs ask no service.
    from agentci._util.http_transport import parse_base_url  # noqa: PLC0415 (see above)

    for each in required:
        service = each.service
        try:
            address = parse_base_url(service.base_url, unencrypted=not service.key_variable)
        except FetchError as error:
            yield _make_service_problem(each, f"invalid `base_url`: {error}; {error.hint}")
        else:
            if address.origin[1] == OPENAI_HOST:
                yield _make_service_problem(each, OPENAI_EVALS_ENDED)


def _find_missing_service_keys(
    required: Iterable[RequiredService], services: Services
) -> Iterator[Problem]:
    for each in required:
        variable = each.service.key_variable
        if variable and not services.variables.get(variable).strip():
            message = f"the API key of the service is missing: `{variable}` is not set"
            yield _make_service_problem(each, message)


def _make_service_problem(required: RequiredService, message: str) -> Problem:
    return Problem(message=f"evaluator `{required.name}`: {message}", place=required.place)


UNSET_HINT: Final = "set each for agentci, in a workflow with `env:` of the step, or add `judge:`"
NO_MODEL_HINT: Final = "add `judge:`, or pass --judge-model, to run it"
SECRETS_HINT: Final = "see agentci's docs/judges.md#without-secrets"
KEY_HINT: Final = (
    "set it, in a workflow with `env:` of the step, or name another with `api_key_env`"
)


def prepare_judges(
    plan: Plan, settings: Settings, services: Services, *, missing_secrets_reason: str
) -> tuple[Plan, Services]:
    """Prepare the judges that the plan's evaluators need; adds their warnings to the plan.

    Args:
        missing_secrets_reason: why this run cannot have API keys; empty if it should have them.

    Raises:
        InputError: a judge has invalid settings, a missing key or a model that no longer exists.
    """
    required = collect_needs((check.evaluator for check in plan.checks), RequiredJudge)
    if not required:
        return plan, services
    from agentci.judges.client import EmbeddingComparer  # noqa: PLC0415 (most runs do not need it)
    from agentci.judges.judge import Judge  # noqa: PLC0415 (likewise)
    from agentci.judges.keys import ApiKeys  # noqa: PLC0415
    from agentci.judges.providers import COMMAND_PROVIDER, PROVIDERS  # noqa: PLC0415
    from agentci.judges.transport import Transport  # noqa: PLC0415

    transport = Transport(
        report=lambda text: write_to_stream(f"{escape_for_log_line(text)}\n", services.err),
        stopped=services.interruption.is_requested,
    )
    keys = ApiKeys(services.variables, transport, unavailable_reason=missing_secrets_reason)
    called = (
        ()
        if settings.fetch_settings.offline
        else tuple(
            e for e in required if e.judge.replay != "only" and not e.judge.settings.unavailable
        )
    )
    can_call = not keys.unavailable_reason
    problems = [
        *find_judge_problems(required, unset="error" if can_call else "warning"),
        *_find_missing_keys(called, keys),
    ]
    if not _has_errors(problems):  # requests about models need valid settings and keys
        problems += _find_deprecations(called, keys, transport)
    if _has_errors(problems):
        raise InputError([*plan.problems, *problems])
    judge_configs = {each.judge.budget_id: each.judge for each in required}
    budgets = _make_budgets(judge_configs, services)
    offline = settings.fetch_settings.offline
    service_of = _make_client_factory(keys, transport, offline=offline)
    clients = {budget_id: service_of(budget) for budget_id, budget in budgets.items()}
    judges: dict[str, Judge] = {}
    for budget_id, config in judge_configs.items():
        service = clients[budget_id]
        program = _make_command_client(config, budgets[budget_id], keys, transport, services)
        by_provider = {
            **dict.fromkeys(PROVIDERS, service),
            COMMAND_PROVIDER: service if offline else program,
        }
        judges[budget_id] = Judge(by_provider, clock=transport.clock)
    comparers = {
        budget_id: EmbeddingComparer(service, clock=transport.clock)
        for budget_id, service in clients.items()
    }
    plan = replace(plan, problems=(*plan.problems, *problems))
    return plan, replace(services, judges=judges, embedding_clients=comparers, budgets=budgets)


def find_judge_problems(
    required: Iterable[RequiredJudge], *, unset: Severity = "warning"
) -> Iterator[Problem]:
    """Errors in the settings of judges; no request is made.

    Args:
        unset: severity of settings whose environment variables are not set, and of judges that
            are not models.
    """
    from agentci.judges.keys import find_settings_problems  # noqa: PLC0415 (most runs do not need it)

    for each in required:
        if reason := each.judge.settings.unavailable:
            problem = _make_judge_problem(
                each, f"it has no judge model: {reason}", hint=NO_MODEL_HINT
            )
            yield replace(problem, severity=unset)
            continue
        if names := each.judge.settings.unset_variables:
            problem = _make_judge_problem(
                each,
                f"its judge needs variables that are not set: {', '.join(names)}",
                hint=UNSET_HINT,
            )
            yield replace(problem, severity=unset)
            continue
        for message in find_settings_problems(each.judge.settings):
            yield _make_judge_problem(each, message)


def collect_spending(plan: Plan, services: Services) -> tuple[JudgeSpending, ...]:
    """The calls, tokens and costs of the plan's judges so far, by budget."""
    if not services.budgets:
        return ()
    required = collect_needs((check.evaluator for check in plan.checks), RequiredJudge)
    unpriced = {each.judge.budget_id for each in required if each.judge.settings.prices is None}
    return tuple(
        JudgeSpending(
            config=budget_id,
            spent=budget.spent,
            saved=budget.saved,
            priced=budget_id not in unpriced,
        )
        for budget_id, budget in services.budgets.items()
    )


def _has_errors(problems: Iterable[Problem]) -> bool:
    return any(each.severity == "error" for each in problems)


def _make_judge_problem(
    required: RequiredJudge, message: str, *, hint: str | None = None
) -> Problem:
    message = f"evaluator `{required.name}`: {message}"
    return Problem(message=message, place=required.place, hint=hint)


def _find_missing_keys(called: Iterable[RequiredJudge], keys: "ApiKeys") -> Iterator[Problem]:
    """Missing API keys, each once: errors, or warnings if this run cannot have secrets."""
    missing: dict[str, RequiredJudge] = {}
    for each in called:
        if message := keys.explain_missing(each.judge.settings):
            missing.setdefault(message, each)
    for message, each in missing.items():
        if keys.unavailable_reason:
            yield Problem(
                message="checks without a cached response are skipped:"
                f" {message} ({keys.unavailable_reason})",
                place=each.place,
                hint=SECRETS_HINT,
                severity="warning",
            )
        else:
            is_key = each.judge.settings.federation is None
            yield _make_judge_problem(each, message, hint=KEY_HINT if is_key else None)


def _find_deprecations(
    called: Iterable[RequiredJudge], keys: "ApiKeys", transport: "Transport"
) -> Iterator[Problem]:
    """Models that were shut down (errors) or will be (warnings); each is looked up once."""
    from agentci.judges.keys import find_shutdown_warning, reports_shutdown_dates  # noqa: PLC0415 (likewise)

    known: dict[Hashable, RequiredJudge] = {}
    for each in called:
        settings = each.judge.settings
        if reports_shutdown_dates(settings):
            account = (settings.base_url, settings.key_variable, settings.federation)
            known.setdefault((settings.model, account), each)
    for each in known.values():
        settings = each.judge.settings
        try:
            message = find_shutdown_warning(
                settings, transport, keys=keys, today=datetime.now(UTC).date()
            )
        except EvaluatorError as error:
            yield _make_judge_problem(each, str(error))
        else:
            if message:
                yield Problem(message=message, place=each.place, severity="warning")


def _make_budgets(
    judge_configs: Mapping[str, JudgeConfig], services: Services
) -> dict[str, "Budget"]:
    from agentci.judges.budget import Budget  # noqa: PLC0415 (likewise)

    return {
        budget_id: Budget(config.caps, stopped=services.interruption.is_requested)
        for budget_id, config in judge_configs.items()
    }


def _make_client_factory(
    keys: "ApiKeys", transport: "Transport", *, offline: bool
) -> Callable[["Budget"], "ServiceClient | OfflineModelClient"]:
    """A function that makes the client of one budget; all share rate limits per account."""
    from agentci.judges.client import ServiceClient  # noqa: PLC0415
    from agentci.judges.judge import OfflineModelClient  # noqa: PLC0415
    from agentci.judges.transport import ServiceStates  # noqa: PLC0415 (likewise)

    service_states = ServiceStates()

    def service(budget: "Budget") -> "ServiceClient | OfflineModelClient":
        if offline:
            return OfflineModelClient()
        return ServiceClient(transport, budget, keys=keys, service_states=service_states)

    return service


def _make_command_client(
    config: JudgeConfig,
    budget: "Budget",
    keys: "ApiKeys",
    transport: "Transport",
    services: Services,
) -> "CommandClient":
    from agentci.judges.command import CommandClient, CommandSandbox  # noqa: PLC0415 (likewise)

    folder = Path(config.folder) if config.folder else services.workspace.cwd
    sandbox = CommandSandbox(
        executor=services.executors[LOCAL_EXECUTOR],
        cwd=folder,
        environment=services.child_environment,
        sandbox_policy=SandboxPolicy(
            readable=(restore_path(str(services.workspace.root)), restore_path(str(folder))),
            workspace=services.workspace.root,
        ),
    )
    return CommandClient(sandbox, budget, keys=keys, clock=transport.clock)


def open_evaluator_caches(
    folders: Mapping[str, str], services: Services
) -> Mapping[str, ResolvedPath]:
    """Resolve the folders, by the variables in which programs find them.

    Raises:
        InputError: a program could read more there than models, a pull request can change the
            folder, or it does not exist.
    """
    problems = [
        Problem(message=f"evaluator-cache: {message}", hint=hint)
        for name, folder in folders.items()
        for message, hint in _find_objections(name, folder, services)
    ]
    if problems:
        raise InputError(problems)
    return {
        name: services.workspace.resolve_given(Path(folder)) for name, folder in folders.items()
    }


def _find_objections(name: str, folder: str, services: Services) -> Iterator[tuple[str, str]]:
    """What is wrong with a variable and its folder, and what to do."""
    if is_reserved(name):
        yield f"{name} cannot be set", RESERVED_HINT
    elif is_harmless(name, ""):
        yield f"{name} has another meaning for every program", "choose another variable"
    path = Path(folder)
    if not path.is_absolute():
        yield f"{folder} is not an absolute path", f"write {name}=/PATH/OF/THE/FOLDER"
    elif not is_folder(path):
        yield f"{folder} is not a folder", "create and fill it in an earlier step"
    elif not _is_outside(folder, services):
        yield (
            f"{folder} is in the checkout, which a pull request can change",
            "name a folder outside it",
        )
    elif kept := _find_other_content(path, services):
        hint = "name a folder that holds only models"
        yield f"{folder} holds more than models: {kept} is in it", hint


def _is_outside(folder: str, services: Services) -> bool:
    workspace = services.workspace
    checkout, real = workspace.checkout, Path(folder).resolve()
    in_checkout = checkout is not None and real.is_relative_to(checkout)
    return workspace.is_outside(folder) and not in_checkout


def _find_other_content(folder: Path, services: Services) -> Path | None:
    """A folder with files of agentci, of other programs or of the user that is in ``folder``."""
    home = services.child_environment.get("HOME", "")
    kept = (
        *(services.workspace.root, services.workspace.cwd, services.cache_folder),
        *([Path(home)] if home else ()),
        *(Path(each) for each in (tempfile.gettempdir(), *TMP_FOLDERS, *sorted(BROAD_FOLDERS))),
    )
    real = folder.resolve()
    return next((each for each in kept if each.resolve().is_relative_to(real)), None)
