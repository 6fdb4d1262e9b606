"""Plan a run: pair the cases of every config with its evaluators, and select a shard of them.

A run goes through `load_configs.py` and `load_inputs.py`, this module, `prepare.py`
and `run_checks.py`; `check.py` and `dispatch.py` then run a single check.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct, to_builtins

from agentci._util.files import SpooledChunks
from agentci._util.text import json_text
from agentci._util.text.patterns import matches_any
from agentci._util.workspace import ResolvedPath, Workspace, limit_input
from agentci.config.settings import Settings
from agentci.config.suite import EvalFileCase
from agentci.errors import InputError
from agentci.evaluators.evaluator import covers_case
from agentci.model.case import Case, CaseSummary, Dataset, DatasetRow, EvalCase, EvalSet
from agentci.model.gate import Gate
from agentci.model.result import Provenance, Shard, ShardInfo
from agentci.model.values import COMMAND_LINE, Problem, replace
from agentci.recordings.registry import FORMAT_NAMES
from agentci.recordings.telemetry.stored_trace import pack_trace, unpack_trace
from agentci.reports.run_content import make_case_summary
from agentci.runner.check import Check
from agentci.runner.fingerprints import Fingerprints
from agentci.runner.gate_snapshot import make_gate
from agentci.runner.load_configs import find_unread_eval_set, load_suites, make_no_case_error
from agentci.runner.load_inputs import (
    RecordedRuns,
    find_coverage_problems,
    find_expectation_problems,
    find_input_files,
    find_uncompared_problems,
    find_unknown_cases,
    find_unmatched_runs,
    load_eval_set,
    load_suite_dataset,
    read_recorded_runs,
)
from agentci.runner.services import Services
from agentci.runner.suite_files import LoadedSuite, move_suite
from agentci.runner.unused_settings import (
    CalledTools,
    find_unknown_arguments,
    find_unknown_tools,
    find_unread_answers,
    find_unused_patterns,
)
from agentci.version import __version__

if TYPE_CHECKING:
    from agentci.runner.load_outputs import CaseTrials


# All evaluators of a case run close together in time, so few cases are in use at once.
MAX_RECENT_CASES: Final = 8


class StoredCase(Struct, frozen=True, kw_only=True, eq=False):
    """A case whose trace is on disk; what it is compared with stays in memory.

    Attributes:
        number: index of the trace in ``spool``.
    """

    summary: CaseSummary
    expected: EvalCase | None
    row: DatasetRow | None
    spool: SpooledChunks
    number: int

    def load(self) -> Case:
        """The whole case; the last ``MAX_RECENT_CASES`` cases are not read again."""
        return _load_stored_case(self)


def store_case(case: Case, spool: SpooledChunks, contents: SpooledChunks) -> StoredCase:
    """Write the trace of ``case`` to ``spool``, and its content for reports to ``contents``."""
    summary, number = make_case_summary(case, contents), spool.append(pack_trace(case.trace))
    return StoredCase(
        summary=summary, expected=case.expected, row=case.dataset_row, spool=spool, number=number
    )


class InMemoryCase(Struct, frozen=True, kw_only=True):
    """A case that stays in memory. Those of eval files hold more than a trace."""

    summary: CaseSummary
    case: Case

    def load(self) -> Case:
        """The case."""
        return self.case


def keep_in_memory(case: Case, contents: SpooledChunks) -> InMemoryCase:
    """Wrap ``case``; only its content for reports is written to ``contents``."""
    return InMemoryCase(summary=make_case_summary(case, contents), case=case)


@lru_cache(maxsize=MAX_RECENT_CASES)
def _load_stored_case(stored: StoredCase) -> Case:
    summary = stored.summary
    packed = stored.spool.read(stored.number)
    return Case(
        id=summary.id,
        trace=unpack_trace(packed, place=summary.recording, warnings=summary.warnings),
        expected=stored.expected,
        dataset_row=stored.row,
        unmatched_reason=summary.unmatched_reason,
    )


class PlannedSuite(Struct, frozen=True, kw_only=True):
    """The checks of one config, and the gate over them."""

    gate: Gate
    checks: tuple[Check, ...]


class Plan(Struct, frozen=True, kw_only=True):
    """Everything that a run will do.

    Attributes:
        problems: unreadable traces, warnings and notes for the reports.
        provenance: where remote evaluators come from, once they are fetched.
        shard_info: the shard that the plan is; None for a whole plan.
        loaded: the configs that were planned.
    """

    suites: tuple[PlannedSuite, ...]
    problems: tuple[Problem, ...]
    provenance: tuple[Provenance, ...] = ()
    shard_info: ShardInfo | None = None
    loaded: tuple[LoadedSuite, ...] = ()

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates of all configs, in their order."""
        return tuple(suite.gate for suite in self.suites)

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks: config order, then case, then evaluator."""
        return tuple(check for suite in self.suites for check in suite.checks)


def make_plan(
    settings: Settings,
    services: Services,
    *,
    apply_policy: Callable[[Sequence[LoadedSuite]], Sequence[LoadedSuite]] = lambda suites: suites,
) -> Plan:
    """Read configs, eval sets and traces, and pair cases with evaluators.

    An unreadable trace file is a problem of the plan; the other files are still evaluated.

    Args:
        apply_policy: replaces the configs' requirements with those of the base commit.

    Raises:
        InputError: a config, an eval set or an option is invalid; with all errors.
    """
    if settings.trace_format not in (None, *FORMAT_NAMES):
        known = ", ".join(FORMAT_NAMES)
        message = f"unknown trace format `{settings.trace_format}`"
        raise InputError.from_message(message, place=COMMAND_LINE, hint=f"use one of {known}")
    return plan_suites(apply_policy(load_suites(settings, services)), settings, services)


def plan_suites(
    suites: Sequence[LoadedSuite],
    settings: Settings,
    services: Services,
    *,
    runs_workspace: Workspace | None = None,
) -> Plan:
    """Read the eval sets and traces of ``suites``, and pair cases with evaluators.

    Args:
        runs_workspace: from which the recorded runs are read, at the same relative paths; None for
            the workspace of ``services``.

    Raises:
        InputError: an eval set is invalid, or there are no traces.
    """
    sources = _load_inputs(suites, settings, services, runs_workspace)
    planned: list[PlannedSuite] = []
    problems: dict[Problem, None] = {}
    cases, fingerprints = SpooledChunks(), Fingerprints(services.workspace)
    for source in sources:
        eval_cases = source.loaded.suite.eval_cases
        with limit_input(source.loaded.suite.file):
            planned.append(
                _plan_recordings(source, cases, problems, fingerprints, settings, services)
                if eval_cases is None
                else _plan_eval_file(source, eval_cases, problems, fingerprints, settings, services)
            )
        if settings.cases and not planned[-1].checks:
            planned.pop()  # other configs have the cases
            continue
        if runs_workspace is None and source.loaded.suite.has_results:
            planned[-1] = _add_results(planned[-1], source.loaded, problems, settings, services)
    unknown = settings.cases if not planned else _find_unknown_patterns(settings.cases, planned)
    # The recorded runs of the base commit need not have each case.
    if sources and (not planned or (unknown and runs_workspace is None)):
        every = plan_suites(
            suites, replace(settings, cases=()), services, runs_workspace=runs_workspace
        )
        known = [each.case.id for each in every.checks]
        raise make_no_case_error(replace(settings, cases=unknown), known)
    return Plan(suites=tuple(planned), problems=tuple(problems), loaded=tuple(suites))


class _SuiteInputs(Struct, frozen=True, kw_only=True):
    """The inputs of one suite.

    Attributes:
        relocated: the suite, moved to the workspace that holds the recorded runs.
        workspace: where the recorded runs are.
        recordings: the files of recorded runs.
        known_ids: of the eval cases of all suites, which may share the recorded runs.
        unread_eval_set: see ``find_unread_eval_set``.
    """

    loaded: LoadedSuite
    relocated: LoadedSuite
    workspace: Workspace
    eval_set: EvalSet | None
    dataset: Dataset | None
    recordings: tuple[ResolvedPath, ...]
    known_ids: AbstractSet[str] = frozenset()
    unread_eval_set: str = ""


def _load_inputs(
    suites: Sequence[LoadedSuite],
    settings: Settings,
    services: Services,
    runs_workspace: Workspace | None,
) -> tuple[_SuiteInputs, ...]:
    """Read eval sets and datasets, and find the files of recorded runs.

    Raises:
        InputError: with the errors of all suites.
    """
    sources: list[_SuiteInputs] = []
    problems: list[Problem] = []
    workspace = runs_workspace or services.workspace
    for loaded in suites:
        relocated = (
            loaded if runs_workspace is None else move_suite(loaded, runs_workspace, services)
        )
        eval_set: EvalSet | None = None
        dataset: Dataset | None = None
        recordings: tuple[ResolvedPath, ...] = ()
        try:
            eval_set = load_eval_set(loaded, services.workspace, given=settings.eval_sets)
            found = find_expectation_problems(loaded.suite, eval_set)
            problems += [each for each in found if each.severity == "error"]
        except InputError as error:
            problems += error.problems
        try:
            with limit_input(loaded.suite.file):
                recordings = find_input_files(relocated, settings, workspace)
                _check_inside(recordings, runs_workspace)
        except InputError as error:
            problems += error.problems
        try:
            carries_runs = not (settings.traces or loaded.suite.traces)
            dataset = load_suite_dataset(
                relocated if carries_runs else loaded,
                workspace if carries_runs else services.workspace,
                carries_runs=carries_runs,
            )
            problems += find_unknown_cases(loaded.suite, eval_set, dataset)
        except InputError as error:
            problems += error.problems
        sources.append(
            _SuiteInputs(
                loaded=loaded,
                relocated=relocated,
                workspace=workspace,
                eval_set=eval_set,
                dataset=dataset,
                recordings=recordings,
                unread_eval_set=""
                if settings.eval_sets or runs_workspace is not None
                else find_unread_eval_set(loaded, suites, services),
            )
        )
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return _share_eval_case_ids(sources)


def _share_eval_case_ids(sources: Sequence[_SuiteInputs]) -> tuple[_SuiteInputs, ...]:
    eval_sets = (each.eval_set for each in sources)
    known_ids = {case.id for each in eval_sets if each is not None for case in each.cases}
    return tuple(replace(each, known_ids=known_ids) for each in sources)


def _check_inside(paths: Sequence[ResolvedPath], runs_workspace: Workspace | None) -> None:
    """Reject absolute paths, which lead to other runs than those of ``runs_workspace``."""
    if runs_workspace and not all(path.path.is_relative_to(runs_workspace.root) for path in paths):
        raise InputError.from_message(
            "the recorded runs are given by an absolute path, not one in the workspace"
        )


def _plan_recordings(
    source: _SuiteInputs,
    cases: SpooledChunks,
    problems: dict[Problem, None],
    fingerprints: Fingerprints,
    settings: Settings,
    services: Services,
) -> PlannedSuite:
    """The checks of a config: each evaluator with each trace and each dataset row."""
    suite = source.loaded.suite
    runs = read_recorded_runs(
        source.recordings,
        source.relocated,
        source.eval_set,
        settings,
        replace(services, workspace=source.workspace),
    )
    matching = runs.matcher
    is_own = source.workspace is services.workspace
    # The recorded runs of the base commit may be for eval cases that were removed since.
    if is_own:
        matching.refuse_runs_of_others(source.known_ids)
    called = CalledTools()
    checks = tuple(
        Check(
            config=suite.file,
            evaluator=evaluator,
            case=stored.summary,
            load=stored.load,
            fingerprint=fingerprints.compute(evaluator, case.expectation),
        )
        for case in called.watch(_match_cases(source, runs, problems, services))
        for stored in (store_case(case, cases, services.run_contents),)
        for evaluator in suite.evaluators
    )
    if is_own and _is_whole(runs, services):
        found = find_unused_patterns(suite, _list_cases(checks), source.eval_set)
        problems.update(dict.fromkeys(found))
        problems.update(dict.fromkeys(find_unread_answers(suite, source.eval_set)))
        problems.update(dict.fromkeys(find_unknown_tools(suite, called, source.eval_set)))
        problems.update(dict.fromkeys(find_unknown_arguments(suite, called, source.eval_set)))
    selected = tuple(_select_cases(checks, settings.cases))
    checks = tuple(_drop_inapplicable(selected))
    problems.update(dict.fromkeys((*source.loaded.notices, *runs.broken, *runs.problems)))
    unmatched = find_unmatched_runs(source.eval_set, source.dataset, _list_cases(selected))
    uncovered = tuple(
        each
        for each in matching.unmatched
        if suite.evaluators and _is_selected(each.id, settings.cases) and _is_whole(runs, services)
    )
    problems.update(dict.fromkeys(find_coverage_problems(uncovered, unmatched)))
    problems.update(dict.fromkeys(find_expectation_problems(suite, source.eval_set)))
    gate = make_gate(
        suite,
        services.workspace,
        eval_set=source.eval_set,
        dataset=source.dataset,
        uncovered=tuple(each.id for each in uncovered),
        # Without traces, the rows of the dataset are the recorded runs.
        recorded_runs=len(_list_cases(checks)) if source.recordings else None,
    )
    # Another config may have the eval cases of recorded runs that several configs share.
    lost = () if source.known_ids or not is_own else tuple(matching.without_eval_set)
    uncompared = find_uncompared_problems(suite, lost, source.unread_eval_set)
    problems.update(dict.fromkeys(uncompared))
    # A file that `--eval-set` names may be for more runs than these.
    are_needed = not settings.eval_sets or unmatched
    gate = replace(
        gate,
        missing=gate.uncovered if are_needed else (),
        unmatched=(*(each.id for each in unmatched), *lost),
    )
    return PlannedSuite(gate=gate, checks=checks)


def _drop_inapplicable(checks: Sequence[Check]) -> Iterator[Check]:
    """Drop checks whose evaluator does not apply to their case.

    An evaluator that applies to no case of the run keeps its checks, which are skipped. A run that
    cannot be evaluated and has no known eval case keeps its checks, too, unless another check
    reports it.
    """
    found = [each for each in checks if _evaluator_applies(each)]
    applied, seen = {id(each.evaluator) for each in found}, {each.case.id for each in found}
    for each in checks:
        is_kept = _evaluator_applies(each) or (each.case.id not in seen and _may_apply(each))
        if is_kept or id(each.evaluator) not in applied:
            yield each


def _may_apply(check: Check) -> bool:
    case = check.case
    is_of_eval_cases = hasattr(check.evaluator, "by_case")
    return is_of_eval_cases and case.eval_case_id is None and bool(case.unusable_reason)


def _select_cases(checks: Sequence[Check], patterns: Sequence[str]) -> Iterator[Check]:
    """Select the checks of the cases that ``--case`` names, by their ids or their eval cases'."""
    for each in checks:
        ids = (each.case.id, each.case.eval_case_id or "")
        if any(_is_selected(case_id, patterns) for case_id in ids if case_id):
            yield each


def _find_unknown_patterns(
    patterns: Sequence[str], planned: Sequence[PlannedSuite]
) -> tuple[str, ...]:
    """Find the values of ``--case`` that select no check."""
    cases = _list_cases(check for suite in planned for check in suite.checks)
    ids = {each for case in cases for each in (case.id, case.eval_case_id) if each}
    return tuple(one for one in patterns if not any(matches_any((one,), each) for each in ids))


def _list_cases(checks: Iterable[Check]) -> Collection[CaseSummary]:
    return {check.case.id: check.case for check in checks}.values()


def _is_selected(case_id: str, patterns: Sequence[str]) -> bool:
    return not patterns or matches_any(patterns, case_id)


def _evaluator_applies(check: Check) -> bool:
    return covers_case(check.evaluator, check.case.id, check.case.eval_case_id)


def _plan_eval_file(
    source: _SuiteInputs,
    eval_cases: Sequence[EvalFileCase],
    problems: dict[Problem, None],
    fingerprints: Fingerprints,
    settings: Settings,
    services: Services,
) -> PlannedSuite:
    """The checks of an eval file, in which each case has evaluators of its own."""
    from agentci.runner.load_outputs import pair_outputs  # noqa: PLC0415 (most runs do not need it)

    paired = pair_outputs(source.relocated, source.recordings, settings, source.workspace)
    problems.update(dict.fromkeys((*source.loaded.notices, *paired.problems)))
    suite = source.loaded.suite
    checks = tuple(
        Check(
            config=suite.file,
            evaluator=evaluator,
            case=stored.summary,
            load=stored.load,
            case_trials=case_trials if suite.agent or suite.trials else None,
            fingerprint=fingerprints.compute(evaluator, stored.case.expectation),
        )
        for case_trials, eval_file_case in zip(paired.case_trials, eval_cases, strict=True)
        for stored in (keep_in_memory(case_trials.make_first_case(), services.run_contents),)
        for evaluator in eval_file_case.evaluators
    )
    return PlannedSuite(gate=make_gate(suite, services.workspace), checks=checks)


def _add_results(
    planned: PlannedSuite,
    loaded: LoadedSuite,
    problems: dict[Problem, None],
    settings: Settings,
    services: Services,
) -> PlannedSuite:
    """Add the checks of the result files of other tools.

    Raises:
        InputError: a path or glob matches no file.
    """
    from agentci.runner.recorded_results import (  # noqa: PLC0415
        find_result_files,
        plan_recorded_checks,
        read_result_files,
    )

    suite = loaded.suite
    files = find_result_files(loaded, services.workspace)
    results, broken = read_result_files(files, suite, services.workspace)
    found = plan_recorded_checks(
        results, config=suite.file, reserved=suite.names, only=settings.only
    )
    problems.update(dict.fromkeys((*broken, *found.problems)))
    names = dict.fromkeys((*planned.gate.evaluators, *found.metrics))
    gate = replace(planned.gate, evaluators=tuple(names))
    return PlannedSuite(gate=gate, checks=(*planned.checks, *found.checks))


def _match_cases(
    source: _SuiteInputs,
    runs: RecordedRuns,
    problems: dict[Problem, None],
    services: Services,
) -> Iterator[Case]:
    """The cases of a config: its traces, and eval cases and dataset rows without a trace."""
    matching = runs.matcher
    if source.dataset is None:
        yield from matching.make_cases(runs.list_traces())
        # The runs of the base commit need not have cases that were added since.
        if source.workspace is services.workspace and _is_whole(runs, services):
            yield from matching.make_missing_cases()
        return
    from agentci.evaluators.agentevals.match_eval_case import RowMatcher  # noqa: PLC0415 (likewise)

    rows = RowMatcher(source.dataset, carries_runs=not source.recordings)
    yield from rows.cases(runs.list_traces(), matching)
    problems.update(dict.fromkeys(rows.problems))


def _is_whole(runs: RecordedRuns, services: Services) -> bool:
    """Return whether all recorded runs were read."""
    return not runs.broken and not services.interruption.is_requested()


def select_shard(plan: Plan, shard: Shard | None) -> Plan:
    """The plan with only the checks of ``shard``; without one, the whole plan."""
    if shard is None:
        return plan
    checks = plan.checks
    return replace(
        plan,
        suites=tuple(
            replace(
                suite, checks=tuple(each for each in suite.checks if shard.contains(each.shard_key))
            )
            for suite in plan.suites
        ),
        shard_info=ShardInfo(
            shard=shard,
            plan_digest=digest_plan(plan),
            checks=tuple(check.id for check in checks),
            shard_keys={
                check.id: check.shard_key for check in checks if check.shard_key != check.id
            },
        ),
    )


def digest_plan(plan: Plan) -> str:
    """A digest of a plan: the version of agentci, the gates, and every check.

    More than the id of a check is part of it: another threshold, program or trace of the same eval
    case changes the digest.
    """
    digest = hashlib.sha256()
    for line in _plan_lines(plan):
        digest.update(line.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _plan_lines(plan: Plan) -> Iterator[str]:
    yield __version__
    yield from sorted(json_text.dumps(to_builtins(gate)) for gate in plan.gates)
    yield from sorted(json_text.dumps(_list_check_properties(check)) for check in plan.checks)


def _list_check_properties(check: Check) -> list[str | int | float | bool | None]:
    identity, case = check.evaluator.identity, check.case
    return [
        check.id,
        identity.type,
        identity.criterion,
        identity.threshold,
        identity.required,
        identity.weight,
        identity.repetition.times,
        identity.repetition.aggregation,
        str(identity.place),
        case.trace_id,
        case.recording.file,
        case.performance,
        case.run,
        case.eval_case_id,
        check.fingerprint,
        *(text for each in case.dialogue for text in (each.question, each.answer)),
        *_list_trial_properties(check.case_trials),
    ]


def _list_trial_properties(case_trials: "CaseTrials | None") -> Iterator[str]:
    if case_trials is not None:
        agent, trials = case_trials.agent, case_trials.trials
        yield repr(agent and agent.command)
        yield repr(trials and (trials.count, trials.strategy, trials.cost_limit_usd))
        yield repr(sorted(case_trials.recorded))
