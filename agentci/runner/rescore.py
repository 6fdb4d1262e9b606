"""Evaluate the recorded runs of a baseline again, with the evaluators of this run.

The result of a check in the baseline is not comparable if its evaluator or eval case has changed
since. If the recorded runs of the baseline are available, the check is evaluated on them as in this
run: with the same evaluators, eval sets, thresholds, sandbox and remaining budget.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from agentci._util.files import SpooledChunks
from agentci._util.text import truncate
from agentci._util.workspace import Workspace
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.model.case import Case, CaseSummary
from agentci.model.result import SCORED_STATUSES, CheckResult, RunContent
from agentci.model.values import replace
from agentci.reports.run_content import (
    decode_content,
    explain_incomplete_content,
    list_dialogue,
    restore_trace,
)
from agentci.runner.check import Check
from agentci.runner.plan import Plan, plan_suites
from agentci.runner.prepare import add_fetched_code
from agentci.runner.run_checks import run_checks
from agentci.runner.services import Services

MAX_REASONS: Final = 2
AGENT_RUNS: Final = "the config runs the agent, or has several trials per case"
OTHER_RUNS: Final = "the recorded runs at that commit are not those of the baseline"
OTHER_ROWS: Final = "the rows hold both the expectations and the answers, and changed"
MESSAGES_NOT_KEPT: Final = "results do not keep the messages of runs of eval files"
INTERRUPTED: Final = "the run was interrupted"


class RescoredBaseline(Struct, frozen=True, kw_only=True):
    """The results of a baseline, some of them from a new evaluation.

    Attributes:
        rescored: ids of the checks that were evaluated again.
        from_results: of these, those whose runs were kept in the results of the baseline.
        stored: the baseline's own results of these checks.
        reasons: why others were not.
    """

    results: tuple[CheckResult, ...]
    rescored: frozenset[str] = frozenset()
    from_results: frozenset[str] = frozenset()
    stored: tuple[CheckResult, ...] = ()
    reasons: tuple[str, ...] = ()


class Rescorer(Struct, frozen=True, kw_only=True):
    """Evaluates the recorded runs of a baseline as a run does.

    Attributes:
        plan: of the run.
        results: of the run.
        services: prepared for the plan.
        jobs: number of checks at a time.
    """

    plan: Plan
    results: tuple[CheckResult, ...]
    settings: Settings
    services: Services
    jobs: int

    def find_outdated(self, before: Sequence[CheckResult]) -> tuple[Check, ...]:
        """The checks that the baseline evaluated in another way, or whose evaluator it lacks.

        Checks that the run did not score are left out: they stay changed, and count as worse if
        they passed in the baseline.

        Args:
            before: results of the baseline.
        """
        known = {result.id: result.fingerprint for result in before}
        cases = {result.case.id for result in before} | {result.case.trace_id for result in before}
        scored = {each.id for each in self.results if each.status in SCORED_STATUSES}
        return tuple(
            check
            for check in self.plan.checks
            if check.id in scored
            and known.get(check.id) != check.fingerprint
            and (check.id in known or {check.case.id, check.case.trace_id} & cases)
        )

    def rescore(
        self,
        outdated: Sequence[Check],
        before: Sequence[CheckResult],
        runs_workspace: Workspace | None,
        why: str = "",
    ) -> RescoredBaseline:
        """Evaluate ``outdated`` checks on the baseline's recorded runs.

        The runs are those in its commit, else those that its results keep. Checks that error or are
        skipped there keep their result in the baseline.

        Args:
            before: results of the baseline.
            runs_workspace: the files of the baseline's commit; None without them.
            why: why there are none.
        """
        checks, reasons = (
            ([], [why])
            if runs_workspace is None
            else self._find_checks(outdated, before, runs_workspace)
        )
        found = {check.id for check in checks}
        missing = [check for check in outdated if check.id not in found]
        restored = [*self._restore_checks(missing, before, reasons)]
        checks += restored
        outcome = run_checks(
            checks,
            services=replace(self.services, call_log=None),
            jobs=self.jobs,
            on_result=lambda _: None,
        )
        if outcome.bug is not None:
            reasons.append(f"a bug of agentci ({type(outcome.bug).__name__})")
        elif not outcome.complete:
            reasons.append(INTERRUPTED)
        again = {each.id: each for each in outcome.results if each.status in SCORED_STATUSES}
        unscored = (each for each in outcome.results if each.status not in SCORED_STATUSES)
        reasons += [f"{each.status}: {each.reason}" for each in unscored]
        rescored = frozenset(again)
        replaced = [again.pop(each.id, each) for each in before]
        return RescoredBaseline(
            results=(*replaced, *again.values()),
            rescored=rescored,
            from_results=rescored & {check.id for check in restored},
            stored=tuple(each for each in before if each.id in rescored),
            reasons=tuple(truncate.truncate_list(list(dict.fromkeys(reasons)), MAX_REASONS)),
        )

    def _find_checks(
        self, outdated: Sequence[Check], before: Sequence[CheckResult], runs_workspace: Workspace
    ) -> tuple[list[Check], list[str]]:
        """The checks on the baseline's runs, and why there are none for others."""
        wanted = {check.id: check for check in outdated}
        runs = {result.case.run for result in before}
        found: list[Check] = []
        reasons: list[str] = []
        for base in self._plan_checks(wanted, runs_workspace, reasons):
            check = wanted[base.id]
            if check.case_trials is not None:
                reasons.append(AGENT_RUNS)
            elif base.case.run not in runs:
                reasons.append(OTHER_RUNS)
            elif base.fingerprint != check.fingerprint:
                reasons.append(OTHER_ROWS)
            else:
                found.append(replace(check, case=base.case, load=base.load))
        return found, reasons

    def _restore_checks(
        self, checks: Sequence[Check], before: Sequence[CheckResult], reasons: list[str]
    ) -> Iterator[Check]:
        """Yield ``checks`` on the runs that the baseline's results keep; adds to ``reasons``."""
        evaluated = [each for each in before if each.status in SCORED_STATUSES]
        by_check = {each.id: each.case for each in evaluated}
        by_case = {(each.config, each.case.id): each.case for each in evaluated}
        for check in checks:
            case = by_check.get(check.id) or by_case.get((check.config, check.case.id))
            if case is None or case.content is None:
                continue
            content = decode_content(self.services.run_contents.read(case.content))
            if reason := _explain_unrestorable(check, content):
                reasons.append(reason)
                continue
            load = partial(_restore_case, check, case, self.services.run_contents)
            yield replace(check, case=replace(case, dialogue=list_dialogue(content)), load=load)

    def _plan_checks(
        self, wanted: Mapping[str, Check], runs_workspace: Workspace, reasons: list[str]
    ) -> Iterator[Check]:
        """Pair the evaluators of this run with the runs of the baseline; adds to ``reasons``."""
        configs = {check.config for check in wanted.values()}
        for loaded in self.plan.loaded:
            if loaded.suite.file not in configs:
                continue
            try:
                planned = plan_suites(
                    [loaded], self.settings, self.services, runs_workspace=runs_workspace
                )
            except InputError as error:
                reasons.append(error.problems[0].message)
                continue
            reasons += [str(each) for each in planned.problems if each.severity == "error"]
            programs, workspace = self.services.ready_programs, self.services.workspace
            for suite in add_fetched_code(planned.suites, programs, workspace):
                yield from (check for check in suite.checks if check.id in wanted)


def _explain_unrestorable(check: Check, content: RunContent) -> str:
    """Explain why a check cannot be evaluated on a run that results keep; empty if it can."""
    if check.case_trials is not None:
        return AGENT_RUNS
    head = check.load()
    if head.agentv_case is not None:
        return MESSAGES_NOT_KEPT
    if head.dataset_row is not None and head.dataset_row.turn is not None:
        return OTHER_ROWS
    return explain_incomplete_content(content)


def _restore_case(check: Check, case: CaseSummary, contents: SpooledChunks) -> Case:
    """The case of this run, with the run that the baseline's results keep."""
    content = decode_content(contents.read(case.content or 0))
    return replace(check.load(), trace=restore_trace(case, content))
