"""Find and read the recordings, eval set and dataset of a suite."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agentci._util.files import SpooledChunks
from agentci._util.workspace import Workspace, is_folder, read_chunks, read_file
from agentci.config.discovery import find_matching_paths
from agentci.config.settings import Settings
from agentci.config.suite import Suite
from agentci.errors import InputError, RecordingError
from agentci.model.case import Dataset, EvalCase, EvalSet
from agentci.model.problem import COMMAND_LINE, Place, Problem
from agentci.recordings.json_documents import MAX_RECORDING_BYTES
from agentci.recordings.registry import AUTO, is_recording, read_recording
from agentci.recordings.telemetry.stored_trace import StoredTrace
from agentci.runner.load_configs import LoadedSuite
from agentci.runner.services import Services

MAX_DATASET_BYTES: Final = 64 * 1024**2


def load_suite_dataset(
    loaded: LoadedSuite, workspace: Workspace, *, carries_runs: bool
) -> Dataset | None:
    """The dataset of a suite, if it names one.

    Args:
        carries_runs: there are no recordings beside it.

    Raises:
        InputError: it is not there, or with every row that is wrong.
    """
    named, place = loaded.suite.dataset, loaded.suite.place_of("dataset")
    if named is None:
        return None
    path = loaded.locator.locate(named, place)
    return load_dataset(path, workspace, carries_runs=carries_runs)


def load_dataset(path: Path, workspace: Workspace, *, carries_runs: bool) -> Dataset:
    """The rows of a file; as ``load_suite_dataset``."""
    from agentci.recordings.dataset import read_dataset  # noqa: PLC0415 (of no use to most runs)

    name = workspace.display_path(path)
    data = read_file(path, name=name, limit_bytes=MAX_DATASET_BYTES)
    return read_dataset(data, file=name, carries_runs=carries_runs)


MAX_EVAL_SET_BYTES = 64 * 1024**2


def load_eval_set(
    loaded: LoadedSuite, workspace: Workspace, *, given: str | None = None
) -> EvalSet | None:
    """Read the golden cases of a suite, if it names any.

    Args:
        loaded: names an eval set inside of the workspace, or none.
        workspace: what paths are relative to.
        given: any file that the command line names in its place.

    Raises:
        InputError: with every problem of the eval set.
    """
    named, place = loaded.suite.eval_set, loaded.suite.place_of("eval_set")
    if given is not None:
        path, place = workspace.cwd / given, COMMAND_LINE
    elif named is not None:
        path = loaded.locator.locate(named, place)
    else:
        return None
    from agentci.recordings.adk_eval_set import read_eval_set  # noqa: PLC0415 (many runs have none)

    name = workspace.display_path(path)
    data = read_file(path, name=name, limit_bytes=MAX_EVAL_SET_BYTES, place=place)
    try:
        return read_eval_set(data, file=name)
    except InputError:
        if is_recording(data):
            message = "the file is a recording, not an eval set"
            hint = "name it as `traces:`, or give it with --traces"
            raise InputError.from_message(message, place=Place(file=name), hint=hint) from None
        raise


def find_coverage_problems(
    suite: Suite, goldens: EvalSet | None, uncovered: Sequence[EvalCase] = ()
) -> Iterator[Problem]:
    """Warn of evaluators without anything to compare with, and of golden cases without a run."""
    needy = [each.identity for each in suite.evaluators if each.identity.needs_expected]
    if needy and goldens is None:
        names = ", ".join(identity.name for identity in needy)
        yield Problem(
            message=f"there is no eval set for {names} to compare with",
            place=needy[0].place,
            hint="add `eval_set:`, or give --eval-set",
            severity="warning",
        )
    elif needy and goldens is not None and not any(golden.turns for golden in goldens.cases):
        yield Problem(
            message="the eval set has no case with turns to compare with",
            place=goldens.place,
            severity="warning",
        )
    for golden in uncovered:
        yield Problem(
            message=f"no recording is judged by the golden case {golden.id!r}",
            place=golden.place,
            hint="a recording belongs to the case that begins with the same question; "
            "`gate: {on_skip: fail}` shuts the gate on a case without one",
            severity="warning",
        )


def find_input_files(
    loaded: LoadedSuite, settings: Settings, workspace: Workspace
) -> tuple[Path, ...]:
    """The files that a suite judges: recordings, or the outputs of an eval file.

    Raises:
        InputError: there are none, or one that is named is missing.
    """
    if loaded.suite.eval_cases is None:
        return _find_recordings(loaded, settings, workspace)
    from agentci.runner.load_outputs import find_outputs  # noqa: PLC0415 (of no use to most runs)

    return find_outputs(loaded, settings, workspace)


def read_recordings(
    paths: Sequence[Path],
    loaded: LoadedSuite,
    settings: Settings,
    services: Services,
    *,
    spool: SpooledChunks,
) -> tuple[list[StoredTrace], list[Problem]]:
    """All traces of a suite's recordings, and what was wrong with the recordings that broke."""
    recorded: list[StoredTrace] = []
    broken: list[Problem] = []
    trace_format = settings.trace_format or loaded.suite.trace_format or AUTO
    for path in paths:
        if services.interruption.is_requested():
            break
        name = services.workspace.display_path(path)
        if is_folder(path):
            hint = f"name its recordings, as with {name}/*.jsonl"
            broken.append(Problem(message=f"{name} is a folder", hint=hint))
            continue
        try:
            chunks = read_chunks(path, name=name, limit_bytes=MAX_RECORDING_BYTES)
            recorded += read_recording(chunks, file=name, spool=spool, trace_format=trace_format)
        except RecordingError as error:
            broken.append(error.problem)
        except InputError as error:
            broken += error.problems
    return recorded, broken


def _find_recordings(
    loaded: LoadedSuite, settings: Settings, workspace: Workspace
) -> tuple[Path, ...]:
    """The recordings of the command line (any files), else the config's."""
    suite, place = loaded.suite, loaded.suite.place_of("traces")
    if settings.traces:
        place = COMMAND_LINE
        found = {
            pattern: find_matching_paths(workspace.cwd, pattern) for pattern in settings.traces
        }
    else:
        found = {pattern: loaded.locator.matches(pattern, place) for pattern in suite.traces}
    if not found and suite.dataset is None:
        raise InputError.from_message(
            "there are no recordings to judge",
            place=suite.place,
            hint="add `traces:`, or give --traces",
        )
    for pattern, paths in found.items():
        if not paths:
            message = f"no recording matches {pattern}"
            raise InputError.from_message(message, place=place, hint="check the path or the glob")
    return tuple(dict.fromkeys(path for paths in found.values() for path in paths))
