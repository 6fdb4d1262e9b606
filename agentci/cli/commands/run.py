"""``agentci run``: evaluate recorded runs, write reports and decide; ``plan`` shows the checks.

The whole pipeline: plan the checks, prepare programs and judges, run the checks, compare with the
baseline, decide, publish.
"""

import shlex
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

from agentci._util.files import prepare_output_folder
from agentci._util.text import truncate
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count, format_duration
from agentci.cli.publish import load_template, publish_crash, publish_input_problems, publish_report
from agentci.cli.session import Session
from agentci.config.settings import PULL_REQUEST_BASE, Settings
from agentci.config.suite import Suite
from agentci.errors import EvaluatorError, InputError, InterruptionError
from agentci.gate.comparison import find_regression_reasons
from agentci.gate.decision import compute_totals, decide, decide_shard
from agentci.gate.policy_changes import choose_fail_on, find_policy_reasons
from agentci.gate.rules import GateReason, find_coverage, group_results_by_policy
from agentci.github.events import (
    find_checked_out_commit,
    find_missing_secrets_reason,
    is_before_merge,
)
from agentci.model.judges import AskModel, JudgeConfig
from agentci.model.program import Agent, LocalProgram, Program
from agentci.model.requests import (
    CompareEmbeddings,
    Compose,
    ComputeMetric,
    ConstantJudgement,
    GradeWithService,
    RunCommand,
    RunProgram,
    Skip,
    Task,
)
from agentci.model.result import EXIT_INVALID_INPUT, Decision, Report
from agentci.model.trace import PriceList
from agentci.model.values import FailOn, Place, Problem, replace
from agentci.recordings.registry import REQUESTS_SUFFIX
from agentci.reports.contents import StoredContents, limit_contents
from agentci.reports.problems import render_problems
from agentci.runner.check import Check
from agentci.runner.evaluator_calls import EvaluatorCallLog
from agentci.runner.plan import Plan, make_plan, select_shard
from agentci.runner.prepare import (
    collect_spending,
    prepare_graders,
    prepare_judges,
    prepare_programs,
)
from agentci.runner.response_cache.open import close_response_cache, open_response_cache
from agentci.runner.run_checks import Outcome, ProgressDisplay, run_checks
from agentci.runner.services import Services

if TYPE_CHECKING:
    from agentci.github.baseline.compare import BaselineResults
    from agentci.github.baseline.policy import PolicyCheck

MAX_SELECTED: Final = 5


def run(
    settings: Settings,
    session: Session,
    problems: Sequence[Problem] = (),
    *,
    is_replay: bool = False,
) -> int:
    """Run the checks that ``settings`` select and return the exit code of the gate's decision.

    Reports are written first, even if the input is invalid or the run is interrupted.

    Args:
        problems: of the recorded runs, found before; an error fails the gate.
        is_replay: whether the runs have just been replayed from a recording.
    """
    if settings.plan:
        return show_plan(settings, session.services, session.out)
    started = time.time()
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
        unmeasured = _find_recorded_times(plan) if is_replay else ()
        plan = replace(plan, problems=(*problems, *unmeasured, *plan.problems))
        report = _make_report(plan, outcome, baseline, policy, settings, session)
        report = _save_baseline(report, settings, session)
        report = publish_report(report, settings, session, started=started)
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
        *_describe_selection(settings),
    )
    fail_on = choose_fail_on(policy_comparison, settings.fail_on)
    decision = _make_decision(plan, outcome, reasons, fail_on, complete=complete)
    report = Report(
        complete=complete,
        decision=_apply_interruption(decision, plan, outcome, session.services),
        totals=compute_totals(outcome.results),
        results=outcome.results,
        problems=(
            *plan.problems,
            *_find_left_requests(plan, session.services),
            *_find_sandbox_warnings(session.services),
        ),
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
        prices={each.suite.file: _choose_prices(each.suite) for each in plan.loaded},
    )
    return limit_contents(report, settings.content)


def _choose_prices(suite: Suite) -> PriceList:
    """Return the prices of the config's ``max_cost`` checks if all have the same, else its own."""
    if any(each.identity.type == "check" for each in suite.evaluators):
        from agentci.evaluators.checks.registry import find_common_prices  # noqa: PLC0415 (only with checks)

        if prices := find_common_prices(suite.evaluators):
            return prices
    return {model: price.make_price() for model, price in suite.prices.items()}


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
        coverage=find_coverage(plan.gates),
        complete=complete,
        fail_on=fail_on,
        also=reasons,
    )


def _describe_selection(settings: Settings) -> Iterable[GateReason]:
    """State that the verdict is on a part of the cases."""
    selected = {"--case": settings.cases, "--tag": settings.tags}
    given = [f"{option} {shlex.quote(each)}" for option in selected for each in selected[option]]
    if given:
        shown = " ".join(truncate.truncate_list(given, MAX_SELECTED))
        yield GateReason("unknown", f"only the cases of {shown} were evaluated")


def _find_left_requests(plan: Plan, services: Services) -> Iterable[Problem]:
    """Warn of recorded requests without an eval case, which a replay neither runs nor deletes."""
    workspace = services.workspace
    files = {check.case.recording.file for check in plan.checks if check.case.eval_case_id}
    folders = {(workspace.root / file).with_suffix(REQUESTS_SUFFIX) for file in files}
    if not any(each.is_dir() for each in folders):
        return
    from agentci.record.request_file import (  # noqa: PLC0415 (few runs need it)
        list_request_files,
        make_file_name,
    )

    # A case that is still in the recording is reported there.
    recorded = (check.case.id for check in plan.checks)
    ids = {*recorded, *(case for gate in plan.gates for case in gate.eval_cases)}
    known = {make_file_name(each) for each in ids}
    for folder in sorted(folders):
        with suppress(InputError):  # a link that leads outside
            found = [each.name for each in list_request_files(workspace.resolve_given(folder))]
            left = [name for name in found if name not in known]
            # Without a file of a known case, the folder is of a recording without cases.
            if left and len(left) < len(found):
                yield _make_left_problem(left, workspace.display_path(folder))


def _make_left_problem(names: Sequence[str], folder: str) -> Problem:
    return Problem(
        message=f"{format_count(len(names), 'file')} of recorded requests without an eval case: "
        + ", ".join(truncate.truncate_list(names, MAX_SELECTED)),
        place=Place(file=f"{folder}/{names[0]}"),
        hint="restore the eval case, or delete the file if it was removed on purpose",
        severity="warning",
    )


def _find_recorded_times(plan: Plan) -> Iterable[Problem]:
    """Warn of checks that a slower agent passes, as a replay keeps the times of its recording."""
    from agentci.evaluators.checks.check import CheckEvaluator  # noqa: PLC0415 (few runs need it)
    from agentci.evaluators.checks.limits import MaxDuration, MaxLatency  # noqa: PLC0415 (likewise)

    found = {
        check.evaluator.identity.name: check.evaluator.identity.place
        for check in plan.checks
        if isinstance(check.evaluator, CheckEvaluator)
        and isinstance(check.evaluator.compiled, MaxDuration | MaxLatency)
    }
    for name, place in found.items():
        message = f"{name} checks the recorded times: a replay does not measure the agent's"
        hint = "record without `replay` where times matter"
        yield Problem(message=message, place=place, hint=hint, severity="warning")


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


MAX_COMMAND_LENGTH: Final = 120
NO_CALL_NEEDED: Final = "evaluate without a program or model"


def show_plan(settings: Settings, services: Services, out: TextIO) -> int:
    """Print one line per check, then the problems of the input.

    Raises:
        InputError: the input is invalid, as in a run.
    """
    plan = select_shard(make_plan(settings, services), settings.shard)
    for check in plan.checks:
        identity, description = check.identity, _describe_check(check, settings, services)
        line = f"{identity.place}: {check.case.id}, {identity.name}: {description}"
        line += _describe_repetition(check)
        out.write(f"{escape_for_log_line(line)}\n")
    out.write(f"{_format_check_count(plan)}\n")
    out.write(render_problems(plan.problems, "text") if plan.problems else "")
    return EXIT_INVALID_INPUT if any(each.severity == "error" for each in plan.problems) else 0


def _format_check_count(plan: Plan) -> str:
    count = format_count(len(plan.checks), "check")
    if plan.shard_info is None:
        return count
    return f"{count} of {len(plan.shard_info.checks):,} in {plan.shard_info.shard}"


def _describe_check(check: Check, settings: Settings, services: Services) -> str:
    if check.read_result is not None:
        return f"read the result of {check.evaluator.identity.type}"
    agent = None if check.case_trials is None else check.case_trials.agent
    refusal = ""
    if not check.case.dialogue and agent is not None:
        refusal = services.explain_skipped_agent(agent, offline=settings.fetch_settings.offline)
        if not refusal:
            return _describe_agent_run(agent)
    if reason := check.case.unusable_reason:
        return f"error: {reason}, and {refusal}" if refusal else f"error: {reason}"
    try:
        request = check.evaluator.ask(check.load())
    except EvaluatorError as error:
        return f"error: {error}"
    return f"skip: {request.reason}" if isinstance(request, Skip) else _describe_task(request)


def _describe_repetition(check: Check) -> str:
    """Describe how many repeats and trials a check has."""
    times = check.evaluator.identity.repetition.times
    repeats = f"; {format_count(times, 'repeat')}" if times > 1 else ""
    trials = None if check.case_trials is None else check.case_trials.trials
    return repeats if trials is None else f"{repeats}; up to {format_count(trials.count, 'trial')}"


def _describe_agent_run(agent: Agent) -> str:
    line = agent.command if isinstance(agent.command, str) else shlex.join(agent.command)
    shown, seconds = truncate.short(line, MAX_COMMAND_LENGTH), agent.timeout_seconds
    return f"run the agent ({shown}){_format_limit(seconds)}; evaluate"


def _format_limit(seconds: float) -> str:
    return f" for at most {format_duration(seconds * 1000)}"


def _describe_task(task: Task) -> str:
    match task:
        case RunProgram(program=program):
            return f"run {_format_program(program)}{_format_limit(task.timeout_seconds)}"
        case RunCommand(command=command):
            return f"run {_format_command(command)}{_format_limit(task.timeout_seconds)}"
        case Compose(parts=parts):
            return (
                "; ".join(f"{name}: {_describe_task(part)}" for name, part in parts)
                or NO_CALL_NEEDED
            )
        case _:
            return _describe_builtin_task(task)


def _describe_builtin_task(
    task: AskModel | CompareEmbeddings | GradeWithService | ComputeMetric | ConstantJudgement,
) -> str:
    match task:
        case AskModel(judge=judge):
            return f"ask {_format_model(judge)} {format_count(judge.samples, 'time')}"
        case CompareEmbeddings(judge=judge):
            return f"compare embeddings of {_format_model(judge)}"
        case GradeWithService(items=items, service=service):
            return f"grade {format_count(len(items), 'turn')} with {service.base_url}"
        case ComputeMetric(metric=metric):
            return f"compute {metric}"
        case ConstantJudgement():
            return NO_CALL_NEEDED


def _format_model(judge: JudgeConfig) -> str:
    settings = judge.settings
    if settings.command:
        return _format_command(settings.command)
    return f"{settings.model} ({settings.provider})"


def _format_command(command: Sequence[str]) -> str:
    return truncate.short(shlex.join(command), MAX_COMMAND_LENGTH)


def _format_program(program: Program) -> str:
    if isinstance(program, LocalProgram):
        return program.path
    where = " at ".join(each for each in (program.repository, program.revision) if each)
    return f"{program.ref} ({program.source}{': ' if where else ''}{where})"
