"""Finds and reads the recorded outputs of an eval file, and pairs them with its cases."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from agentci.config.suite import JudgedSample, Suite
from agentci.dialects.agentv.derived import candidate_answer_of, question_of
from agentci.discovery import matches
from agentci.errors import InputError, RecordingError
from agentci.formats.agentv.reading import first_value, read_rows
from agentci.formats.agentv.run import RecordedRun
from agentci.formats.agentv.traces import run_of, turn_of
from agentci.formats.content import MAX_RECORDING_BYTES, content_of
from agentci.formats.registry import AUTO, FORMATS, read_recording
from agentci.model.case import Case
from agentci.model.place import COMMAND_LINE
from agentci.model.problem import Problem
from agentci.model.sample import Sample
from agentci.model.trace import Trace
from agentci.settings import Settings
from agentci.spool import Spool
from agentci.suites import LoadedSuite
from agentci.telemetry.conversion import trace_of
from agentci.telemetry.groups import groups_of
from agentci.telemetry.recorded import Recorded
from agentci.text.names import quoted
from agentci.workspace import Workspace, is_file, read_chunks

# What follows the name of an eval file, or the id of a case, in the names of files beside it.
BESIDE: Final = (".outputs.jsonl", ".outputs.json")
OF_A_CASE: Final = (".output.json", ".output.txt", ".output.md", ".json", ".txt")
EXTENSIONS: Final = (".eval.yaml", ".eval.yml", ".yaml", ".yml", ".jsonl")

NO_RUN: Final = "no recorded output is of this case"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The cases of an eval file with their runs, and what is worth knowing about these."""

    cases: tuple[Case, ...]
    problems: tuple[Problem, ...]


def find_outputs(loaded: LoadedSuite, settings: Settings, workspace: Workspace) -> tuple[Path, ...]:
    """The files of recorded outputs: the command line's, else the file's, else those beside it.

    Raises:
        InputError: there are none, or one that is named is missing.
    """
    suite = loaded.suite
    if settings.traces:
        place = COMMAND_LINE
        found = {each: matches(workspace.cwd, each) for each in settings.traces}
    elif suite.traces:
        place = suite.place_of("outputs")
        found = {each: loaded.locator.matches(each, place) for each in suite.traces}
    else:
        return _beside(suite, workspace)
    for pattern, paths in found.items():
        if not paths:
            message = f"no recorded output matches {pattern}"
            raise InputError.of(message, place=place, hint="check the path or the glob")
    return tuple(dict.fromkeys(path for paths in found.values() for path in paths))


def _beside(suite: Suite, workspace: Workspace) -> tuple[Path, ...]:
    file = workspace.root / suite.file
    stem = next((file.name.removesuffix(e) for e in EXTENSIONS if file.name.endswith(e)), file.stem)
    ids = [each.sample.id for each in suite.samples or ()]
    names = [
        *(f"{stem}{ending}" for ending in BESIDE),
        *(f"{each}{OF_A_CASE[0]}" for each in ids if "/" not in each),
    ]
    found = tuple(file.parent / name for name in names if is_file(file.parent / name))
    if not found:
        raise InputError.of(
            "there are no recorded outputs to judge",
            place=suite.place,
            hint=f"add `outputs:`, give --traces, or put {stem}{BESIDE[0]} beside the file",
        )
    return found


def pair_outputs(
    loaded: LoadedSuite, paths: Sequence[Path], settings: Settings, workspace: Workspace
) -> Paired:
    """Read the outputs of a suite and give each case its run.

    A case without one has no turns: its checks are errored.
    """
    suite = loaded.suite
    samples = suite.samples or ()
    reader = _Reader(suite=suite, settings=settings, workspace=workspace)
    by_case, problems = _sorted(reader.runs(paths), samples)
    cases = tuple(_case(each.sample, by_case.get(each.sample.id)) for each in samples)
    return Paired(cases=cases, problems=(*reader.problems, *problems))


def _sorted(
    runs: Sequence[RecordedRun], samples: Sequence[JudgedSample]
) -> tuple[Mapping[str, RecordedRun], list[Problem]]:
    """The run of each case; more than one of a case cannot be told apart."""
    questions = {question_of(each.sample): each.sample.id for each in reversed(samples)}
    ids = {each.sample.id for each in samples}
    by_case: dict[str, RecordedRun] = {}
    problems: list[Problem] = []
    for run in runs:
        case_id = run.case_id if run.case_id in ids else None
        if case_id is None and run.question is not None:
            case_id = questions.get(run.question.strip())
        if case_id is None:
            problems.append(_stray(run))
        elif case_id in by_case:
            first = by_case[case_id].place
            problems.append(
                Problem(
                    message=f"the case {quoted(case_id)} has two recorded outputs",
                    place=run.place,
                    hint=f"the first is {first}; keep one of them",
                )
            )
        else:
            by_case[case_id] = run
    return by_case, problems


def _stray(run: RecordedRun) -> Problem:
    what = "a recorded output" if run.case_id is None else f"the output {quoted(run.case_id)}"
    return Problem(
        message=f"{what} belongs to no case",
        place=run.place,
        hint="it names the id of its case, or a trace begins with the case's question",
        severity="warning",
    )


def _case(sample: Sample, run: RecordedRun | None) -> Case:
    if run is None:
        trace = Trace(id=sample.id, key=sample.id, turns=(), place=sample.place)
        return Case(id=sample.id, trace=trace, sample=sample, no_run_because=NO_RUN)
    turn = turn_of(
        run.transcript,
        question=question_of(sample),
        answer=candidate_answer_of(run.transcript),
    )
    trace = Trace(
        id=sample.id, key=sample.id, turns=(turn,), place=run.place, warnings=run.warnings
    )
    return Case(id=sample.id, trace=trace, sample=sample, transcript=run.transcript)


class _Reader:
    """Reads files of outputs; what is wrong with one leaves the others alone."""

    def __init__(self, *, suite: Suite, settings: Settings, workspace: Workspace) -> None:
        self._suite = suite
        self._settings = settings
        self._workspace = workspace
        self._ids = {each.sample.id for each in suite.samples or ()}
        self.problems: list[Problem] = []

    def runs(self, paths: Sequence[Path]) -> list[RecordedRun]:
        """All runs, those of traces last."""
        runs: list[RecordedRun] = []
        recorded: list[Recorded] = []
        spool = Spool()
        for path in paths:
            try:
                runs += self._read(path, recorded, spool)
            except RecordingError as error:
                self.problems.append(error.problem)
            except InputError as error:
                self.problems += error.problems
        group_by = self._settings.group_by or self._suite.group_by
        groups = groups_of(recorded, spool, group_by=group_by, multi_turn_goldens=False)
        return [*runs, *(run_of(trace_of(group, spool)) for group in groups)]

    def _read(self, path: Path, recorded: list[Recorded], spool: Spool) -> Iterator[RecordedRun]:
        file = self._workspace.name_of(path)
        chunks = partial(read_chunks, path, name=file, limit_bytes=MAX_RECORDING_BYTES)
        trace_format = self._settings.trace_format or self._suite.trace_format or AUTO
        first = first_value(content_of(chunks(), file=file), file=file)
        if trace_format != AUTO or any(each.recognises(first) for each in FORMATS.values()):
            recorded += read_recording(chunks(), file=file, spool=spool, trace_format=trace_format)
            return
        content = b"".join(content_of(chunks(), file=file))
        named = next(
            (
                case_id
                for ending in OF_A_CASE
                if path.name.endswith(ending)
                and (case_id := path.name.removesuffix(ending)) in self._ids
            ),
            None,
        )
        for run in read_rows(content, file=file, of_one_case=named is not None):
            yield run if run.case_id is not None or named is None else replace(run, case_id=named)
