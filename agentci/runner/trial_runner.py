"""Judges a plan some of whose cases have to be run first, or several times.

In each round the agents of all cases that are not through run once, several at a time, and what
they answered is judged.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from msgspec import Struct, field

from agentci._util.text.format import count
from agentci.errors import EvaluatorError
from agentci.model.problem import Problem
from agentci.model.result import Result
from agentci.recordings.agentv.recorded_run import RecordedRun
from agentci.runner.check import Check
from agentci.runner.plan import Plan
from agentci.runner.run_checks import Outcome, judge_all
from agentci.runner.services import World
from agentci.runner.trial_runs import NO_RUN
from agentci.runner.trials import Course, courses_of

NOT_OFFLINE: Final = f"{NO_RUN}, and the agent is not run with --offline"
NOT_BEGUN: Final = "the agent was not run: the run was to end"


class Agents(Struct, kw_only=True):
    """Runs the agents of a plan, and has all of its checks judged.

    Attributes:
        jobs: how many agents run, or checks are judged, at a time.
        offline: no agent is run.
        tell: is called with every result.
        note: is called with what is about to take a while, in words.
        keep: is called with all runs so far, by their config, whenever agents have run.
        problems: what came up.
    """

    world: World
    jobs: int
    offline: bool
    tell: Callable[[Result], None]
    note: Callable[[str], None]
    keep: Callable[[Mapping[str, Sequence[RecordedRun]]], Sequence[Problem]]
    problems: dict[Problem, None] = field(default_factory=dict)

    def judge(self, plan: Plan) -> Outcome:
        """Judge all checks of ``plan``, some of which have attempts; as ``judge_all``."""
        checks = plan.checks
        courses = courses_of(checks, plan.gates, runs_agents=not self.offline)
        others = [check for check in checks if check.attempts is None]
        found: dict[str, Result] = {}
        bug: Exception | None = None
        while bug is None and (others or any(course.left for course in courses)):
            due = [course for course in courses if course.left]
            try:
                self._run_agents(due, courses)
            except Exception as error:  # noqa: BLE001 (a bug of ours must not lose what was judged)
                bug = error
                break
            outcome = self._judged(others, due, found)
            bug, others = outcome.bug, []
            if not outcome.complete:
                break
        self.problems.update(dict.fromkeys(map(_unheld, filter(_lacks_costs, courses))))
        results = tuple(found[check.id] for check in checks if check.id in found)
        return Outcome(results=results, complete=len(results) == len(checks), bug=bug)

    def _judged(
        self, others: Sequence[Check], due: Sequence[Course], found: dict[str, Result]
    ) -> Outcome:
        """Judge one round, and add to ``found`` what is final."""
        repeated = {check.id for course in due if course.repeats for check in course.checks}
        of_this_round: dict[str, Result] = {}

        def take(result: Result) -> None:
            of_this_round[result.id] = result
            if result.id not in repeated:
                found[result.id] = result
                self.tell(result)

        checks = [*others, *(check for course in due for check in course.next_checks())]
        outcome = judge_all(checks, world=self.world, jobs=self.jobs, tell=take)
        for course in due:
            if all(check.id in of_this_round for check in course.checks):
                course.take(of_this_round)
                if course.repeats and not course.left:
                    for result in course.whole():
                        found[result.id] = result
                        self.tell(result)
        return outcome

    def _run_agents(self, due: Sequence[Course], courses: Sequence[Course]) -> None:
        """Have a run of the next attempt of each case, or the reason why there is none."""
        waiting = [course for course in due if course.left[0] not in course.runs]
        asked = [course for course in waiting if self._asks(course)]
        if not asked:
            return
        self.note(f"running the agent over {count(len(asked), 'case')}")
        with ThreadPoolExecutor(max_workers=max(1, min(self.jobs, len(asked)))) as pool:
            list(pool.map(self._run_agent, asked))
        runs: dict[str, list[RecordedRun]] = {}
        for course in courses:
            own = [course.runs[number] for number in sorted(course.runs)]
            runs.setdefault(course.checks[0].config, []).extend(own)
        used = {course.checks[0].config for course in asked}
        kept = {config: own for config, own in runs.items() if config in used}
        self.problems.update(dict.fromkeys(self.keep(kept)))

    def _asks(self, course: Course) -> bool:
        """Whether its agent is to be run; else the reason is noted."""
        if course.attempts.agent is not None and not self.offline:
            return True
        course.failures[course.left[0]] = NO_RUN if course.attempts.agent is None else NOT_OFFLINE
        return False

    def _run_agent(self, course: Course) -> None:
        from agentci.runner.agent import run_agent  # noqa: PLC0415 (of no use to most runs)

        agent, attempt = course.attempts.agent, course.left[0]
        if agent is None or self.world.interruption.asked():
            course.failures[attempt] = NOT_BEGUN
            return
        try:
            course.runs[attempt] = run_agent(agent, course.attempts.sample, attempt, self.world)
        except EvaluatorError as error:
            course.failures[attempt] = str(error)


def _lacks_costs(course: Course) -> bool:
    """Whether a limit of costs was to be held, and no run said what it cost."""
    trials = course.attempts.trials
    costs = [run.transcript.cost_usd for run in course.runs.values()]
    return bool(costs) and not any(costs) and trials is not None and bool(trials.cost_limit_usd)


def _unheld(course: Course) -> Problem:
    trials = course.attempts.trials
    return Problem(
        message="`cost_limit_usd` has no effect: outputs do not say their `cost_usd`",
        place=None if trials is None else trials.place,
        severity="warning",
    )
