"""Has the judges of a plan ready before anything is judged by them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentci.dialects.base import Evaluator
from agentci.engines.world import World
from agentci.errors import FetchError, InputError
from agentci.executors.confinement import Confinement
from agentci.model.exchange import LOCAL
from agentci.model.grading import EvalsService, WantedService
from agentci.model.judging import Panel, WantedPanel
from agentci.model.problem import Problem
from agentci.preflight import Plan
from agentci.sinks import say
from agentci.text.escape import one_line

if TYPE_CHECKING:
    from agentci.evals_api.grading import RemoteGrading
    from agentci.judges.account import Accounts
    from agentci.judges.judge import Judge
    from agentci.judges.transport import Transport

OPENAI_HOST: Final = "api.openai.com"
OPENAI_ENDED: Final = (
    "OpenAI takes no evals since 2026-10-31; leave `backend` out, and agentci grades by itself"
)
HINT: Final = "see docs/judges.md"


def seat(plan: Plan, world: World) -> World:
    """Have the judges there that the plan's evaluators need.

    Raises:
        InputError: one of them cannot be asked.
    """
    evaluators = [check.evaluator for check in plan.checks]
    wanted, services = panels_of(evaluators), services_of(evaluators)
    if not (wanted or services):
        return world
    if problems := (*panel_problems(wanted, world), *service_problems(services, world)):
        raise InputError([*plan.problems, *problems])
    from agentci.judges.account import Accounts  # noqa: PLC0415 (of no use to most runs)
    from agentci.judges.transport import Transport  # noqa: PLC0415 (likewise)

    accounts = Accounts()
    transport = Transport(
        tell=lambda text: say(f"{one_line(text)}\n", world.err), stopped=world.interruption.asked
    )
    payers = {each.panel.payer: each.panel for each in wanted}
    judges = {payer: _judge(panel, world, accounts, transport) for payer, panel in payers.items()}
    return replace(world, judges=judges, remote_grading=_remote_grading(transport, world))


def panels_of(evaluators: Iterable[Evaluator]) -> tuple[WantedPanel, ...]:
    """All panels that evaluators need, each once."""
    needs = (each for one in {id(e): e for e in evaluators}.values() for each in one.needs)
    return tuple(dict.fromkeys(each for each in needs if isinstance(each, WantedPanel)))


def services_of(evaluators: Iterable[Evaluator]) -> tuple[WantedService, ...]:
    """All services that evaluators need, each once."""
    needs = (each for one in {id(e): e for e in evaluators}.values() for each in one.needs)
    return tuple(dict.fromkeys(each for each in needs if isinstance(each, WantedService)))


def service_problems(wanted: Iterable[WantedService], world: World) -> Iterator[Problem]:
    """What keeps services from grading, as far as one can tell before anything is asked."""
    for each in wanted:
        if said := _objection(each.service, world):
            yield Problem(message=f"{each.name} cannot be graded: {said}", place=each.place)


def panel_problems(wanted: Iterable[WantedPanel], world: World) -> Iterator[Problem]:
    """What keeps panels from judging, as far as one can tell before anything is asked."""
    from agentci.judges.standing import objections  # noqa: PLC0415 (of no use to most runs)

    for each in wanted:
        for said in objections(each.panel.settings, world.variables):
            yield Problem(message=f"{each.name} cannot be judged: {said}", place=each.place)


def _objection(service: EvalsService, world: World) -> str | None:
    # requests is slow to import, and most runs ask no service.
    from agentci.http.addresses import address_of  # noqa: PLC0415 (see above)

    variable = service.key_variable
    if variable and not world.variables.get(variable, "").strip():
        return f"the environment variable {variable}, for the key of the service, is not set"
    try:
        address = address_of(service.base_url, unencrypted=not variable)
    except FetchError as error:
        return f"base_url cannot be used: {error}; {error.hint}"
    return OPENAI_ENDED if address.origin[1] == OPENAI_HOST else None


def _remote_grading(transport: "Transport", world: World) -> "RemoteGrading":
    from agentci.evals_api.grading import RemoteGrading  # noqa: PLC0415 (likewise)

    return RemoteGrading(transport, variables=world.variables)


def _judge(panel: Panel, world: World, accounts: "Accounts", transport: "Transport") -> "Judge":
    from agentci.judges.budget import Budget  # noqa: PLC0415 (likewise)
    from agentci.judges.command import CommandAsker, Seat  # noqa: PLC0415
    from agentci.judges.judge import Asker, Judge  # noqa: PLC0415
    from agentci.judges.registry import COMMAND, PROVIDERS  # noqa: PLC0415
    from agentci.judges.service import ServiceAsker  # noqa: PLC0415

    budget = Budget(panel.caps, stopped=world.interruption.asked)
    variables = world.variables
    service = ServiceAsker(transport, budget, variables=variables, accounts=accounts)
    folder = Path(panel.folder) if panel.folder else world.workspace.cwd
    seat = Seat(
        executor=world.executors[LOCAL],
        cwd=folder,
        environment=world.child_environment,
        confinement=Confinement(readable=(world.workspace.root, folder)),
    )
    command = CommandAsker(seat, budget, variables=variables, clock=transport.clock)
    askers: dict[str, Asker] = {**dict.fromkeys(PROVIDERS, service), COMMAND: command}
    return Judge(askers, clock=transport.clock)
