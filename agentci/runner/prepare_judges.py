"""Prepare the judges and the grading services that the evaluators of a plan need."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentci._util.files import write_to_stream
from agentci._util.text.escape import escape_for_log_line
from agentci._util.workspace import restore_path
from agentci.config.settings import Settings
from agentci.errors import EvaluatorError, FetchError, InputError
from agentci.evaluators.evaluator import collect_needs
from agentci.execution.executor_api import SandboxPolicy
from agentci.model.judges import JudgeConfig, RequiredJudge
from agentci.model.requests import LOCAL_EXECUTOR, RequiredService
from agentci.model.result import JudgeSpending
from agentci.model.values import Problem, Severity, replace
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
SECRETS_HINT: Final = "see docs/judges.md#without-secrets"
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
            are no models.
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
