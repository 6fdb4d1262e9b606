"""Select the recorded runs that the entries of ``traces`` name, and find their eval cases.

Traces without agent activity, such as those of health checks, are dropped.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name
from agentci._util.workspace import Workspace
from agentci.errors import InputError
from agentci.model.case import CONVENTIONS_HINT, RunSource
from agentci.model.values import Place, Problem, hint_at_show
from agentci.recordings.registry import name_failed_recording
from agentci.recordings.runs import StoredRun
from agentci.recordings.telemetry.stored_trace import StoredTrace
from agentci.runner.suite_files import LoadedSuite


def split_inactive_traces(
    recorded: Sequence[StoredRun],
) -> tuple[list[StoredRun], list[StoredTrace]]:
    """Return runs with activity, and the traces without; a trace may have parts in many files."""
    traces = [stored for stored in recorded if isinstance(stored, StoredTrace)]
    active = {stored.id for stored in traces if stored.has_activity}
    kept = [
        stored for stored in recorded if not isinstance(stored, StoredTrace) or stored.id in active
    ]
    return kept, [stored for stored in traces if stored.id not in active]


def drop_inactive_traces(
    recorded: Sequence[StoredRun], *, are_all: bool
) -> tuple[list[StoredRun], list[Problem]]:
    """Drop traces without agent activity, such as those of health checks, and count them.

    Args:
        are_all: whether all files could be read.

    Raises:
        InputError: all traces were read, and there are only such traces.
    """
    kept, inactive = split_inactive_traces(recorded)
    dropped = {stored.id: stored.file for stored in inactive}
    if not dropped:
        return kept, []
    count = format_count(len(dropped), "trace")
    place = Place(file=next(iter(dropped.values())))
    if not kept and are_all:
        raise InputError.from_message(
            f"no agent activity in {count}",
            place=place,
            hint=f"{CONVENTIONS_HINT}; record those; {hint_at_show(place.file)}",
        )
    note = Problem(message=f"{count} without agent activity ignored", place=place, severity="note")
    return kept, [note]


MAX_VALUES: Final = 5
MAX_VALUE: Final = 60


class SelectedRuns(Struct, frozen=True, kw_only=True):
    """The runs of a suite.

    Attributes:
        case_names: ids of the eval cases that the config names, by file and id of a run.
        problems: a ``where`` that selects nothing, and the number of runs left out.
    """

    runs: tuple[StoredRun, ...]
    case_names: Mapping[tuple[str, str], str]
    problems: tuple[Problem, ...] = ()


def list_label_names(sources: Iterable[RunSource]) -> frozenset[str]:
    """Return the attributes that select traces."""
    return frozenset(name for source in sources for name in source.where)


def select_runs(
    recorded: Sequence[StoredRun], loaded: LoadedSuite, workspace: Workspace, *, is_given: bool
) -> SelectedRuns:
    """Select the runs of the entries of ``traces``.

    A run is selected if any entry for its file selects it.

    Args:
        is_given: whether the command line names the files, so that ``where`` does not count.
    """
    sources = loaded.suite.run_sources
    if not any(source.where or source.case is not None for source in sources):
        return SelectedRuns(runs=tuple(recorded), case_names={})
    place = loaded.suite.place_of("traces")
    names: dict[tuple[str, str], str] = {}
    problems: list[Problem] = []
    files: set[str] = set()
    kept: set[int] = set()
    for source in sources:
        paths = {
            workspace.display_path(read): path.path
            for path in loaded.locator.matches(source.path, place)
            for read in (path.path, name_failed_recording(path.path))
        }
        files |= paths.keys()
        own = {index: run for index, run in enumerate(recorded) if _find_file(run) in paths}
        selected = own if is_given else _select(own, source.where)
        if own and not selected:
            problems.append(_make_empty_problem(source, [*own.values()], place))
        kept |= selected.keys()
        for key, name in _find_case_names(source, selected.values(), paths):
            names.setdefault(key, name)
    runs = tuple(
        run for index, run in enumerate(recorded) if index in kept or _find_file(run) not in files
    )
    if left := len({run.id for run in recorded} - {run.id for run in runs}):
        message = f"{format_count(left, 'trace')} not selected by `where`"
        problems.append(Problem(message=message, place=place, severity="note"))
    return SelectedRuns(runs=runs, case_names=names, problems=tuple(problems))


def _find_case_names(
    source: RunSource, runs: Iterable[StoredRun], paths: Mapping[str, Path]
) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the eval case of each run that the entry names one for, by file and id."""
    for run in runs:
        file = _find_file(run)
        name = _find_case_name(source, paths[file])
        if name is not None:
            yield (file, run.id), name


def _find_file(run: StoredRun) -> str:
    return run.file if isinstance(run, StoredTrace) else run.place.file


def _select(runs: Mapping[int, StoredRun], where: Mapping[str, str]) -> dict[int, StoredRun]:
    """Select the traces with all values, each on any span of any file."""
    labels: dict[str, dict[str, set[str]]] = {}
    for run in runs.values():
        if isinstance(run, StoredTrace):
            of_trace = labels.setdefault(run.id, {})
            for name, values in run.labels.items():
                of_trace.setdefault(name, set()).update(values)
    return {
        index: run
        for index, run in runs.items()
        if all(
            any(_matches(value, pattern) for value in labels.get(run.id, {}).get(name, ()))
            for name, pattern in where.items()
        )
    }


def _matches(value: str, pattern: str) -> bool:
    return fnmatchcase(value, pattern.replace("[", "[[]"))


def _make_empty_problem(source: RunSource, runs: Sequence[StoredRun], place: Place) -> Problem:
    """Say which values the traces have instead."""
    found: dict[str, dict[str, None]] = {name: {} for name in source.where}
    for run in runs:
        for name, values in (run.labels if isinstance(run, StoredTrace) else {}).items():
            found.setdefault(name, {}).update(dict.fromkeys(sorted(values)))
    missing = {
        name: values
        for name, values in found.items()
        if name in source.where and not any(_matches(value, source.where[name]) for value in values)
    }
    described = [f"{name} is {_list_values(values)}" for name, values in missing.items()]
    reason = "; ".join(described) or "no trace has all values"
    count = format_count(len({run.id for run in runs}), "trace")
    return Problem(
        message=f"`where` selects none of {count} of {quote_name(source.path)}: {reason}",
        place=place,
        hint=hint_at_show(_find_file(runs[0])),
    )


def _list_values(values: Iterable[str]) -> str:
    shown = [truncate.short(" ".join(value.split()), MAX_VALUE) for value in values]
    return ", ".join(truncate.truncate_list(shown, MAX_VALUES)) or "not recorded"


def _find_case_name(source: RunSource, path: Path) -> str | None:
    if source.case is None:
        return None
    if not isinstance(source.case, str):
        return source.case.get(path.name)
    return fill_file_name(source.case, path)


def fill_file_name(name: str, path: Path) -> str:
    """Replace `{stem}` and `{folder}` in a name by those of a file."""
    stem = path.name.removesuffix(".gz")
    stem = stem.rpartition(".")[0] or stem
    return name.replace("{stem}", stem).replace("{folder}", path.parent.name)
