"""Turns settings into a plan: every check that will be judged, before any of them is."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from agentci._util.spool import Spool
from agentci.config.settings import Settings
from agentci.config.suite import JudgedSample
from agentci.errors import InputError
from agentci.evaluators.agentevals.match_eval_case import Matching, multi_turn
from agentci.model.case import Case, GoldenSet
from agentci.model.dataset import Dataset
from agentci.model.place import COMMAND_LINE
from agentci.model.policy import Gate
from agentci.model.problem import Problem
from agentci.model.result import Provenance
from agentci.model.shard import Portion
from agentci.model.trace import Trace
from agentci.recordings.registry import AUTO, FORMATS
from agentci.recordings.telemetry.conversion import trace_of
from agentci.recordings.telemetry.groups import groups_of
from agentci.runner.check import Check
from agentci.runner.fingerprints import Fingerprints
from agentci.runner.load_configs import LoadedSuite, load_suites
from agentci.runner.load_datasets import read_rows
from agentci.runner.load_eval_sets import gaps, read_goldens
from agentci.runner.load_recordings import find_files, read_recordings
from agentci.runner.services import World
from agentci.runner.stored_cases import hold, keep


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
    portion: Portion | None = None

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates of all configs, in their order."""
        return tuple(suite.gate for suite in self.suites)

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks: config order, then case, then evaluator."""
        return tuple(check for suite in self.suites for check in suite.checks)


def prepare(settings: Settings, world: World) -> Plan:
    """Read configs, eval sets and recordings, and pair them.

    A broken recording is a problem of the plan and leaves the others alone.

    Raises:
        InputError: a config, an eval set or an option cannot be used; with every problem.
    """
    if settings.trace_format not in (None, AUTO, *FORMATS):
        known = ", ".join((AUTO, *FORMATS))
        message = f"there is no trace format {settings.trace_format!r}"
        raise InputError.of(message, place=COMMAND_LINE, hint=f"use {known}")
    return plan_of(load_suites(settings, world), settings, world)


def plan_of(suites: Sequence[LoadedSuite], settings: Settings, world: World) -> Plan:
    """Read the eval sets and recordings of ``suites``, and pair them; as ``prepare``.

    Raises:
        InputError: an eval set cannot be used, or there are no recordings.
    """
    return _pair(_find_sources(suites, settings, world), settings, world)


class _Sources(Struct, frozen=True, kw_only=True):
    """What one suite judges: golden cases, a dataset, and the files of recordings."""

    loaded: LoadedSuite
    goldens: GoldenSet | None
    dataset: Dataset | None
    recordings: tuple[Path, ...]


def _find_sources(
    suites: Sequence[LoadedSuite], settings: Settings, world: World
) -> tuple[_Sources, ...]:
    """Find and read what is cheap to read; whatever is wrong with it is raised together."""
    sources: list[_Sources] = []
    problems: list[Problem] = []
    for loaded in suites:
        goldens: GoldenSet | None = None
        dataset: Dataset | None = None
        recordings: tuple[Path, ...] = ()
        try:
            goldens = read_goldens(loaded, world.workspace, given=settings.eval_set)
        except InputError as error:
            problems += error.problems
        try:
            recordings = find_files(loaded, settings, world.workspace)
        except InputError as error:
            problems += error.problems
        try:
            carries_runs = not (settings.traces or loaded.suite.traces)
            dataset = read_rows(loaded, world.workspace, carries_runs=carries_runs)
        except InputError as error:
            problems += error.problems
        sources.append(
            _Sources(loaded=loaded, goldens=goldens, dataset=dataset, recordings=recordings)
        )
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return tuple(sources)


def _pair(sources: Sequence[_Sources], settings: Settings, world: World) -> Plan:
    planned: list[PlannedSuite] = []
    problems: dict[Problem, None] = {}
    cases, prints = Spool(), Fingerprints(world.workspace)
    for source in sources:
        samples = source.loaded.suite.samples
        planned.append(
            _planned_recordings(source, cases, problems, prints, settings, world)
            if samples is None
            else _planned_samples(source, samples, problems, prints, settings, world)
        )
    return Plan(suites=tuple(planned), problems=tuple(problems))


def _planned_recordings(
    source: _Sources,
    cases: Spool,
    problems: dict[Problem, None],
    prints: Fingerprints,
    settings: Settings,
    world: World,
) -> PlannedSuite:
    """The checks of a config, whose evaluators judge every recording, and every row."""
    suite, recordings = source.loaded.suite, Spool()
    recorded, broken = read_recordings(
        source.recordings, source.loaded, settings, world, spool=recordings
    )
    groups = groups_of(
        recorded,
        recordings,
        group_by=settings.group_by or suite.group_by,
        multi_turn_goldens=multi_turn(source.goldens),
    )
    matching = Matching(source.goldens, are_alone=len(groups) == 1)
    traces = (trace_of(group, recordings) for group in groups)
    checks = tuple(
        Check(
            config=suite.file,
            evaluator=evaluator,
            case=kept.synopsis,
            load=kept.load,
            fingerprint=prints.of(evaluator, expected),
        )
        for case in _cases(source, traces, matching, problems)
        for kept, expected in ((keep(case, cases), _expected(case)),)
        for evaluator in suite.evaluators
    )
    problems.update(dict.fromkeys((*source.loaded.notices, *broken)))
    problems.update(dict.fromkeys(gaps(suite, source.goldens, matching.uncovered)))
    gate = Gate(
        config=suite.file,
        policy=suite.gate,
        evaluators=tuple(each.identity.name for each in suite.evaluators),
        uncovered=len(matching.uncovered),
    )
    return PlannedSuite(gate=gate, checks=checks)


def _planned_samples(
    source: _Sources,
    samples: Sequence[JudgedSample],
    problems: dict[Problem, None],
    prints: Fingerprints,
    settings: Settings,
    world: World,
) -> PlannedSuite:
    """The checks of an eval file, each of whose cases has evaluators of its own."""
    from agentci.runner.load_outputs import pair_outputs  # noqa: PLC0415 (of no use to most runs)

    paired = pair_outputs(source.loaded, source.recordings, settings, world.workspace)
    problems.update(dict.fromkeys((*source.loaded.notices, *paired.problems)))
    suite = source.loaded.suite
    checks = tuple(
        Check(
            config=suite.file,
            evaluator=evaluator,
            case=held.synopsis,
            load=held.load,
            attempts=attempts if suite.agent or suite.trials else None,
            fingerprint=prints.of(evaluator, held.case.sample),
        )
        for attempts, judged in zip(paired.attempts, samples, strict=True)
        for held in (hold(attempts.first()),)
        for evaluator in judged.evaluators
    )
    names = tuple(dict.fromkeys(each.identity.name for each in suite.evaluators))
    gate = Gate(config=suite.file, policy=suite.gate, evaluators=names)
    return PlannedSuite(gate=gate, checks=checks)


def _cases(
    source: _Sources, traces: Iterable[Trace], matching: Matching, problems: dict[Problem, None]
) -> Iterator[Case]:
    """The recordings of a config, and the rows that none of them is of."""
    if source.dataset is None:
        yield from map(matching.case_of, traces)
        return
    from agentci.evaluators.pytest_agent_evals.match_row import Rows  # noqa: PLC0415 (likewise)

    rows = Rows(source.dataset, carries_runs=not source.recordings)
    yield from rows.cases(traces, matching)
    problems.update(dict.fromkeys(rows.problems))


def _expected(case: Case) -> object:
    """What an evaluator compares with, of a case."""
    return case.golden if case.row is None else (case.golden, case.row.asked)
