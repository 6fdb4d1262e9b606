"""``agentci run``: evaluate recorded runs, write reports and decide.

The whole pipeline: plan the checks, prepare programs and judges, run the checks, compare with the
baseline, decide, publish.
"""

import signal
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agentci._util.files import prepare_output_folder
from agentci.cli.commands.plan import show_plan
from agentci.cli.publish import (
    load_template,
    publish_crash,
    publish_input_problems,
    publish_report,
)
from agentci.cli.session import Session
from agentci.config.settings import PULL_REQUEST_BASE, Settings
from agentci.errors import InputError, InterruptionError
from agentci.gate.comparison import find_regression_reasons
from agentci.gate.decision import (
    GateReason,
    compute_totals,
    count_coverage,
    decide,
    decide_shard,
    group_results_by_policy,
)
from agentci.gate.policy_changes import choose_fail_on, find_policy_reasons
from agentci.github.events import find_missing_secrets_reason, is_before_merge
from agentci.github.workflow import find_checked_out_commit
from agentci.model.result import Decision, Report
from agentci.model.values import FailOn, Problem, replace
from agentci.reports.contents import StoredContents, limit_contents
from agentci.runner.evaluator_calls import EvaluatorCallLog
from agentci.runner.plan import Plan, make_plan, select_shard
from agentci.runner.prepare_judges import collect_spending, prepare_graders, prepare_judges
from agentci.runner.prepare_programs import prepare_programs
from agentci.runner.response_cache.open import close_response_cache, open_response_cache
from agentci.runner.run_checks import Outcome, ProgressDisplay, run_checks
from agentci.runner.services import Services

if TYPE_CHECKING:
    from agentci.github.baseline.compare import BaselineResults
    from agentci.github.baseline.policy import PolicyCheck


def run(settings: Settings, session: Session, problems: Sequence[Problem] = ()) -> int:
    """Run the checks that ``settings`` select and return the exit code of the gate's decision.

    Reports are written first, even if the input is invalid or the run is interrupted.

    Args:
        problems: of the recorded runs, found before; an error fails the gate.
    """
    if settings.plan:
        return show_plan(settings, session.services, session.out)
    session.services.interruption.is_immediate_allowed = False
    try:
        prepare_output_folder(settings.output_dir, session.services.workspace)
        load_template(settings, session)  # an invalid one ends the run before it starts
    except InputError as error:
        return publish_input_problems(error.problems, session)
    try:
        named, unreadable = _read_named_baseline(settings, session.services)
        policy = _make_policy_check(settings, session, named)
        plan, outcome, baseline = _run_plan(settings, session, policy, named, unreadable)
        plan = replace(plan, problems=(*problems, *plan.problems))
        report = _make_report(plan, outcome, baseline, policy, settings, session)
        report = _save_baseline(report, settings, session)
        report = publish_report(report, settings, session)
    except Exception:
        publish_crash(session.workflow.context)
        raise
    if outcome.bug is not None:
        raise outcome.bug
    return report.decision.exit_code


def _make_policy_check(
    settings: Settings, session: Session, named: "BaselineResults | None"
) -> "PolicyCheck | None":
    """Make the comparison with the policy of the base commit; None if there is no base."""
    if not (settings.baseline or is_before_merge(session.workflow.context.event)):
        return None
    from agentci.github.baseline.base_files import BaseFilesFetcher  # noqa: PLC0415 (rarely used)
    from agentci.github.baseline.policy import PolicyCheck  # noqa: PLC0415 (likewise)

    files = BaseFilesFetcher(settings, session.services, session.workflow)
    gates = None if named is None else named.gates
    return PolicyCheck(settings, session.services, session.workflow, files, named_gates=gates)


def _run_plan(
    settings: Settings,
    session: Session,
    policy: "PolicyCheck | None",
    named: "BaselineResults | None",
    problems: Sequence[Problem],
) -> tuple[Plan, Outcome, "BaselineResults | None"]:
    """Plan and run the checks, and find the baseline.

    Args:
        named: the baseline that is named by path.
        problems: of reading it.
    """
    reason = find_missing_secrets_reason(session.workflow.context)
    plan, services = _prepare_plan(
        settings, session.services, policy, problems, missing_secrets_reason=reason
    )
    # The shard is selected last, so that all shards of a run report the same problems.
    plan = select_shard(plan, settings.shard)
    progress = ProgressDisplay(len(plan.checks), services, quiet=settings.quiet)
    jobs = settings.jobs or services.processors
    cache, problems = open_response_cache(plan, settings, services)
    try:
        log = EvaluatorCallLog(settings.evaluator_io)
        services = replace(services, cached_responses=cache, call_log=log)
        outcome, agent_problems = _run_checks(plan, jobs, progress, settings, services)
        own = replace(session, services=services)
        baseline = _find_baseline(settings, own, plan) if named is None else named
        if baseline is not None:
            from agentci.github.baseline.compare import match_configs  # noqa: PLC0415 (likewise)

            baseline = match_configs(baseline, outcome.results)
        if baseline is not None and policy is not None and outcome.complete:
            from agentci.github.baseline.compare import rescore_outdated  # noqa: PLC0415 (likewise)
            from agentci.runner.rescore import Rescorer  # noqa: PLC0415 (likewise)

            rescorer = Rescorer(
                plan=plan, results=outcome.results, settings=settings, services=services, jobs=jobs
            )
            baseline = rescore_outdated(baseline, rescorer, policy.files)
    finally:
        problems = (*problems, *close_response_cache(cache))
    progress.finish()
    plan = replace(plan, problems=(*plan.problems, *agent_problems, *problems))
    spending, evaluator_calls = collect_spending(plan, services), log.select_worst()
    return plan, replace(outcome, spending=spending, evaluator_calls=evaluator_calls), baseline


def _run_checks(
    plan: Plan, jobs: int, progress: ProgressDisplay, settings: Settings, services: Services
) -> tuple[Outcome, Iterable[Problem]]:
    """Run the checks; also returns the problems of the agents that they wait for."""
    if all(check.case_trials is None for check in plan.checks):
        return run_checks(plan.checks, services=services, jobs=jobs, on_result=progress.count), ()
    from agentci.runner.trial_runner import TrialRunner, write_outputs  # noqa: PLC0415

    agents = TrialRunner(
        services=services,
        jobs=jobs,
        offline=settings.fetch_settings.offline,
        on_result=progress.count,
        on_progress=progress.announce,
        save_runs=lambda runs: write_outputs(runs, plan.gates, settings, services),
    )
    return agents.run(plan), agents.problems


def _read_named_baseline(
    settings: Settings, services: Services
) -> "tuple[BaselineResults | None, tuple[Problem, ...]]":
    """Read the baseline that is named by path, and find its problems.

    None for a shard: shards are compared when they are merged.
    """
    if settings.baseline in ("", PULL_REQUEST_BASE) or settings.shard is not None:
        return None, ()
    from agentci.github.baseline.compare import read_named_baseline  # noqa: PLC0415 (rarely used)

    try:
        return read_named_baseline(settings.baseline, services), ()
    except InputError as error:
        return None, error.problems


def _prepare_plan(
    settings: Settings,
    services: Services,
    policy: "PolicyCheck | None",
    problems: Sequence[Problem],
    *,
    missing_secrets_reason: str,
) -> tuple[Plan, Services]:
    """Plan the checks, and prepare the programs and judges that they need.

    The plan is empty if the input is invalid or reading it was interrupted.

    Args:
        problems: errors that were found before.
    """
    try:
        try:
            services.interruption.is_immediate_allowed = True
            plan = (
                make_plan(settings, services)
                if policy is None
                else make_plan(settings, services, apply_policy=policy.apply)
            )
            if problems:
                raise InputError(problems)
            plan, services = prepare_programs(plan, settings, services)
            plan, services = prepare_judges(
                plan, settings, services, missing_secrets_reason=missing_secrets_reason
            )
            return plan, prepare_graders(plan, settings, services)
        finally:
            services.interruption.is_immediate_allowed = False
    except InputError as error:
        found = dict.fromkeys((*problems, *error.problems))
        return Plan(suites=(), problems=tuple(found)), services
    except InterruptionError:
        return Plan(suites=(), problems=()), services


def _make_report(
    plan: Plan,
    outcome: Outcome,
    baseline: "BaselineResults | None",
    policy: "PolicyCheck | None",
    settings: Settings,
    session: Session,
) -> Report:
    complete = outcome.complete and not session.services.interruption.is_requested()
    commit = find_checked_out_commit(session.services.workspace, session.workflow.context)
    comparison = None
    if baseline is not None:
        from agentci.github.baseline.compare import compare_results  # noqa: PLC0415 (likewise)

        comparison = compare_results(
            baseline, outcome.results, plan.gates, complete=complete and bool(outcome.results)
        )
    policy_comparison = None
    if policy is not None:
        known = None if baseline is None or baseline.stale else baseline
        stored, fail_on = ((), "failed") if known is None else (known.gates, known.fail_on)
        policy_comparison = policy.compare(plan.gates, stored, fail_on)
    reasons = (
        *find_regression_reasons(comparison, plan.gates),
        *find_policy_reasons(policy_comparison),
    )
    fail_on = choose_fail_on(policy_comparison, settings.fail_on)
    decision = _make_decision(plan, outcome, reasons, fail_on, complete=complete)
    report = Report(
        complete=complete,
        decision=_apply_interruption(decision, plan, outcome, session.services),
        totals=compute_totals(outcome.results),
        results=outcome.results,
        problems=(*plan.problems, *_find_sandbox_warnings(session.services)),
        provenance=plan.provenance,
        gates=plan.gates,
        shard_info=plan.shard_info,
        spending=outcome.spending,
        comparison=comparison,
        policy=policy_comparison,
        commit=commit,
        evaluator_calls=outcome.evaluator_calls,
        contents=StoredContents(
            chunks=session.services.run_contents,
            redact=session.services.variables.redactor.redact_value,
        ),
        baseline={} if baseline is None else baseline.checks,
    )
    return limit_contents(report, settings.content)


def _find_baseline(settings: Settings, session: Session, plan: Plan) -> "BaselineResults | None":
    """Find the results of the base commit; None without a baseline, and for a shard."""
    if settings.baseline != PULL_REQUEST_BASE or plan.shard_info is not None:
        return None
    from agentci.github.baseline.compare import load_baseline  # noqa: PLC0415 (rarely used)

    services, workflow = session.services, session.workflow
    commit = find_checked_out_commit(services.workspace, workflow.context)
    return load_baseline(settings, services, workflow, commit)


def _save_baseline(report: Report, settings: Settings, session: Session) -> Report:
    """Save the report for later runs if this one was compared with ``base``."""
    if settings.baseline != PULL_REQUEST_BASE:
        return report
    from agentci.github.baseline.cache import save_baseline  # noqa: PLC0415 (rarely used)

    return save_baseline(report, settings, session.services, session.workflow.context)


def _make_decision(
    plan: Plan,
    outcome: Outcome,
    reasons: Sequence[GateReason],
    fail_on: FailOn,
    *,
    complete: bool,
) -> Decision:
    groups = group_results_by_policy(plan.gates, outcome.results)
    if plan.shard_info is not None:
        return decide_shard(
            groups,
            shard=plan.shard_info.shard,
            problems=plan.problems,
            complete=complete,
            fail_on=fail_on,
        )
    return decide(
        groups,
        problems=plan.problems,
        coverage=count_coverage(plan.gates),
        complete=complete,
        fail_on=fail_on,
        also=reasons,
    )


def _find_sandbox_warnings(services: Services) -> Iterable[Problem]:
    """Yield a warning for each sandbox feature that is not available."""
    for text in services.executors.limitations():
        yield Problem(message=text, severity="warning")


def _apply_interruption(
    decision: Decision, plan: Plan, outcome: Outcome, services: Services
) -> Decision:
    number = services.interruption.signal_number
    if number is None:
        return decision
    done = f"{len(outcome.results)} of {len(plan.checks)} checks ran"
    why = f"interrupted by {signal.Signals(number).name}: {done}"
    return replace(decision, passed=False, exit_code=128 + number, reasons=(why, *decision.reasons))
