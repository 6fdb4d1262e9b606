"""One case of an eval file on its way through its attempts, and what they come to."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from agentci.gate.case_scores import case_scores
from agentci.gate.trial_scores import TOLERANCE, combined
from agentci.model.policy import Gate, GatePolicy
from agentci.model.result import Result
from agentci.model.values import replace
from agentci.recordings.agentv.recorded_run import RecordedRun
from agentci.runner.check import Check
from agentci.runner.stored_cases import hold
from agentci.runner.trial_runs import Attempts, case_of, case_without_run, cost_of


class Course(Struct, kw_only=True):
    """The attempts of one case.

    Attributes:
        left: numbers of those that are still to be judged.
        runs: by attempt, recorded or made.
        failures: why there is no run, by attempt.
        results: of all checks, in their order, by attempt.
        cost_limited: whether there would be more if they cost less.
    """

    attempts: Attempts
    policy: GatePolicy
    left: deque[int]
    runs: dict[int, RecordedRun]
    checks: list[Check] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)
    results: dict[int, tuple[Result, ...]] = field(default_factory=dict)
    cost_limited: bool = False

    @property
    def repeats(self) -> bool:
        """Whether its results are made of several."""
        return self.attempts.trials is not None

    def next_checks(self) -> Iterator[Check]:
        """The checks over the run of the attempt that is next."""
        sample, run = self.attempts.sample, self.runs.get(self.left[0])
        if run is None:
            held = hold(case_without_run(sample, self.failures[self.left[0]]))
        else:
            held = hold(case_of(sample, run))
        for check in self.checks:
            yield replace(check, case=held.synopsis, load=held.load)

    def take(self, found: Mapping[str, Result]) -> None:
        """Take the results of the attempt that was next, and see whether more are needed."""
        attempt = self.left.popleft()
        self.results[attempt] = tuple(found[check.id] for check in self.checks)
        trials = self.attempts.trials
        if trials is None:
            return
        judged = {number: run for number, run in self.runs.items() if number in self.results}
        limit = trials.cost_limit_usd
        if trials.strategy == "pass_at_k" and self._rank(attempt)[0]:
            self.left.clear()
        elif limit is not None and cost_of(judged) >= limit:
            self.left.clear()
            self.cost_limited = len(self.results) < trials.count

    def whole(self) -> Iterator[Result]:
        """One result a check, of all attempts together."""
        trials = self.attempts.trials
        best = max(self.results, key=self._rank)
        for index, result in enumerate(self.results[best]):
            runs = [(number, results[index]) for number, results in self.results.items()]
            yield (
                result
                if trials is None
                else combined(runs, best, trials.strategy, cost_limited=self.cost_limited)
            )

    def _rank(self, attempt: int) -> tuple[bool, float]:
        """Whether an attempt would open the gate by itself, and the score of its case."""
        results = self.results[attempt]
        score = next(iter(case_scores(results).values()), -1.0)
        needed = [each for each in results if each.evaluator.required] or results
        bar = self.policy.cases
        if bar is not None:
            needed = [
                each
                for each in needed
                if each.status == "errored" or each.evaluator.name in self.policy.evaluators
            ]
        passes = all(each.status == "passed" for each in needed)
        return passes and (bar is None or score >= bar.threshold - TOLERANCE), score


def courses_of(
    checks: Iterable[Check], gates: Iterable[Gate], *, runs_agents: bool
) -> tuple[Course, ...]:
    """The courses of all cases that have attempts, in the order of their checks."""
    policies = {gate.config: gate.policy for gate in gates}
    courses: dict[Attempts, Course] = {}
    for check in checks:
        attempts = check.attempts
        if attempts is None:
            continue
        if attempts not in courses:
            courses[attempts] = Course(
                attempts=attempts,
                policy=policies[check.config],
                left=deque(attempts.numbers(runs_agent=runs_agents)),
                runs=dict(attempts.recorded),
            )
        courses[attempts].checks.append(check)
    return tuple(courses.values())
