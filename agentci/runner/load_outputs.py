"""Finds and reads the recorded outputs of an eval file, for its cases."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.spool import Spool
from agentci._util.text.output_names import BESIDE, stem_of
from agentci._util.workspace import Workspace, is_file, read_chunks
from agentci.config.discovery import matches
from agentci.config.settings import Settings
from agentci.config.suite import Suite
from agentci.errors import InputError, RecordingError
from agentci.model.place import COMMAND_LINE, Place
from agentci.model.problem import Problem
from agentci.model.values import replace
from agentci.recordings.agentv.read import first_value, read_rows
from agentci.recordings.agentv.recorded_run import RecordedRun
from agentci.recordings.agentv.transcripts import run_of
from agentci.recordings.file_content import MAX_RECORDING_BYTES, content_of
from agentci.recordings.registry import AUTO, FORMATS, read_recording
from agentci.recordings.telemetry.conversion import trace_of
from agentci.recordings.telemetry.groups import groups_of
from agentci.recordings.telemetry.stored_trace import Recorded
from agentci.runner.load_configs import LoadedSuite
from agentci.runner.trial_runs import Attempts, pair

# What follows the id of a case in the names of files beside its eval file.
OF_A_CASE: Final = (".output.json", ".output.txt", ".output.md", ".json", ".txt")


class Paired(Struct, frozen=True, kw_only=True):
    """The runs of each case of an eval file, and what is worth knowing about them."""

    attempts: tuple[Attempts, ...]
    problems: tuple[Problem, ...]


def find_outputs(loaded: LoadedSuite, settings: Settings, workspace: Workspace) -> tuple[Path, ...]:
    """The files of recorded outputs: the command line's, else the file's, else those beside it.

    Raises:
        InputError: there are none, nor an agent that could be asked, or one that is named is
            missing.
    """
    if settings.traces:
        found = {each: matches(workspace.cwd, each) for each in settings.traces}
        return _all(found, COMMAND_LINE)
    return named_outputs(loaded) or _beside(loaded.suite, workspace)


def named_outputs(loaded: LoadedSuite) -> tuple[Path, ...]:
    """The files of recorded outputs that an eval file names.

    Raises:
        InputError: one of them is missing.
    """
    suite, place = loaded.suite, loaded.suite.place_of("outputs")
    return _all({each: loaded.locator.matches(each, place) for each in suite.traces}, place)


def _all(found: Mapping[str, Sequence[Path]], place: Place) -> tuple[Path, ...]:
    missing = [pattern for pattern, paths in found.items() if not paths]
    if missing:
        raise InputError(
            [
                Problem(
                    message=f"no recorded output matches {pattern}",
                    place=place,
                    hint="check the path or the glob",
                )
                for pattern in missing
            ]
        )
    return tuple(dict.fromkeys(path for paths in found.values() for path in paths))


def _beside(suite: Suite, workspace: Workspace) -> tuple[Path, ...]:
    file = workspace.root / suite.file
    stem = stem_of(file.name)
    ids = [each.sample.id for each in suite.samples or ()]
    names = [
        *(f"{stem}{ending}" for ending in BESIDE),
        *(f"{each}{OF_A_CASE[0]}" for each in ids if "/" not in each),
    ]
    found = tuple(file.parent / name for name in names if is_file(file.parent / name))
    if not found and suite.agent is None:
        raise InputError.of(
            "there are no recorded outputs to judge, and no `target` with a `command` to make them",
            place=suite.place,
            hint=f"add `outputs:`, give --traces, or put {stem}{BESIDE[0]} beside the file",
        )
    return found


def pair_outputs(
    loaded: LoadedSuite, paths: Sequence[Path], settings: Settings, workspace: Workspace
) -> Paired:
    """Read the outputs of a suite and give each case its runs; there may be none."""
    suite = loaded.suite
    reader = _Reader(suite=suite, settings=settings, workspace=workspace)
    attempts, problems = pair(reader.runs(paths), suite)
    return Paired(attempts=attempts, problems=(*reader.problems, *problems))


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
