"""Finds and reads the recordings of a suite."""

from collections.abc import Sequence
from pathlib import Path

from agentci._util.spool import Spool
from agentci._util.workspace import Workspace, is_folder, read_chunks
from agentci.config.discovery import matches
from agentci.config.settings import Settings
from agentci.errors import InputError, RecordingError
from agentci.model.place import COMMAND_LINE
from agentci.model.problem import Problem
from agentci.recordings.file_content import MAX_RECORDING_BYTES
from agentci.recordings.registry import AUTO, read_recording
from agentci.recordings.telemetry.stored_trace import Recorded
from agentci.runner.load_configs import LoadedSuite
from agentci.runner.services import World


def find_files(loaded: LoadedSuite, settings: Settings, workspace: Workspace) -> tuple[Path, ...]:
    """The files that a suite judges: recordings, or the outputs of an eval file.

    Raises:
        InputError: there are none, or one that is named is missing.
    """
    if loaded.suite.samples is None:
        return _find_recordings(loaded, settings, workspace)
    from agentci.runner.load_outputs import find_outputs  # noqa: PLC0415 (of no use to most runs)

    return find_outputs(loaded, settings, workspace)


def read_recordings(
    paths: Sequence[Path], loaded: LoadedSuite, settings: Settings, world: World, *, spool: Spool
) -> tuple[list[Recorded], list[Problem]]:
    """All traces of a suite's recordings, and what was wrong with the recordings that broke."""
    recorded: list[Recorded] = []
    broken: list[Problem] = []
    trace_format = settings.trace_format or loaded.suite.trace_format or AUTO
    for path in paths:
        if world.interruption.asked():
            break
        name = world.workspace.name_of(path)
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
        found = {pattern: matches(workspace.cwd, pattern) for pattern in settings.traces}
    else:
        found = {pattern: loaded.locator.matches(pattern, place) for pattern in suite.traces}
    if not found and suite.dataset is None:
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
