"""Has the judges of a plan ready before anything is judged by them."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentci._util.files import say
from agentci._util.text.escape import one_line
from agentci.config.settings import Settings
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.evaluator import needs_of
from agentci.execution.limits import Confinement
from agentci.github.read_event import read_event
from agentci.github.secrets import withheld
from agentci.model.judging import Panel, WantedPanel
from agentci.model.problem import Problem
from agentci.model.requests import LOCAL
from agentci.model.spending import Spending
from agentci.model.values import replace
from agentci.runner.plan import Plan
from agentci.runner.services import World

if TYPE_CHECKING:
    from agentci.judges.budget import Budget
    from agentci.judges.client import ServiceAsker
    from agentci.judges.command import CommandAsker
    from agentci.judges.keys import Keys
    from agentci.judges.replay import OfflineAsker
    from agentci.judges.transport import Transport

HINT: Final = "see docs/judges.md#without-secrets"
KEY_HINT: Final = "set it, in a workflow by `env:` of the step, or name another with `api_key_env`"


def seat(plan: Plan, settings: Settings, world: World) -> tuple[Plan, World]:
    """Have the judges there that the plan's evaluators need; the plan tells of them.

    Raises:
        InputError: one of them cannot be asked.
    """
    wanted = needs_of((check.evaluator for check in plan.checks), WantedPanel)
    if not wanted:
        return plan, world
    from agentci.judges.embedding_client import Comparer  # noqa: PLC0415 (of no use to most runs)
    from agentci.judges.judge import Judge  # noqa: PLC0415 (likewise)
    from agentci.judges.keys import Keys  # noqa: PLC0415
    from agentci.judges.registry import COMMAND, PROVIDERS  # noqa: PLC0415
    from agentci.judges.transport import Transport  # noqa: PLC0415

    github = world.github
    reason = withheld(read_event(github), github.actor)
    transport = Transport(
        tell=lambda text: say(f"{one_line(text)}\n", world.err), stopped=world.interruption.asked
    )
    keys = Keys(world.variables, transport, withheld=reason)
    asked = () if settings.access.offline else tuple(e for e in wanted if _asks(e.panel))
    problems = [*panel_problems(wanted), *_key_problems(asked, keys)]
    if not _errors(problems):  # else services would be asked about models that nobody named
        problems += _endings(asked, keys, transport)
    if _errors(problems):
        raise InputError([*plan.problems, *problems])
    payers = {each.panel.payer: each.panel for each in wanted}
    budgets = _budgets(payers, world)
    offline = settings.access.offline
    service_of = _services(keys, transport, offline=offline)
    services = {payer: service_of(budget) for payer, budget in budgets.items()}
    judges: dict[str, Judge] = {}
    for payer, panel in payers.items():
        service = services[payer]
        program = _program(panel, budgets[payer], keys, transport, world)
        askers = {
            **dict.fromkeys(PROVIDERS, service),
            COMMAND: service if offline else program,
        }
        judges[payer] = Judge(askers, clock=transport.clock)
    comparers = {
        payer: Comparer(service, clock=transport.clock) for payer, service in services.items()
    }
    plan = replace(plan, problems=(*plan.problems, *problems))
    return plan, replace(world, judges=judges, comparers=comparers, budgets=budgets)


def panel_problems(wanted: Iterable[WantedPanel]) -> Iterator[Problem]:
    """What is wrong with panels, as far as one can tell before anything is asked."""
    from agentci.judges.validate import objections  # noqa: PLC0415 (of no use to most runs)

    for each in wanted:
        for said in objections(each.panel.settings):
            yield _cannot(each, said)


def spending_of(plan: Plan, world: World) -> tuple[Spending, ...]:
    """What the judges of a plan have cost so far."""
    if not world.budgets:
        return ()
    wanted = needs_of((check.evaluator for check in plan.checks), WantedPanel)
    unpriced = {each.panel.payer for each in wanted if each.panel.settings.prices is None}
    return tuple(
        Spending(config=payer, spent=budget.spent, saved=budget.saved, priced=payer not in unpriced)
        for payer, budget in world.budgets.items()
    )


def _errors(problems: Iterable[Problem]) -> bool:
    return any(each.severity == "error" for each in problems)


def _asks(panel: Panel) -> bool:
    return panel.replay != "only"


def _cannot(wanted: WantedPanel, said: str, *, hint: str | None = None) -> Problem:
    return Problem(message=f"{wanted.name} cannot be judged: {said}", place=wanted.place, hint=hint)


def _key_problems(asked: Iterable[WantedPanel], keys: "Keys") -> Iterator[Problem]:
    """Keys that are missing, each once; where they cannot be there, that is a warning."""
    missing: dict[str, WantedPanel] = {}
    for each in asked:
        if said := keys.missing(each.panel.settings):
            missing.setdefault(said, each)
    for said, each in missing.items():
        if keys.withheld:
            why = f"what no recorded reply judges is skipped: {said}, since {keys.withheld}"
            yield Problem(message=why, place=each.place, hint=HINT, severity="warning")
        else:
            is_key = each.panel.settings.federation is None
            yield _cannot(each, said, hint=KEY_HINT if is_key else None)


def _endings(
    asked: Iterable[WantedPanel], keys: "Keys", transport: "Transport"
) -> Iterator[Problem]:
    """Models that have ended or are about to; each is looked up once."""
    from agentci.judges.deprecations import tells_ends, warning_of  # noqa: PLC0415 (likewise)

    known: dict[Hashable, WantedPanel] = {}
    for each in asked:
        settings = each.panel.settings
        if tells_ends(settings):
            way = (settings.base_url, settings.key_variable, settings.federation)
            known.setdefault((settings.model, way), each)
    for each in known.values():
        settings = each.panel.settings
        try:
            said = warning_of(settings, transport, keys=keys, today=datetime.now(UTC).date())
        except EvaluatorError as error:
            yield _cannot(each, str(error))
        else:
            if said:
                yield Problem(message=said, place=each.place, severity="warning")


def _budgets(payers: Mapping[str, Panel], world: World) -> dict[str, "Budget"]:
    from agentci.judges.budget import Budget  # noqa: PLC0415 (likewise)

    return {
        payer: Budget(panel.caps, stopped=world.interruption.asked)
        for payer, panel in payers.items()
    }


def _services(
    keys: "Keys", transport: "Transport", *, offline: bool
) -> Callable[["Budget"], "ServiceAsker | OfflineAsker"]:
    """What makes those who ask services; what one learns of an account, all know."""
    from agentci.judges.client import ServiceAsker  # noqa: PLC0415
    from agentci.judges.rate_limit import Accounts  # noqa: PLC0415 (likewise)
    from agentci.judges.replay import OfflineAsker  # noqa: PLC0415

    accounts = Accounts()

    def service(budget: "Budget") -> "ServiceAsker | OfflineAsker":
        if offline:
            return OfflineAsker()
        return ServiceAsker(transport, budget, keys=keys, accounts=accounts)

    return service


def _program(
    panel: Panel, budget: "Budget", keys: "Keys", transport: "Transport", world: World
) -> "CommandAsker":
    from agentci.judges.command import CommandAsker, Seat  # noqa: PLC0415 (likewise)

    folder = Path(panel.folder) if panel.folder else world.workspace.cwd
    seat = Seat(
        executor=world.executors[LOCAL],
        cwd=folder,
        environment=world.child_environment,
        confinement=Confinement(readable=(world.workspace.root, folder)),
    )
    return CommandAsker(seat, budget, keys=keys, clock=transport.clock)
