"""Prepare the judges and the grading services that the evaluators of a plan need."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentci._util.files import write_to_stream
from agentci._util.text.escape import escape_for_log_line
from agentci.config.settings import Settings
from agentci.errors import EvaluatorError, FetchError, InputError
from agentci.evaluators.evaluator import collect_needs
from agentci.execution.executor_api import SandboxPolicy
from agentci.model.judges import JudgeConfig, RequiredJudge
from agentci.model.problem import Problem
from agentci.model.requests import LOCAL_EXECUTOR, RequiredService
from agentci.model.result import JudgeSpending
from agentci.model.values import replace
from agentci.runner.plan import Plan
from agentci.runner.services import Services

if TYPE_CHECKING:
    from agentci.judges.budget import Budget
    from agentci.judges.client import ServiceClient
    from agentci.judges.command import CommandClient
    from agentci.judges.judge import OfflineModelClient
    from agentci.judges.keys import ApiKeys
    from agentci.judges.transport import Transport


OPENAI_HOST: Final = "api.openai.com"
OPENAI_EVALS_ENDED: Final = (
    "OpenAI takes no evals since 2026-10-31; leave `backend` out, and agentci grades by itself"
)


def prepare_graders(plan: Plan, settings: Settings, services: Services) -> Services:
    """Have what asks services there, where the plan's evaluators want that.

    Raises:
        InputError: one of them cannot be asked.
    """
    graded = collect_needs((check.evaluator for check in plan.checks), RequiredService)
    if not graded:
        return services
    from agentci.judges.evals_api_client import (  # noqa: PLC0415 (of no use to most runs)
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


def find_service_problems(wanted: Iterable[RequiredService]) -> Iterator[Problem]:
    """What is wrong with services, as far as one can tell from a config alone."""
    # requests is slow to import, and most runs ask no service.
    from agentci._util.http.addresses import parse_base_url  # noqa: PLC0415 (see above)

    for each in wanted:
        service = each.service
        try:
            address = parse_base_url(service.base_url, unencrypted=not service.key_variable)
        except FetchError as error:
            yield _make_service_problem(each, f"base_url cannot be used: {error}; {error.hint}")
        else:
            if address.origin[1] == OPENAI_HOST:
                yield _make_service_problem(each, OPENAI_EVALS_ENDED)


def _find_missing_service_keys(
    wanted: Iterable[RequiredService], services: Services
) -> Iterator[Problem]:
    for each in wanted:
        variable = each.service.key_variable
        if variable and not services.variables.get(variable, "").strip():
            said = f"the environment variable {variable}, for the key of the service, is not set"
            yield _make_service_problem(each, said)


def _make_service_problem(wanted: RequiredService, said: str) -> Problem:
    return Problem(message=f"{wanted.name} cannot be graded: {said}", place=wanted.place)


SECRETS_HINT: Final = "see docs/judges.md#without-secrets"
KEY_HINT: Final = "set it, in a workflow by `env:` of the step, or name another with `api_key_env`"


def prepare_judges(
    plan: Plan, settings: Settings, services: Services, *, missing_secrets_reason: str
) -> tuple[Plan, Services]:
    """Prepare the judges that the plan's evaluators need; the returned plan has their problems.

    Args:
        missing_secrets_reason: why there can be no API keys; empty where there should be.

    Raises:
        InputError: one of them cannot be asked.
    """
    wanted = collect_needs((check.evaluator for check in plan.checks), RequiredJudge)
    if not wanted:
        return plan, services
    from agentci.judges.embeddings import EmbeddingComparer  # noqa: PLC0415 (of no use to most runs)
    from agentci.judges.judge import Judge  # noqa: PLC0415 (likewise)
    from agentci.judges.keys import ApiKeys  # noqa: PLC0415
    from agentci.judges.registry import COMMAND_PROVIDER, PROVIDERS  # noqa: PLC0415
    from agentci.judges.transport import Transport  # noqa: PLC0415

    transport = Transport(
        report=lambda text: write_to_stream(f"{escape_for_log_line(text)}\n", services.err),
        stopped=services.interruption.is_requested,
    )
    keys = ApiKeys(services.variables, transport, unavailable_reason=missing_secrets_reason)
    asked = (
        () if settings.fetch_settings.offline else tuple(e for e in wanted if _calls_model(e.judge))
    )
    problems = [*find_judge_problems(wanted), *_find_missing_keys(asked, keys)]
    if not _has_errors(problems):  # else services would be asked about models that nobody named
        problems += _find_deprecations(asked, keys, transport)
    if _has_errors(problems):
        raise InputError([*plan.problems, *problems])
    payers = {each.judge.budget_id: each.judge for each in wanted}
    budgets = _make_budgets(payers, services)
    offline = settings.fetch_settings.offline
    service_of = _make_client_factory(keys, transport, offline=offline)
    clients = {budget_id: service_of(budget) for budget_id, budget in budgets.items()}
    judges: dict[str, Judge] = {}
    for budget_id, panel in payers.items():
        service = clients[budget_id]
        program = _make_command_client(panel, budgets[budget_id], keys, transport, services)
        askers = {
            **dict.fromkeys(PROVIDERS, service),
            COMMAND_PROVIDER: service if offline else program,
        }
        judges[budget_id] = Judge(askers, clock=transport.clock)
    comparers = {
        budget_id: EmbeddingComparer(service, clock=transport.clock)
        for budget_id, service in clients.items()
    }
    plan = replace(plan, problems=(*plan.problems, *problems))
    return plan, replace(services, judges=judges, embedding_clients=comparers, budgets=budgets)


def find_judge_problems(wanted: Iterable[RequiredJudge]) -> Iterator[Problem]:
    """What is wrong with panels, as far as one can tell before anything is asked."""
    from agentci.judges.validate import find_settings_problems  # noqa: PLC0415 (of no use to most runs)

    for each in wanted:
        for said in find_settings_problems(each.judge.settings):
            yield _make_judge_problem(each, said)


def collect_spending(plan: Plan, services: Services) -> tuple[JudgeSpending, ...]:
    """What the judges of a plan have cost so far."""
    if not services.budgets:
        return ()
    wanted = collect_needs((check.evaluator for check in plan.checks), RequiredJudge)
    unpriced = {each.judge.budget_id for each in wanted if each.judge.settings.prices is None}
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


def _calls_model(panel: JudgeConfig) -> bool:
    return panel.replay != "only"


def _make_judge_problem(wanted: RequiredJudge, said: str, *, hint: str | None = None) -> Problem:
    return Problem(message=f"{wanted.name} cannot be judged: {said}", place=wanted.place, hint=hint)


def _find_missing_keys(asked: Iterable[RequiredJudge], keys: "ApiKeys") -> Iterator[Problem]:
    """Keys that are missing, each once; where they cannot be there, that is a warning."""
    missing: dict[str, RequiredJudge] = {}
    for each in asked:
        if said := keys.explain_missing(each.judge.settings):
            missing.setdefault(said, each)
    for said, each in missing.items():
        if keys.unavailable_reason:
            why = (
                f"what no recorded reply judges is skipped: {said}, since {keys.unavailable_reason}"
            )
            yield Problem(message=why, place=each.place, hint=SECRETS_HINT, severity="warning")
        else:
            is_key = each.judge.settings.federation is None
            yield _make_judge_problem(each, said, hint=KEY_HINT if is_key else None)


def _find_deprecations(
    asked: Iterable[RequiredJudge], keys: "ApiKeys", transport: "Transport"
) -> Iterator[Problem]:
    """Models that have ended or are about to; each is looked up once."""
    from agentci.judges.validate import find_shutdown_warning, reports_shutdown_dates  # noqa: PLC0415 (likewise)

    known: dict[Hashable, RequiredJudge] = {}
    for each in asked:
        settings = each.judge.settings
        if reports_shutdown_dates(settings):
            way = (settings.base_url, settings.key_variable, settings.federation)
            known.setdefault((settings.model, way), each)
    for each in known.values():
        settings = each.judge.settings
        try:
            said = find_shutdown_warning(
                settings, transport, keys=keys, today=datetime.now(UTC).date()
            )
        except EvaluatorError as error:
            yield _make_judge_problem(each, str(error))
        else:
            if said:
                yield Problem(message=said, place=each.place, severity="warning")


def _make_budgets(payers: Mapping[str, JudgeConfig], services: Services) -> dict[str, "Budget"]:
    from agentci.judges.budget import Budget  # noqa: PLC0415 (likewise)

    return {
        budget_id: Budget(panel.caps, stopped=services.interruption.is_requested)
        for budget_id, panel in payers.items()
    }


def _make_client_factory(
    keys: "ApiKeys", transport: "Transport", *, offline: bool
) -> Callable[["Budget"], "ServiceClient | OfflineModelClient"]:
    """What makes those who ask services; what one learns of an account, all know."""
    from agentci.judges.client import ServiceClient  # noqa: PLC0415
    from agentci.judges.judge import OfflineModelClient  # noqa: PLC0415
    from agentci.judges.transport import ServiceStates  # noqa: PLC0415 (likewise)

    accounts = ServiceStates()

    def service(budget: "Budget") -> "ServiceClient | OfflineModelClient":
        if offline:
            return OfflineModelClient()
        return ServiceClient(transport, budget, keys=keys, service_states=accounts)

    return service


def _make_command_client(
    panel: JudgeConfig,
    budget: "Budget",
    keys: "ApiKeys",
    transport: "Transport",
    services: Services,
) -> "CommandClient":
    from agentci.judges.command import CommandClient, CommandSandbox  # noqa: PLC0415 (likewise)

    folder = Path(panel.folder) if panel.folder else services.workspace.cwd
    seat = CommandSandbox(
        executor=services.executors[LOCAL_EXECUTOR],
        cwd=folder,
        environment=services.child_environment,
        sandbox_policy=SandboxPolicy(readable=(services.workspace.root, folder)),
    )
    return CommandClient(seat, budget, keys=keys, clock=transport.clock)
