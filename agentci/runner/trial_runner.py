"""Run the trials of the cases of an eval file, check each of them, and record the outputs."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from msgspec import Struct, field

from agentci._util.files import prepare_output_folder, write_output_files
from agentci._util.text import json_text
from agentci._util.text.format import format_count
from agentci.config.settings import Settings
from agentci.errors import EvaluatorError, InputError
from agentci.gate.aggregation import TOLERANCE, aggregate_trials, compute_case_scores
from agentci.model.gate import Gate, GatePolicy
from agentci.model.problem import Problem
from agentci.model.result import CheckResult
from agentci.model.values import replace
from agentci.recordings.agentv.recorded_run import RecordedRun
from agentci.recordings.agentv.transcripts import make_run_row
from agentci.runner.check import Check
from agentci.runner.load_outputs import (
    NO_RUN,
    CaseTrials,
    make_case_with_run,
    make_case_without_run,
    sum_costs,
)
from agentci.runner.output_names import make_output_names
from agentci.runner.plan import Plan, keep_in_memory
from agentci.runner.run_checks import Outcome, run_checks
from agentci.runner.services import Services


def write_outputs(
    runs: Mapping[str, Sequence[RecordedRun]],
    gates: Sequence[Gate],
    settings: Settings,
    services: Services,
) -> tuple[Problem, ...]:
    """Write the runs of each config, whole; tell which could not be.

    Args:
        runs: by their config.
        gates: of all configs of the plan.
    """
    names = make_output_names(gate.config for gate in gates)
    files = {names[config]: map(_format_output_line, own) for config, own in runs.items()}
    try:
        folder = prepare_output_folder(settings.output_dir, services.workspace)
    except InputError as error:
        return error.problems
    refused = write_output_files(folder, files, services.workspace)
    return tuple(
        Problem(message=f"{name} cannot be written: {why}") for name, why in refused.items()
    )


def _format_output_line(run: RecordedRun) -> str:
    return f"{json_text.dumps(make_run_row(run.case_id or '', run.attempt, run.transcript))}\n"


class TrialSequence(Struct, kw_only=True):
    """The attempts of one case.

    Attributes:
        pending: numbers of those that are still to be judged.
        runs: by attempt, recorded or made.
        failures: why there is no run, by attempt.
        results: of all checks, in their order, by attempt.
        cost_limited: whether there would be more if they cost less.
    """

    case_trials: CaseTrials
    policy: GatePolicy
    pending: deque[int]
    runs: dict[int, RecordedRun]
    checks: list[Check] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)
    results: dict[int, tuple[CheckResult, ...]] = field(default_factory=dict)
    cost_limited: bool = False

    @property
    def is_repeated(self) -> bool:
        """Whether its results are made of several."""
        return self.case_trials.trials is not None

    def next_checks(self) -> Iterator[Check]:
        """The checks over the run of the attempt that is next."""
        sample, run = self.case_trials.sample, self.runs.get(self.pending[0])
        if run is None:
            held = keep_in_memory(make_case_without_run(sample, self.failures[self.pending[0]]))
        else:
            held = keep_in_memory(make_case_with_run(sample, run))
        for check in self.checks:
            yield replace(check, case=held.summary, load=held.load)

    def add_results(self, found: Mapping[str, CheckResult]) -> None:
        """Take the results of the attempt that was next, and see whether more are needed."""
        attempt = self.pending.popleft()
        self.results[attempt] = tuple(found[check.id] for check in self.checks)
        trials = self.case_trials.trials
        if trials is None:
            return
        judged = {number: run for number, run in self.runs.items() if number in self.results}
        limit = trials.cost_limit_usd
        if trials.strategy == "pass_at_k" and self._rank_attempt(attempt)[0]:
            self.pending.clear()
        elif limit is not None and sum_costs(judged) >= limit:
            self.pending.clear()
            self.cost_limited = len(self.results) < trials.count

    def combine_results(self) -> Iterator[CheckResult]:
        """One result a check, of all attempts together."""
        trials = self.case_trials.trials
        best = max(self.results, key=self._rank_attempt)
        for index, result in enumerate(self.results[best]):
            runs = [(number, results[index]) for number, results in self.results.items()]
            yield (
                result
                if trials is None
                else aggregate_trials(runs, best, trials.strategy, cost_limited=self.cost_limited)
            )

    def _rank_attempt(self, attempt: int) -> tuple[bool, float]:
        """Whether an attempt would open the gate by itself, and the score of its case."""
        results = self.results[attempt]
        score = next(iter(compute_case_scores(results).values()), -1.0)
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


def make_trial_sequences(
    checks: Iterable[Check], gates: Iterable[Gate], *, runs_agents: bool
) -> tuple[TrialSequence, ...]:
    """The courses of all cases that have attempts, in the order of their checks."""
    policies = {gate.config: gate.policy for gate in gates}
    courses: dict[CaseTrials, TrialSequence] = {}
    for check in checks:
        attempts = check.case_trials
        if attempts is None:
            continue
        if attempts not in courses:
            courses[attempts] = TrialSequence(
                case_trials=attempts,
                policy=policies[check.config],
                pending=deque(attempts.list_attempts(runs_agent=runs_agents)),
                runs=dict(attempts.recorded),
            )
        courses[attempts].checks.append(check)
    return tuple(courses.values())


AGENT_OFFLINE: Final = f"{NO_RUN}, and the agent is not run with --offline"
AGENT_NOT_STARTED: Final = "the agent was not run: the run was to end"


class TrialRunner(Struct, kw_only=True):
    """Runs the agents of a plan, and has all of its checks judged.

    Attributes:
        jobs: how many agents run, or checks are judged, at a time.
        offline: no agent is run.
        on_result: is called with every result.
        on_progress: is called with what is about to take a while, in words.
        save_runs: is called with all runs so far, by their config, whenever agents have run.
        problems: what came up.
    """

    services: Services
    jobs: int
    offline: bool
    on_result: Callable[[CheckResult], None]
    on_progress: Callable[[str], None]
    save_runs: Callable[[Mapping[str, Sequence[RecordedRun]]], Sequence[Problem]]
    problems: dict[Problem, None] = field(default_factory=dict)

    def run(self, plan: Plan) -> Outcome:
        """Judge all checks of ``plan``, some of which have attempts; as ``run_checks``."""
        checks = plan.checks
        courses = make_trial_sequences(checks, plan.gates, runs_agents=not self.offline)
        others = [check for check in checks if check.case_trials is None]
        found: dict[str, CheckResult] = {}
        bug: Exception | None = None
        while bug is None and (others or any(course.pending for course in courses)):
            due = [course for course in courses if course.pending]
            try:
                self._run_agents(due, courses)
            except Exception as error:  # noqa: BLE001 (a bug of ours must not lose what was judged)
                bug = error
                break
            outcome = self._run_round(others, due, found)
            bug, others = outcome.bug, []
            if not outcome.complete:
                break
        self.problems.update(
            dict.fromkeys(map(_make_cost_limit_problem, filter(_has_unknown_costs, courses)))
        )
        results = tuple(found[check.id] for check in checks if check.id in found)
        return Outcome(results=results, complete=len(results) == len(checks), bug=bug)

    def _run_round(
        self, others: Sequence[Check], due: Sequence[TrialSequence], found: dict[str, CheckResult]
    ) -> Outcome:
        """Judge one round, and add to ``found`` what is final."""
        repeated = {check.id for course in due if course.is_repeated for check in course.checks}
        of_this_round: dict[str, CheckResult] = {}

        def take(result: CheckResult) -> None:
            of_this_round[result.id] = result
            if result.id not in repeated:
                found[result.id] = result
                self.on_result(result)

        checks = [*others, *(check for course in due for check in course.next_checks())]
        outcome = run_checks(checks, services=self.services, jobs=self.jobs, tell=take)
        for course in due:
            if all(check.id in of_this_round for check in course.checks):
                course.add_results(of_this_round)
                if course.is_repeated and not course.pending:
                    for result in course.combine_results():
                        found[result.id] = result
                        self.on_result(result)
        return outcome

    def _run_agents(self, due: Sequence[TrialSequence], courses: Sequence[TrialSequence]) -> None:
        """Have a run of the next attempt of each case, or the reason why there is none."""
        waiting = [course for course in due if course.pending[0] not in course.runs]
        asked = [course for course in waiting if self._should_run_agent(course)]
        if not asked:
            return
        self.on_progress(f"running the agent over {format_count(len(asked), 'case')}")
        with ThreadPoolExecutor(max_workers=max(1, min(self.jobs, len(asked)))) as pool:
            list(pool.map(self._run_agent, asked))
        runs: dict[str, list[RecordedRun]] = {}
        for course in courses:
            own = [course.runs[number] for number in sorted(course.runs)]
            runs.setdefault(course.checks[0].config, []).extend(own)
        used = {course.checks[0].config for course in asked}
        kept = {config: own for config, own in runs.items() if config in used}
        self.problems.update(dict.fromkeys(self.save_runs(kept)))

    def _should_run_agent(self, course: TrialSequence) -> bool:
        """Whether its agent is to be run; else the reason is noted."""
        if course.case_trials.agent is not None and not self.offline:
            return True
        course.failures[course.pending[0]] = (
            NO_RUN if course.case_trials.agent is None else AGENT_OFFLINE
        )
        return False

    def _run_agent(self, course: TrialSequence) -> None:
        from agentci.runner.agent import run_agent  # noqa: PLC0415 (of no use to most runs)

        agent, attempt = course.case_trials.agent, course.pending[0]
        if agent is None or self.services.interruption.is_requested():
            course.failures[attempt] = AGENT_NOT_STARTED
            return
        try:
            course.runs[attempt] = run_agent(
                agent, course.case_trials.sample, attempt, self.services
            )
        except EvaluatorError as error:
            course.failures[attempt] = str(error)


def _has_unknown_costs(course: TrialSequence) -> bool:
    """Whether a limit of costs was to be held, and no run said what it cost."""
    trials = course.case_trials.trials
    costs = [run.transcript.cost_usd for run in course.runs.values()]
    return bool(costs) and not any(costs) and trials is not None and bool(trials.cost_limit_usd)


def _make_cost_limit_problem(course: TrialSequence) -> Problem:
    trials = course.case_trials.trials
    return Problem(
        message="`cost_limit_usd` has no effect: outputs do not say their `cost_usd`",
        place=None if trials is None else trials.place,
        severity="warning",
    )
