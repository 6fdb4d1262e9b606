"""Turns settings into a plan: every check that will be judged, before any of them is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentci.cases import hold, keep
from agentci.config.suite import JudgedSample
from agentci.dialects.agentevals.goldens import Matching, multi_turn
from agentci.discovery import matches
from agentci.engines.world import World
from agentci.errors import InputError, RecordingError
from agentci.eval_sets import gaps, read_goldens
from agentci.fingerprints import Fingerprints
from agentci.formats.content import MAX_RECORDING_BYTES
from agentci.formats.registry import AUTO, FORMATS, read_recording
from agentci.model.case import GoldenSet
from agentci.model.place import COMMAND_LINE
from agentci.model.policy import Gate
from agentci.model.problem import Problem
from agentci.model.result import Provenance
from agentci.model.shard import Portion
from agentci.pipeline import Check
from agentci.settings import Settings
from agentci.spool import Spool
from agentci.suites import LoadedSuite, load_suites
from agentci.telemetry.conversion import trace_of
from agentci.telemetry.groups import groups_of
from agentci.telemetry.recorded import Recorded
from agentci.workspace import Workspace, read_chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSuite:
    """The checks of one config, and the gate over them."""

    gate: Gate
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """What one suite judges: golden cases, and the files of recordings."""

    loaded: LoadedSuite
    goldens: GoldenSet | None
    recordings: tuple[Path, ...]


def _find_sources(
    suites: Sequence[LoadedSuite], settings: Settings, world: World
) -> tuple[_Sources, ...]:
    """Find and read what is cheap to read; whatever is wrong with it is raised together."""
    sources: list[_Sources] = []
    problems: list[Problem] = []
    for loaded in suites:
        goldens: GoldenSet | None = None
        recordings: tuple[Path, ...] = ()
        try:
            goldens = read_goldens(loaded, world.workspace, given=settings.eval_set)
        except InputError as error:
            problems += error.problems
        try:
            recordings = _find_files(loaded, settings, world.workspace)
        except InputError as error:
            problems += error.problems
        sources.append(_Sources(loaded=loaded, goldens=goldens, recordings=recordings))
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return tuple(sources)


def _find_files(loaded: LoadedSuite, settings: Settings, workspace: Workspace) -> tuple[Path, ...]:
    if loaded.suite.samples is None:
        return _find_recordings(loaded, settings, workspace)
    from agentci.outputs import find_outputs  # noqa: PLC0415 (of no use to most runs)

    return find_outputs(loaded, settings, workspace)


def _find_recordings(
    loaded: LoadedSuite, settings: Settings, workspace: Workspace
) -> tuple[Path, ...]:
    """The recordings of the command line (any files), else the config's."""
    suite, place = loaded.suite, loaded.suite.place_of("traces")
    if settings.traces:
        place = COMMAND_LINE
        found = {pattern: matches(workspace.cwd, pattern) for pattern in settings.traces}
    else:
        found = {pattern: loaded.locator.matches(pattern, place) for pattern in suite.traces}
    if not found:
        raise InputError.of(
            "there are no recordings to judge",
            place=suite.place,
            hint="add `traces:`, or give --traces",
        )
    for pattern, paths in found.items():
        if not paths:
            message = f"no recording matches {pattern}"
            raise InputError.of(message, place=place, hint="check the path or the glob")
    return tuple(dict.fromkeys(path for paths in found.values() for path in paths))


def _pair(sources: Sequence[_Sources], settings: Settings, world: World) -> Plan:
    planned: list[PlannedSuite] = []
    problems: dict[Problem, None] = {}
    cases, prints = Spool(), Fingerprints(world.workspace)
    for source in sources:
        suite = source.loaded.suite
        if suite.samples is not None:
            planned.append(
                _planned_samples(source, suite.samples, problems, prints, settings, world)
            )
            continue
        recordings = Spool()
        recorded, broken = _read(source, settings, world, recordings)
        groups = groups_of(
            recorded,
            recordings,
            group_by=settings.group_by or suite.group_by,
            multi_turn_goldens=multi_turn(source.goldens),
        )
        matching = Matching(source.goldens, are_alone=len(groups) == 1)
        checks = tuple(
            Check(
                config=suite.file,
                evaluator=evaluator,
                case=kept.synopsis,
                load=kept.load,
                fingerprint=prints.of(evaluator, kept.golden),
            )
            for group in groups
            for kept in (keep(matching.case_of(trace_of(group, recordings)), cases),)
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
        planned.append(PlannedSuite(gate=gate, checks=checks))
    return Plan(suites=tuple(planned), problems=tuple(problems))


def _planned_samples(
    source: _Sources,
    samples: Sequence[JudgedSample],
    problems: dict[Problem, None],
    prints: Fingerprints,
    settings: Settings,
    world: World,
) -> PlannedSuite:
    """The checks of an eval file, each of whose cases has evaluators of its own."""
    from agentci.outputs import pair_outputs  # noqa: PLC0415 (likewise)

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


def _read(
    source: _Sources, settings: Settings, world: World, spool: Spool
) -> tuple[list[Recorded], list[Problem]]:
    """All traces of a suite's recordings, and what was wrong with the recordings that broke."""
    recorded: list[Recorded] = []
    broken: list[Problem] = []
    trace_format = settings.trace_format or source.loaded.suite.trace_format or AUTO
    for path in source.recordings:
        if world.interruption.asked():
            break
        name = world.workspace.name_of(path)
        try:
            chunks = read_chunks(path, name=name, limit_bytes=MAX_RECORDING_BYTES)
            recorded += read_recording(chunks, file=name, spool=spool, trace_format=trace_format)
        except RecordingError as error:
            broken.append(error.problem)
        except InputError as error:
            broken += error.problems
    return recorded, broken
