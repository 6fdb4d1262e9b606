"""Has the services of a plan ready that are to grade."""

from collections.abc import Iterable, Iterator
from typing import Final

from agentci._util.files import say
from agentci._util.text.escape import one_line
from agentci.config.settings import Settings
from agentci.errors import FetchError, InputError
from agentci.evaluators.evaluator import needs_of
from agentci.model.grading import WantedService
from agentci.model.problem import Problem
from agentci.model.values import replace
from agentci.runner.plan import Plan
from agentci.runner.services import World

OPENAI_HOST: Final = "api.openai.com"
OPENAI_ENDED: Final = (
    "OpenAI takes no evals since 2026-10-31; leave `backend` out, and agentci grades by itself"
)


def engage(plan: Plan, settings: Settings, world: World) -> World:
    """Have what asks services there, where the plan's evaluators want that.

    Raises:
        InputError: one of them cannot be asked.
    """
    services = needs_of((check.evaluator for check in plan.checks), WantedService)
    if not services:
        return world
    from agentci.judges.evals_api.grading import (  # noqa: PLC0415 (of no use to most runs)
        NoGrading,
        RemoteGrading,
    )
    from agentci.judges.transport import Transport  # noqa: PLC0415 (likewise)

    if settings.access.offline:
        return replace(world, remote_grading=NoGrading())
    if problems := (*service_problems(services), *_key_problems(services, world)):
        raise InputError([*plan.problems, *problems])
    transport = Transport(
        tell=lambda text: say(f"{one_line(text)}\n", world.err), stopped=world.interruption.asked
    )
    return replace(world, remote_grading=RemoteGrading(transport, variables=world.variables))


def service_problems(wanted: Iterable[WantedService]) -> Iterator[Problem]:
    """What is wrong with services, as far as one can tell from a config alone."""
    # requests is slow to import, and most runs ask no service.
    from agentci._util.http.addresses import base_of  # noqa: PLC0415 (see above)

    for each in wanted:
        service = each.service
        try:
            address = base_of(service.base_url, unencrypted=not service.key_variable)
        except FetchError as error:
            yield _cannot(each, f"base_url cannot be used: {error}; {error.hint}")
        else:
            if address.origin[1] == OPENAI_HOST:
                yield _cannot(each, OPENAI_ENDED)


def _key_problems(wanted: Iterable[WantedService], world: World) -> Iterator[Problem]:
    for each in wanted:
        variable = each.service.key_variable
        if variable and not world.variables.get(variable, "").strip():
            said = f"the environment variable {variable}, for the key of the service, is not set"
            yield _cannot(each, said)


def _cannot(wanted: WantedService, said: str) -> Problem:
    return Problem(message=f"{wanted.name} cannot be graded: {said}", place=wanted.place)
