"""Find and read the traces, the eval set and the dataset of a suite, and make cases from them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.files import SpooledChunks
from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name, suggest_name
from agentci._util.workspace import (
    ResolvedPath,
    Workspace,
    is_folder,
    limit_input,
    read_chunks,
    read_file,
)
from agentci.config.discovery import find_given_files
from agentci.config.settings import Settings
from agentci.config.suite import Suite
from agentci.errors import InputError, RecordingError
from agentci.evaluators.agentevals.match_eval_case import (
    EvalCaseMatcher,
    find_missing_case,
    has_multi_turn_case,
    name_eval_case,
)
from agentci.evaluators.checks.names import CALLS_CHECK
from agentci.evaluators.metrics import TOOL_TRAJECTORY
from agentci.gate.rules import describe_missing_case
from agentci.model.case import CaseSummary, Dataset, EvalCase, EvalSet
from agentci.model.trace import Trace
from agentci.model.values import COMMAND_LINE, Place, Problem
from agentci.recordings.json_documents import MAX_RECORDING_BYTES, point_to_show
from agentci.recordings.registry import (
    AUTO,
    REQUESTS_SUFFIX,
    name_failed_recording,
    read_recording,
)
from agentci.recordings.runs import RunGroup, StoredRun, convert_run, group_runs
from agentci.runner.load_eval_sets import load_eval_sets
from agentci.runner.select_runs import drop_inactive_traces, list_label_names, select_runs
from agentci.runner.services import Services
from agentci.runner.suite_files import LoadedSuite, find_eval_sets

MAX_DATASET_BYTES: Final = 64 * 1024**2
MAX_NAME_LENGTH: Final = 40
MAX_QUESTION: Final = 60
MAX_LISTED_RUNS: Final = 5
# Questions compared in search of a closest one; 10,000 comparisons take about 0.2 s.
MAX_COMPARISONS: Final = 10_000


def load_suite_dataset(
    loaded: LoadedSuite, workspace: Workspace, *, carries_runs: bool
) -> Dataset | None:
    """The dataset of a suite; None if it names none.

    Args:
        carries_runs: the rows hold the responses, since the suite has no traces.

    Raises:
        InputError: it does not exist, or has invalid rows; with all of them.
    """
    named, place = loaded.suite.dataset, loaded.suite.place_of("dataset")
    if named is None:
        return None
    path = loaded.locator.locate(named, place)
    return load_dataset(path, workspace, carries_runs=carries_runs)


def load_dataset(path: ResolvedPath, workspace: Workspace, *, carries_runs: bool) -> Dataset:
    """The rows of a dataset file; errors as in ``load_suite_dataset``."""
    from agentci.recordings.dataset import read_dataset  # noqa: PLC0415 (most runs do not need it)

    name = workspace.display_path(path.path)
    with limit_input(name):
        data = read_file(path, name=name, limit_bytes=MAX_DATASET_BYTES)
        return read_dataset(data, file=name, carries_runs=carries_runs)


def load_eval_set(
    loaded: LoadedSuite, workspace: Workspace, *, given: Sequence[str] = ()
) -> EvalSet | None:
    """Read the eval sets of a suite as one; None if there is none.

    Args:
        given: paths and globs of ``--eval-set``, which replace those of the config.

    Raises:
        InputError: with all errors of the eval sets.
    """
    if loaded.eval_set is not None:
        return loaded.eval_set
    return load_eval_sets(find_eval_sets(loaded, workspace, given=given), workspace)


def find_expectation_problems(suite: Suite, eval_set: EvalSet | None) -> Iterator[Problem]:
    """Find evaluators that have no expected turns to compare with.

    It is an error if one of them is required, unless ``gate.on_empty`` allows it.
    """
    yield from _find_matcher_problems(suite, eval_set)
    comparing = [each.identity for each in suite.evaluators if each.identity.needs_expected]
    if not comparing and eval_set is not None and not eval_set.cases:
        yield Problem(
            message="the eval set has no cases, so that no run is compared",
            place=eval_set.place,
            hint="add eval cases, or remove `eval_set`",
            severity="warning",
        )
    if not comparing or (eval_set is not None and any(case.turns for case in eval_set.cases)):
        return
    allowed = suite.gate.overall.on_empty == "allow"
    required = any(identity.required for identity in comparing) and not allowed
    names = ", ".join(dict.fromkeys(identity.name for identity in comparing))
    yield Problem(
        message=f"{names} cannot be evaluated without an eval set"
        if eval_set is None
        else f"{names} cannot be evaluated: no case of the eval set has a turn to compare with",
        place=comparing[0].place if eval_set is None else eval_set.place,
        hint="add `eval_set:`, or pass --eval-set" if eval_set is None else "add eval cases",
        severity="error" if required else "warning",
    )


def _find_matcher_problems(suite: Suite, eval_set: EvalSet | None) -> Iterator[Problem]:
    """Find metrics that compare tool calls, and eval cases whose calls are more than names."""
    cases = () if eval_set is None else eval_set.cases
    case = next((each for each in cases if not each.has_plain_calls), None)
    for evaluator in suite.evaluators if case is not None else ():
        if getattr(evaluator, "metric", None) == TOOL_TRAJECTORY and case is not None:
            yield Problem(
                message=f"{TOOL_TRAJECTORY} compares exact calls, which eval case "
                f"`{truncate.short(case.id, MAX_NAME_LENGTH)}` does not list",
                place=evaluator.identity.place,
                hint=f"remove the metric; the check `{CALLS_CHECK}` compares `calls`",
            )


def find_coverage_problems(
    uncovered: Sequence[EvalCase], unmatched: Sequence[CaseSummary]
) -> Iterator[Problem]:
    """Name the eval cases without a run, and the runs without an eval case that they do not name.

    Args:
        unmatched: as ``find_unmatched_runs`` returns.
    """
    asked = {each.id: each.dialogue[0].question for each in unmatched if each.dialogue}
    closest = _find_closest_questions(uncovered, tuple(dict.fromkeys(asked.values())))
    others = [each for each in unmatched if asked.get(each.id) not in closest.values()]
    yield from _find_uncovered_problems(uncovered, closest)
    yield from _find_unmatched_problems(others)


def _find_closest_questions(
    uncovered: Sequence[EvalCase], questions: Sequence[str]
) -> Mapping[str, str]:
    """Find which run without an eval case asks something similar to an eval case without a run.

    Args:
        questions: the first user messages of the runs without an eval case.

    Returns:
        By id of an eval case, the most similar question; none if there are too many to compare.
    """
    if len(uncovered) == 1 == len(questions):
        return {uncovered[0].id: questions[0]}
    if len(uncovered) * len(questions) > MAX_COMPARISONS:
        return {}
    closest = ((each.id, _find_closest(each.turns[0].user_text, questions)) for each in uncovered)
    return {case_id: question for case_id, question in closest if question}


def _find_uncovered_problems(
    uncovered: Sequence[EvalCase], closest: Mapping[str, str]
) -> Iterator[Problem]:
    """Warn about eval cases without a recorded run.

    Args:
        closest: as ``_find_closest_questions`` returns.
    """
    for eval_case in uncovered:
        question = truncate.short(" ".join(closest.get(eval_case.id, "").split()), MAX_QUESTION)
        yield Problem(
            message=describe_missing_case(eval_case.id),
            place=eval_case.place,
            hint=f'if its question changed to "{question}", correct `input`; else record the case'
            if question
            else "runs are matched by their first user message; record the case, or select others "
            "with --case",
            severity="warning",
        )


def find_unmatched_runs(
    eval_set: EvalSet | None, dataset: Dataset | None, cases: Iterable[CaseSummary]
) -> tuple[CaseSummary, ...]:
    """Find the recorded runs without an eval case, which no check of an eval case evaluates.

    Those that no evaluator can evaluate are errors. Runs need no eval case if there are none, or if
    they belong to the rows of a dataset.
    """
    if eval_set is None or not eval_set.cases or dataset is not None:
        return ()
    return tuple(case for case in cases if case.eval_case_id is None and not case.unusable_reason)


def _find_unmatched_problems(unmatched: Sequence[CaseSummary]) -> Iterator[Problem]:
    """Name the runs that ``find_unmatched_runs`` found: a warning if they name an eval case."""
    if not unmatched:
        return
    missing = [find_missing_case(case.unmatched_reason) for case in unmatched]
    are_named = any(missing)
    names = [
        f"`{truncate.short(name or case.id, MAX_NAME_LENGTH)}`"
        for name, case in zip(missing, unmatched, strict=True)
    ]
    match = "match" if len(unmatched) > 1 else "matches"
    yield Problem(
        message=f"{format_count(len(unmatched), 'recorded run')} {match} no eval case: "
        + ", ".join(truncate.truncate_list(names, MAX_LISTED_RUNS)),
        place=unmatched[0].recording,
        hint=f"correct the {'id' if are_named else 'input'} of an eval case, or add one with "
        "`agentci accept`; `gate: {on_skip: fail}` fails the gate if a run has none",
        severity="warning" if are_named else "note",
    )


def find_uncompared_problems(
    suite: Suite, lost: Sequence[str], unread_eval_set: str
) -> Iterator[Problem]:
    """Warn about recorded runs and eval cases that no config compares.

    Args:
        lost: ids of runs that `agentci record --cases` recorded, if no config has eval cases.
        unread_eval_set: as ``find_unread_eval_set`` of ``load_configs`` returns it.
    """
    if unread_eval_set and not lost:
        yield Problem(
            message=f"no config reads the eval cases in {unread_eval_set}, so that no run is "
            "compared with them",
            place=suite.place,
            hint=f"add `eval_set: {unread_eval_set}`, or remove the file",
            severity="warning",
        )
    if lost:
        were = "was" if len(lost) == 1 else "were"
        yield Problem(
            message=f"{format_count(len(lost), 'recorded run')} {were} recorded for eval cases, "
            "but no `eval_set` is configured: nothing compares their calls",
            place=suite.place,
            hint=f"add `eval_set: {unread_eval_set}`"
            if unread_eval_set
            else "add `eval_set:` with the file of the eval cases",
            severity="warning",
        )


def _find_closest(text: str, questions: Sequence[str]) -> str:
    """The question most similar to ``text``; empty if none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 (most runs do not need it)

    def shorten(question: str) -> str:
        return truncate.short(" ".join(question.split()), MAX_QUESTION)

    known = {shorten(each): each for each in reversed(questions)}
    found = get_close_matches(shorten(text), known, n=1)
    return known[found[0]] if found else ""


def find_input_files(
    loaded: LoadedSuite, settings: Settings, workspace: Workspace
) -> tuple[ResolvedPath, ...]:
    """The files of a suite's recorded runs: traces, or the outputs of an eval file.

    Raises:
        InputError: there are none, or a pattern matches no file.
    """
    if not loaded.suite.evaluators:
        return ()
    if loaded.suite.eval_cases is None:
        return find_recordings(loaded, settings, workspace)
    from agentci.runner.load_outputs import find_outputs  # noqa: PLC0415 (most runs do not need it)

    return find_outputs(loaded, settings, workspace)


def read_recordings(
    paths: Sequence[ResolvedPath],
    loaded: LoadedSuite,
    settings: Settings,
    services: Services,
    *,
    spool: SpooledChunks,
) -> tuple[list[StoredRun], list[Problem]]:
    """The recorded runs of a suite, and the problems of the files that could not be read."""
    traces: list[StoredRun] = []
    problems: list[Problem] = []
    trace_format = settings.trace_format or loaded.suite.trace_format or AUTO
    label_names = list_label_names(loaded.suite.run_sources)
    for path in paths:
        if services.interruption.is_requested():
            break
        name = services.workspace.display_path(path.path)
        if is_folder(path.path):
            place = COMMAND_LINE if settings.traces else loaded.suite.place_of("traces")
            problems.append(_make_folder_problem(name, place))
            continue
        try:
            content = _find_failed_recording(path, services.workspace) or path
            name = services.workspace.display_path(content.path)
            with limit_input(name):
                chunks = read_chunks(content, name=name, limit_bytes=MAX_RECORDING_BYTES)
                traces += read_recording(
                    chunks,
                    file=name,
                    spool=spool,
                    trace_format=trace_format,
                    label_names=label_names,
                )
        except RecordingError as error:
            problems.append(point_to_show(error.problem))
        except InputError as error:
            problems += error.problems
    return traces, problems


def _find_failed_recording(path: ResolvedPath, workspace: Workspace) -> ResolvedPath | None:
    """Return the last recording of a file if it failed, so that older runs are not mistaken for it.

    Raises:
        InputError: a link leads out of the workspace.
    """
    failed = name_failed_recording(path.path)
    return workspace.resolve_given(failed) if os.path.lexists(failed) else None


def find_failed_problems(files: Sequence[ResolvedPath], workspace: Workspace) -> Iterator[Problem]:
    """Warn about files whose last recording failed, which is evaluated in their place."""
    for each in files:
        failed = name_failed_recording(each.path)
        if os.path.lexists(failed) and os.path.lexists(each.path):
            name = workspace.display_path(failed)
            yield Problem(
                message=(
                    "the last recording of this file failed: `agentci run` reports its errors from "
                    f"{name}, and does not evaluate the earlier recording"
                ),
                place=Place(file=workspace.display_path(each.path)),
                hint=f"correct them and record again, or delete {name} to evaluate the earlier one",
                severity="warning",
            )


def find_unknown_cases(
    suite: Suite, eval_set: EvalSet | None, dataset: Dataset | None
) -> Iterator[Problem]:
    """Find eval cases that ``traces:`` names and that neither eval set nor dataset has."""
    if eval_set is None and dataset is None:
        return
    known = [each.id for each in eval_set.cases] if eval_set is not None else []
    known += [row.id for row in dataset.rows] if dataset is not None else []
    for named in (source.case for source in suite.run_sources if source.case is not None):
        names = [named] if isinstance(named, str) else named.values()
        for name in names:
            is_template = isinstance(named, str) and "{" in name
            if not is_template and name not in known:
                yield Problem(
                    message=f"`traces` names an eval case that does not exist: {quote_name(name)}",
                    place=suite.place_of("traces"),
                    hint=suggest_name(name, known) or "check the ids in the eval set",
                )


def find_recordings(
    loaded: LoadedSuite, settings: Settings, workspace: Workspace
) -> tuple[ResolvedPath, ...]:
    """Find the trace files of the command line, else those of the config.

    Raises:
        InputError: there are none, or a pattern matches no file.
    """
    suite, place = loaded.suite, loaded.suite.place_of("traces")
    folders: list[Path] = []
    if settings.traces:
        place = COMMAND_LINE
        found = find_given_files(settings.traces, workspace, folders=folders)
    else:
        found = {
            pattern: loaded.locator.matches(pattern, place, folders=folders)
            for pattern in suite.traces
        }
    loaded.locator.notices += _warn_of_folders(folders, place, workspace)
    if not found and suite.dataset is None:
        raise InputError.from_message(
            "the config names no traces", place=suite.place, hint="add `traces:`, or pass --traces"
        )
    for pattern in [each for each in found if not found[each]]:
        # After a first recording that failed, there is only its own file.
        failed = str(name_failed_recording(Path(pattern)))
        found[pattern] = (
            find_given_files((failed,), workspace)[failed]
            if settings.traces
            else loaded.locator.matches(failed, place)
        )
    for pattern, paths in found.items():
        if not paths:
            for folder in _select_named(each for each in folders if each.match(pattern)):
                raise InputError([_make_folder_problem(workspace.display_path(folder), place)])
            message = f"no trace file matches {pattern}"
            hint = "check the path or the glob, or record the agent with `agentci record`"
            raise InputError.from_message(message, place=place, hint=hint)
    return tuple(dict.fromkeys(path for paths in found.values() for path in paths))


def find_folder_problems(loaded: LoadedSuite, workspace: Workspace) -> Iterator[Problem]:
    """Find folders that a config names as traces.

    Raises:
        InputError: one is outside the workspace.
    """
    place = loaded.suite.place_of("traces")
    for named in loaded.suite.traces:
        paths = loaded.locator.matches(named, place) if "*" not in named else ()
        if paths and is_folder(paths[0].path):
            yield _make_folder_problem(workspace.display_path(paths[0].path), place)


def _make_folder_problem(name: str, place: Place) -> Problem:
    return Problem(message=f"{name} is a folder", place=place, hint=_suggest_files(name))


def _warn_of_folders(
    folders: Sequence[Path], place: Place, workspace: Workspace
) -> Iterator[Problem]:
    """Warn of folders that a glob of traces matches, besides those that `agentci record` writes."""
    for folder in _select_named(folders):
        name = workspace.display_path(folder)
        yield Problem(
            message=f"{name} is a folder, whose files are not read",
            place=place,
            hint=_suggest_files(name),
            severity="warning",
        )


def _select_named(folders: Iterable[Path]) -> list[Path]:
    """Return the folders that a user may have named, unlike those of recorded requests."""
    return [each for each in dict.fromkeys(folders) if each.suffix != REQUESTS_SUFFIX]


def _suggest_files(folder: str) -> str:
    return f"name the files in it, e.g. {folder}/*.jsonl"


class RecordedRuns(Struct, frozen=True, kw_only=True):
    """Recorded runs, which are converted one at a time.

    Attributes:
        case_names: ids of the eval cases that the config names, by file and id of a run.
        matcher: finds the eval cases of the runs.
        broken: the problems of files that could not be read.
        problems: of the selection.
    """

    groups: tuple[RunGroup, ...]
    spool: SpooledChunks
    case_names: Mapping[tuple[str, str], str]
    matcher: EvalCaseMatcher
    broken: tuple[Problem, ...]
    problems: tuple[Problem, ...]

    def list_traces(self) -> Iterator[Trace]:
        """Convert the runs, in order."""
        for group in self.groups:
            yield name_eval_case(convert_run(group, self.spool), self.case_names)


def read_recorded_runs(
    files: Sequence[ResolvedPath],
    loaded: LoadedSuite,
    eval_set: EvalSet | None,
    settings: Settings,
    services: Services,
    *,
    accepts_new: bool = False,
) -> RecordedRuns:
    """Read the runs in files.

    Args:
        accepts_new: whether a run without an eval case may become one: conversations are kept
            together, and the only run does not belong to the only eval case unless it asks the
            same.

    Raises:
        InputError: none of them has agent activity.
    """
    spool = SpooledChunks()
    recorded, broken = read_recordings(files, loaded, settings, services, spool=spool)
    active, ignored = drop_inactive_traces(recorded, are_all=not broken)
    workspace = services.workspace
    selected = select_runs(active, loaded, workspace, is_given=bool(settings.traces))
    groups = group_runs(
        selected.runs,
        spool,
        group_by=settings.group_by or loaded.suite.group_by,
        multi_turn_eval_cases=accepts_new or has_multi_turn_case(eval_set),
    )
    runs = RecordedRuns(
        groups=groups,
        spool=spool,
        case_names=selected.case_names,
        matcher=EvalCaseMatcher(eval_set, has_one_trace=len(groups) == 1 and not accepts_new),
        broken=tuple(broken),
        problems=(
            *find_failed_problems(files, workspace),
            *ignored,
            *selected.problems,
        ),
    )
    runs.matcher.count_runs(runs.list_traces)
    return runs
