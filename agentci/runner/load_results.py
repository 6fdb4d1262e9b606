"""Find and read the result files of other tools that a suite names."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from agentci._util.archives import ArchiveError, NoZstandardError, iterate_members
from agentci._util.input_limits import limit_input
from agentci._util.workspace import ResolvedPath, Workspace, is_folder, read_file
from agentci.config.discovery import find_given_files
from agentci.config.suite import Suite
from agentci.errors import InputError
from agentci.model.problem import COMMAND_LINE, Place, Problem
from agentci.model.results_source import ResultsSource
from agentci.result_files.inspect_ai import is_needed_member
from agentci.result_files.names import AUTO_TOOL
from agentci.result_files.registry import (
    MAX_ARCHIVE_BYTES,
    MAX_FILE_BYTES,
    MAX_MEMBER_BYTES,
    is_archive,
    read_result_archive,
    read_result_file,
)
from agentci.result_files.row import ResultFile
from agentci.runner.load_configs import LoadedSuite

_NO_ZSTANDARD_HINT = (
    "install `agent-eval-action[inspect]`, or write logs with `inspect eval --log-format json`"
)


class SourcedResults(Struct, frozen=True, kw_only=True):
    """The rows of one file, and the entry of the config that it belongs to."""

    source: ResultsSource
    path: Path
    found: ResultFile


def find_result_files(
    loaded: LoadedSuite, workspace: Workspace
) -> tuple[tuple[ResolvedPath, ResultsSource | None], ...]:
    """Find the result files of a suite with their entries; None for files of the command line.

    Raises:
        InputError: a path or glob matches no file.
    """
    suite = loaded.suite
    found: dict[ResolvedPath, ResultsSource | None] = {}
    if suite.given_results:
        for pattern, paths in find_given_files(suite.given_results, workspace).items():
            _require_matches(pattern, paths, COMMAND_LINE)
            found.update(dict.fromkeys(paths))
        return tuple(found.items())
    for source in suite.results:
        paths = loaded.locator.matches(source.path, source.place)
        _require_matches(source.path, paths, source.place)
        for path in paths:
            found.setdefault(path, source)
    return tuple(found.items())


def _require_matches(pattern: str, paths: Sequence[ResolvedPath], place: Place) -> None:
    if not paths:
        message = f"no result file matches {pattern}"
        hint = "check the path or the glob, and that the step that writes it has run"
        raise InputError.from_message(message, place=place, hint=hint)


def read_result_files(
    files: Sequence[tuple[ResolvedPath, ResultsSource | None]], suite: Suite, workspace: Workspace
) -> tuple[list[SourcedResults], list[Problem]]:
    """Read the files; also returns the problems of those that cannot be read."""
    results: list[SourcedResults] = []
    problems: list[Problem] = []
    for path, source in files:
        tool = AUTO_TOOL if source is None else source.tool
        try:
            found = read_results(path, workspace, tool=tool)
        except InputError as error:
            problems += error.problems
            continue
        problems += found.warnings
        own = _choose_source(suite.results, found.tool) if source is None else source
        results.append(SourcedResults(source=own, path=path.path, found=found))
    return results, problems


def read_results(path: ResolvedPath, workspace: Workspace, *, tool: str = AUTO_TOOL) -> ResultFile:
    """Read one result file.

    Raises:
        InputError: it is not a result file, or it is invalid.
    """
    name = workspace.display_path(path.path)
    if is_folder(path.path):
        raise InputError.from_message(f"{name} is a folder", hint=f"name the files in it: {name}/*")
    with limit_input(name):
        data = read_file(path, name=name, limit_bytes=MAX_FILE_BYTES)
        if not is_archive(data):
            return read_result_file(data, file=name, tool=tool)
        return read_result_archive(_iterate_archive(data, name), file=name, tool=tool)


def _iterate_archive(data: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    try:
        yield from iterate_members(
            data,
            is_needed_member,
            member_bytes=MAX_MEMBER_BYTES,
            total_bytes=MAX_ARCHIVE_BYTES,
        )
    except ArchiveError as error:
        missing = isinstance(error, NoZstandardError)
        hint = _NO_ZSTANDARD_HINT if missing else "check that the file is complete"
        raise InputError.from_message(f"{error}", place=Place(file=name), hint=hint) from None


def _choose_source(sources: Sequence[ResultsSource], tool: str) -> ResultsSource:
    """The entry of the config whose settings apply to a file of the command line."""
    for wanted in (tool, AUTO_TOOL):
        for source in sources:
            if source.tool == wanted:
                return source
    return ResultsSource(path="", place=COMMAND_LINE)
