"""Plan a run: pair the cases of every config with its evaluators, and select a shard of them."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, to_builtins

from agentci._util.files import SpooledChunks
from agentci._util.text import json_text
from agentci.config.settings import Settings
from agentci.config.suite import EvalFileCase
from agentci.errors import InputError
from agentci.evaluators.agentevals.match_eval_case import EvalCaseMatcher, has_multi_turn_case
from agentci.model.case import Case, CaseSummary, Dataset, DatasetRow, EvalCase, EvalSet
from agentci.model.gate import Gate
from agentci.model.problem import COMMAND_LINE, Problem
from agentci.model.result import Provenance
from agentci.model.shard import Shard, ShardInfo
from agentci.model.trace import Trace
from agentci.model.values import replace
from agentci.recordings.registry import AUTO, FORMATS
from agentci.recordings.telemetry.conversion import convert_to_trace, group_traces
from agentci.recordings.telemetry.stored_trace import pack_trace, unpack_trace
from agentci.reports.case_summary import make_case_summary
from agentci.runner.check import Check
from agentci.runner.fingerprints import Fingerprints
from agentci.runner.load_configs import LoadedSuite, load_suites
from agentci.runner.load_inputs import (
    find_coverage_problems,
    find_input_files,
    load_eval_set,
    load_suite_dataset,
    read_recordings,
)
from agentci.runner.services import Services
from agentci.version import __version__

if TYPE_CHECKING:
    from agentci.runner.load_outputs import CaseTrials


# Evaluators judge a case one after the other.
MAX_RECENT_CASES: Final = 8


class StoredCase(Struct, frozen=True, kw_only=True, eq=False):
    """A case that was set aside; what it is compared with stays in memory, where many share it."""

    summary: CaseSummary
    golden: EvalCase | None
    row: DatasetRow | None
    spool: SpooledChunks
    number: int

    def load(self) -> Case:
        """All that was recorded of it: the same case for as long as it was asked for lately."""
        return _load_stored_case(self)


def store_case(case: Case, spool: SpooledChunks) -> StoredCase:
    """Set ``case`` aside."""
    synopsis, number = make_case_summary(case), spool.append(pack_trace(case.trace))
    return StoredCase(
        summary=synopsis, golden=case.expected, row=case.dataset_row, spool=spool, number=number
    )


class InMemoryCase(Struct, frozen=True, kw_only=True):
    """A case that stays in memory: one of an eval file is more than its trace."""

    summary: CaseSummary
    case: Case

    def load(self) -> Case:
        """The case."""
        return self.case


def keep_in_memory(case: Case) -> InMemoryCase:
    """Leave ``case`` in memory."""
    return InMemoryCase(summary=make_case_summary(case), case=case)


@lru_cache(maxsize=MAX_RECENT_CASES)
def _load_stored_case(kept: StoredCase) -> Case:
    synopsis = kept.summary
    packed = kept.spool.read(kept.number)
    return Case(
        id=synopsis.id,
        trace=unpack_trace(packed, place=synopsis.recording, warnings=synopsis.warnings),
        expected=kept.golden,
        dataset_row=kept.row,
        unmatched_reason=synopsis.unmatched_reason,
    )


class PlannedSuite(Struct, frozen=True, kw_only=True):
    """The checks of one config, and the gate over them."""

    gate: Gate
    checks: tuple[Check, ...]


class Plan(Struct, frozen=True, kw_only=True):
    """Everything that a run will do.

    Attributes:
        problems: what the reports tell beside the results: broken recordings, warnings, notices.
        provenance: of the evaluators that are kept elsewhere, once they are there.
        portion: what of a whole it is; None where it is the whole.
    """

    suites: tuple[PlannedSuite, ...]
    problems: tuple[Problem, ...]
    provenance: tuple[Provenance, ...] = ()
    portion: ShardInfo | None = None

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates of all configs, in their order."""
        return tuple(suite.gate for suite in self.suites)

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks: config order, then case, then evaluator."""
        return tuple(check for suite in self.suites for check in suite.checks)


def make_plan(settings: Settings, services: Services) -> Plan:
    """Read configs, eval sets and recordings, and pair them.

    A broken recording is a problem of the plan and leaves the others alone.

    Raises:
        InputError: a config, an eval set or an option cannot be used; with every problem.
    """
    if settings.trace_format not in (None, AUTO, *FORMATS):
        known = ", ".join((AUTO, *FORMATS))
        message = f"there is no trace format {settings.trace_format!r}"
        raise InputError.from_message(message, place=COMMAND_LINE, hint=f"use {known}")
    return plan_suites(load_suites(settings, services), settings, services)


def plan_suites(suites: Sequence[LoadedSuite], settings: Settings, services: Services) -> Plan:
    """Read the eval sets and recordings of ``suites``, and pair them; as ``make_plan``.

    Raises:
        InputError: an eval set cannot be used, or there are no recordings.
    """
    return _plan_inputs(_load_inputs(suites, settings, services), settings, services)


class _SuiteInputs(Struct, frozen=True, kw_only=True):
    """What one suite judges: golden cases, a dataset, and the files of recordings."""

    loaded: LoadedSuite
    goldens: EvalSet | None
    dataset: Dataset | None
    recordings: tuple[Path, ...]


def _load_inputs(
    suites: Sequence[LoadedSuite], settings: Settings, services: Services
) -> tuple[_SuiteInputs, ...]:
    """Find and read what is cheap to read; whatever is wrong with it is raised together."""
    sources: list[_SuiteInputs] = []
    problems: list[Problem] = []
    for loaded in suites:
        goldens: EvalSet | None = None
        dataset: Dataset | None = None
        recordings: tuple[Path, ...] = ()
        try:
            goldens = load_eval_set(loaded, services.workspace, given=settings.eval_set)
        except InputError as error:
            problems += error.problems
        try:
            recordings = find_input_files(loaded, settings, services.workspace)
        except InputError as error:
            problems += error.problems
        try:
            carries_runs = not (settings.traces or loaded.suite.traces)
            dataset = load_suite_dataset(loaded, services.workspace, carries_runs=carries_runs)
        except InputError as error:
            problems += error.problems
        sources.append(
            _SuiteInputs(loaded=loaded, goldens=goldens, dataset=dataset, recordings=recordings)
        )
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return tuple(sources)


def _plan_inputs(sources: Sequence[_SuiteInputs], settings: Settings, services: Services) -> Plan:
    planned: list[PlannedSuite] = []
    problems: dict[Problem, None] = {}
    cases, prints = SpooledChunks(), Fingerprints(services.workspace)
    for source in sources:
        samples = source.loaded.suite.eval_cases
        planned.append(
            _plan_recordings(source, cases, problems, prints, settings, services)
            if samples is None
            else _plan_eval_file(source, samples, problems, prints, settings, services)
        )
    return Plan(suites=tuple(planned), problems=tuple(problems))


def _plan_recordings(
    source: _SuiteInputs,
    cases: SpooledChunks,
    problems: dict[Problem, None],
    prints: Fingerprints,
    settings: Settings,
    services: Services,
) -> PlannedSuite:
    """The checks of a config, whose evaluators judge every recording, and every row."""
    suite, recordings = source.loaded.suite, SpooledChunks()
    recorded, broken = read_recordings(
        source.recordings, source.loaded, settings, services, spool=recordings
    )
    groups = group_traces(
        recorded,
        recordings,
        group_by=settings.group_by or suite.group_by,
        multi_turn_eval_cases=has_multi_turn_case(source.goldens),
    )
    matching = EvalCaseMatcher(source.goldens, are_alone=len(groups) == 1)
    traces = (convert_to_trace(group, recordings) for group in groups)
    checks = tuple(
        Check(
            config=suite.file,
            evaluator=evaluator,
            case=kept.summary,
            load=kept.load,
            fingerprint=prints.of(evaluator, expected),
        )
        for case in _match_cases(source, traces, matching, problems)
        for kept, expected in ((store_case(case, cases), _find_expected(case)),)
        for evaluator in suite.evaluators
    )
    problems.update(dict.fromkeys((*source.loaded.notices, *broken)))
    problems.update(
        dict.fromkeys(find_coverage_problems(suite, source.goldens, matching.unmatched))
    )
    gate = Gate(
        config=suite.file,
        policy=suite.gate,
        evaluators=tuple(each.identity.name for each in suite.evaluators),
        uncovered=len(matching.unmatched),
    )
    return PlannedSuite(gate=gate, checks=checks)


def _plan_eval_file(
    source: _SuiteInputs,
    samples: Sequence[EvalFileCase],
    problems: dict[Problem, None],
    prints: Fingerprints,
    settings: Settings,
    services: Services,
) -> PlannedSuite:
    """The checks of an eval file, each of whose cases has evaluators of its own."""
    from agentci.runner.load_outputs import pair_outputs  # noqa: PLC0415 (of no use to most runs)

    paired = pair_outputs(source.loaded, source.recordings, settings, services.workspace)
    problems.update(dict.fromkeys((*source.loaded.notices, *paired.problems)))
    suite = source.loaded.suite
    checks = tuple(
        Check(
            config=suite.file,
            evaluator=evaluator,
            case=held.summary,
            load=held.load,
            case_trials=attempts if suite.agent or suite.trials else None,
            fingerprint=prints.of(evaluator, held.case.agentv_case),
        )
        for attempts, judged in zip(paired.case_trials, samples, strict=True)
        for held in (keep_in_memory(attempts.make_first_case()),)
        for evaluator in judged.evaluators
    )
    names = tuple(dict.fromkeys(each.identity.name for each in suite.evaluators))
    gate = Gate(config=suite.file, policy=suite.gate, evaluators=names)
    return PlannedSuite(gate=gate, checks=checks)


def _match_cases(
    source: _SuiteInputs,
    traces: Iterable[Trace],
    matching: EvalCaseMatcher,
    problems: dict[Problem, None],
) -> Iterator[Case]:
    """The recordings of a config, and the rows that none of them is of."""
    if source.dataset is None:
        yield from map(matching.make_case, traces)
        return
    from agentci.evaluators.pytest_agent_evals.match_row import RowMatcher  # noqa: PLC0415 (likewise)

    rows = RowMatcher(source.dataset, carries_runs=not source.recordings)
    yield from rows.cases(traces, matching)
    problems.update(dict.fromkeys(rows.problems))


def _find_expected(case: Case) -> object:
    """What an evaluator compares with, of a case."""
    return (
        case.expected
        if case.dataset_row is None
        else (case.expected, case.dataset_row.input_columns)
    )


def select_shard(plan: Plan, shard: Shard | None) -> Plan:
    """The plan with the checks of ``shard`` alone; the whole plan where there is none."""
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
        portion=ShardInfo(
            shard=shard,
            plan_digest=digest_plan(plan),
            checks=tuple(check.id for check in checks),
            shard_keys={
                check.id: check.shard_key for check in checks if check.shard_key != check.id
            },
        ),
    )


def digest_plan(plan: Plan) -> str:
    """What tells plans apart: the version of agentci, the gates, and every check.

    A check is more than its id here: another threshold, another program, another recording of the
    same golden case make another plan.
    """
    digest = hashlib.sha256()
    for line in _plan_lines(plan):
        digest.update(line.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _plan_lines(plan: Plan) -> Iterator[str]:
    yield __version__
    yield from sorted(json_text.dumps(to_builtins(gate)) for gate in plan.gates)
    yield from sorted(json_text.dumps(_check_facts(check)) for check in plan.checks)


def _check_facts(check: Check) -> list[str | int | float | bool | None]:
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
        case.eval_case_id,
        check.fingerprint,
        *(said for each in case.dialogue for said in (each.question, each.answer)),
        *_trial_facts(check.case_trials),
    ]


def _trial_facts(attempts: "CaseTrials | None") -> Iterator[str]:
    if attempts is not None:
        agent, trials = attempts.agent, attempts.trials
        yield repr(agent and agent.command)
        yield repr(trials and (trials.count, trials.strategy, trials.cost_limit_usd))
        yield repr(sorted(attempts.recorded))
