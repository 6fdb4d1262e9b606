"""``agentci run``: evaluate recorded runs, write reports and decide.

The whole pipeline: plan the checks, prepare programs and judges, run the checks, compare with the
baseline, decide, publish.
"""

import signal
from collections.abc import Iterable

from agentci._util.files import prepare_output_folder
from agentci.cli.commands.plan import show_plan
from agentci.cli.publish import publish_crash, publish_input_problems, publish_report
from agentci.cli.session import Session
from agentci.config.settings import PULL_REQUEST_BASE, Settings
from agentci.errors import InputError, InterruptionError
from agentci.gate.decision import compute_totals, decide, decide_shard, group_results_by_policy
from agentci.gate.regression import find_regression_reasons
from agentci.github.events import find_missing_secrets_reason
from agentci.github.workflow import find_checked_out_commit
from agentci.model.gate import Comparison
from agentci.model.problem import Problem
from agentci.model.result import Decision, Report
from agentci.model.values import replace
from agentci.runner.plan import Plan, make_plan, select_shard
from agentci.runner.prepare_judges import collect_spending, prepare_graders, prepare_judges
from agentci.runner.prepare_programs import prepare_programs
from agentci.runner.response_cache.open import close_response_cache, open_response_cache
from agentci.runner.run_checks import Outcome, ProgressDisplay, run_checks
from agentci.runner.services import Services
from agentci.runner.transcripts import TranscriptLog


def run(settings: Settings, session: Session) -> int:
    """Run the checks that ``settings`` select and return the exit code of the gate's decision.

    Reports are written first, even if the input is invalid or the run is interrupted.
    """
    if settings.plan:
        return show_plan(settings, session.services, session.out)
    session.services.interruption.is_immediate_allowed = False
    try:
        prepare_output_folder(settings.output_dir, session.services.workspace)
    except InputError as error:
        return publish_input_problems(error.problems, session)
    try:
        plan, outcome = _run_plan(settings, session)
        report = _save_baseline(_make_report(plan, outcome, settings, session), settings, session)
        report = publish_report(report, settings, session)
    except Exception:
        publish_crash(session.workflow.context)
        raise
    if outcome.bug is not None:
        raise outcome.bug
    return report.decision.exit_code


def _run_plan(settings: Settings, session: Session) -> tuple[Plan, Outcome]:
    reason = find_missing_secrets_reason(session.workflow.context)
    plan, services = _prepare_plan(settings, session.services, missing_secrets_reason=reason)
    # The shard is selected last, so that all shards of a run report the same problems.
    plan = select_shard(plan, settings.shard)
    progress = ProgressDisplay(len(plan.checks), services, quiet=settings.quiet)
    jobs = settings.jobs or services.processors
    cache, problems = open_response_cache(plan, settings, services)
    try:
        log = TranscriptLog(settings.evaluator_io)
        services = replace(services, cached_responses=cache, transcript_log=log)
        outcome, agent_problems = _run_checks(plan, jobs, progress, settings, services)
    finally:
        problems = (*problems, *close_response_cache(cache))
    progress.finish()
    plan = replace(plan, problems=(*plan.problems, *agent_problems, *problems))
    return plan, replace(
        outcome, spending=collect_spending(plan, services), transcripts=log.select_worst()
    )


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


def _prepare_plan(
    settings: Settings, services: Services, *, missing_secrets_reason: str
) -> tuple[Plan, Services]:
    """Plan the checks, and prepare the programs and judges that they need.

    The plan is empty if the input is invalid or reading it was interrupted.
    """
    try:
        try:
            services.interruption.is_immediate_allowed = True
            plan, services = prepare_programs(make_plan(settings, services), settings, services)
            plan, services = prepare_judges(
                plan, settings, services, missing_secrets_reason=missing_secrets_reason
            )
            return plan, prepare_graders(plan, settings, services)
        finally:
            services.interruption.is_immediate_allowed = False
    except InputError as error:
        return Plan(suites=(), problems=error.problems), services
    except InterruptionError:
        return Plan(suites=(), problems=()), services


def _make_report(plan: Plan, outcome: Outcome, settings: Settings, session: Session) -> Report:
    complete = outcome.complete and not session.services.interruption.is_requested()
    commit = find_checked_out_commit(session.services.workspace, session.workflow.context)
    comparison = _compare_with_baseline(plan, outcome, commit, settings, session)
    decision = _make_decision(plan, outcome, comparison, settings, complete=complete)
    return Report(
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
        commit=commit,
        evaluator_calls=outcome.transcripts,
    )


def _compare_with_baseline(
    plan: Plan, outcome: Outcome, commit: str, settings: Settings, session: Session
) -> Comparison | None:
    """Compare the run with its baseline; shards are compared when they are merged."""
    if not settings.baseline or plan.shard_info is not None:
        return None
    from agentci.github.baseline.compare import compare_with_baseline  # noqa: PLC0415 (rarely used)

    return compare_with_baseline(
        settings, session.services, session.workflow, outcome.results, plan.gates, commit
    )


def _save_baseline(report: Report, settings: Settings, session: Session) -> Report:
    """Save the report for later runs if this one was compared with ``base``."""
    if settings.baseline != PULL_REQUEST_BASE:
        return report
    from agentci.github.baseline.save import save_baseline  # noqa: PLC0415 (rarely used)

    return save_baseline(report, settings, session.services, session.workflow.context)


def _make_decision(
    plan: Plan,
    outcome: Outcome,
    comparison: Comparison | None,
    settings: Settings,
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
            fail_on=settings.fail_on,
        )
    return decide(
        groups,
        problems=plan.problems,
        uncovered=sum(len(gate.uncovered) for gate in plan.gates),
        complete=complete,
        fail_on=settings.fail_on,
        also=tuple(find_regression_reasons(comparison, plan.gates)),
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
