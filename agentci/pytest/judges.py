"""The judges of one pytest session: who is asked, by which budget, and what was replied before."""

from collections.abc import Iterator

from agentci.config.settings import settings_of
from agentci.model.judging import WantedPanel
from agentci.model.policy import Gate, GatePolicy
from agentci.model.problem import Problem
from agentci.model.spending import Spending
from agentci.model.values import replace
from agentci.runner.check import Check
from agentci.runner.open_response_cache import close_replies, open_replies
from agentci.runner.plan import Plan, PlannedSuite
from agentci.runner.prepare_judges import seat, spending_of
from agentci.runner.services import World


class Seats:
    """Has judges ready as checks ask for them; all checks that name the same have one budget."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._seated: dict[str, tuple[Plan, World]] = {}

    def world_for(self, check: Check) -> World:
        """The world with the judges of a check.

        Raises:
            InputError: one of them cannot be asked.
        """
        needs = check.evaluator.needs
        key = "".join(need.panel.payer for need in needs if isinstance(need, WantedPanel))
        if key not in self._seated:
            self._seated[key] = self._seat(check)
        return self._seated[key][1]

    def close(self) -> Iterator[Problem]:
        """Keep what was replied; what there is to tell of the judges."""
        for plan, _ in self._seated.values():
            yield from plan.problems
        yield from close_replies(self._world.replies)

    def spending(self) -> Iterator[Spending]:
        """What judges cost, under the test file that named them first."""
        for plan, world in self._seated.values():
            for each in spending_of(plan, world):
                yield replace(each, config=plan.gates[0].config)

    def _seat(self, check: Check) -> tuple[Plan, World]:
        settings = settings_of((), {})
        gate = Gate(config=check.config, policy=GatePolicy(), evaluators=())
        plan = Plan(suites=(PlannedSuite(gate=gate, checks=(check,)),), problems=())
        plan, world = seat(plan, settings, self._world)
        if world.judges and self._world.replies is None:
            replies, problems = open_replies(plan, settings, world)
            self._world = replace(self._world, replies=replies)
            plan = replace(plan, problems=(*plan.problems, *problems))
        return plan, replace(world, replies=self._world.replies)
