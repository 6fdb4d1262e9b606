"""``agentci show``: show what is understood of a recording, an eval set or a report."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.files import SpooledChunks, write_to_stream
from agentci._util.text.escape import escape_for_log_line, neutralize_commands
from agentci._util.workspace import ResolvedPath, is_folder, limit_input, read_chunks, read_file
from agentci.cli.session import Session
from agentci.config.discovery import is_case_file
from agentci.errors import InputError, RecordingError
from agentci.evaluators.agentevals.match_eval_case import EvalCaseMatcher, has_multi_turn_case
from agentci.model.case import EvalSet
from agentci.model.values import COMMAND_LINE
from agentci.recordings.inspection import (
    Survey,
    inspect_run,
    make_counted_attributes,
    survey_runs,
    survey_traces,
)
from agentci.recordings.json_documents import MAX_RECORDING_BYTES, read_documents, unpack_content
from agentci.recordings.registry import (
    AUTO,
    EVAL_CASE_KEYS,
    EVAL_SET_KEYS,
    FORMAT_NAMES,
    detect_format_name,
    read_recording,
)
from agentci.recordings.runs import group_runs
from agentci.recordings.telemetry.grouping import GroupBy
from agentci.reports.groups_and_totals import format_problem
from agentci.reports.show import (
    MAX_CASES,
    ShownCase,
    ShownRecording,
    render_eval_set_json,
    render_eval_set_text,
    render_recording_json,
    render_recording_text,
    render_requests_json,
    render_requests_text,
    render_results_json,
)
from agentci.runner.load_eval_sets import NamedEvalSet, load_eval_set_file, load_eval_sets
from agentci.runner.load_inputs import find_failed_problems
from agentci.runner.select_runs import split_inactive_traces
from agentci.runner.suite_files import find_given_eval_sets

# Keys of the first item of an ADK test file in its old form.
TEST_FILE_KEYS: Final = frozenset({"query", "initial_session"})
# Top-level keys of a file of requests that `agentci record` has stored.
REQUESTS_KEYS: Final = frozenset({"format", "version", "exchanges"})
# Top-level keys of results.json.
RESULTS_KEYS: Final = frozenset({"schema_version", "decision", "results"})


class ShowOptions(Struct, frozen=True, kw_only=True):
    """The options of the command.

    Attributes:
        eval_sets: the files whose eval cases the runs are matched with.
    """

    trace_format: str = AUTO
    group_by: GroupBy = "auto"
    eval_sets: tuple[str, ...] = ()
    as_json: bool = False


def show_file(named: str, options: ShowOptions, session: Session) -> int:
    """Print what is understood of a file.

    Raises:
        InputError: it does not exist, or cannot be read.
    """
    workspace = session.services.workspace
    if is_folder(workspace.cwd / named):
        hint = "name one file"
        raise InputError.from_message(f"{named} is a folder", place=COMMAND_LINE, hint=hint)
    path = workspace.resolve_given(Path(named), named=named, place=COMMAND_LINE)
    if not os.path.lexists(path.path):
        raise InputError.from_message(f"{named} does not exist", place=COMMAND_LINE)
    file = workspace.display_path(path.path)
    with limit_input(file):
        text = _show(path, file, options, session)
    # JSON is in ASCII and has no line that a runner could take for a command.
    write_to_stream(text if options.as_json else neutralize_commands(text), session.out)
    for each in find_failed_problems([path], workspace):
        write_to_stream(f"{escape_for_log_line(format_problem(each))}\n", session.services.err)
    return 0


def format_recording(content: bytes, file: str, session: Session) -> str:
    """Format what is understood of the content of a recording.

    Raises:
        RecordingError: it cannot be read.
    """
    shown = _inspect_recording(lambda: [content], file, ShowOptions())
    return neutralize_commands(render_recording_text(shown, colour=session.colour))


def _show(path: ResolvedPath, file: str, options: ShowOptions, session: Session) -> str:
    def read() -> Iterable[bytes]:
        return read_chunks(path, name=file, limit_bytes=MAX_RECORDING_BYTES)

    if options.trace_format not in FORMAT_NAMES:
        message = f"unknown trace format `{options.trace_format}`"
        hint = f"use one of {', '.join(FORMAT_NAMES)}"
        raise InputError.from_message(message, place=COMMAND_LINE, hint=hint)
    try:
        workspace = session.services.workspace
        named = find_given_eval_sets(options.eval_sets, workspace)
        eval_set = load_eval_sets(named, workspace)
        shown = _inspect_recording(read, file, options, eval_set)
    except RecordingError as error:
        found = _show_other_file(path, file, options, session)
        if found is None:
            raise InputError([error.problem]) from None
        return found
    if options.as_json:
        return render_recording_json(shown)
    return render_recording_text(shown, colour=session.colour)


def _show_other_file(
    path: ResolvedPath, file: str, options: ShowOptions, session: Session
) -> str | None:
    """Show a file without recorded runs; None if it is not known."""
    keys = _find_first_keys(path, file) if options.trace_format == AUTO else frozenset()
    is_eval_set = bool(keys & EVAL_SET_KEYS and keys & EVAL_CASE_KEYS)
    if is_case_file(file) or is_eval_set or keys & TEST_FILE_KEYS:
        return _show_eval_set(path, options, session)
    if keys >= REQUESTS_KEYS:
        return _show_requests(path, file, options)
    return _show_results(path, file, options, session) if keys >= RESULTS_KEYS else None


def _inspect_recording(
    read: Callable[[], Iterable[bytes]],
    file: str,
    options: ShowOptions,
    eval_set: EvalSet | None = None,
) -> ShownRecording:
    """Read a recording twice: to find its format, and its content.

    Converting runs takes most of the time, so only those are converted that are shown, or all if
    an eval set is given, because how a run matches may depend on the others.
    """
    names, ignored = make_counted_attributes()
    spool = SpooledChunks()
    stored = read_recording(
        read(), file=file, spool=spool, trace_format=options.trace_format, names=names
    )
    active, inactive = split_inactive_traces(stored)
    survey = Survey(ignored)
    groups = group_runs(
        active,
        spool,
        group_by=options.group_by,
        multi_turn_eval_cases=has_multi_turn_case(eval_set),
    )
    matcher = EvalCaseMatcher(eval_set, has_one_trace=len(groups) == 1)
    shown = len(groups) if options.as_json or eval_set is not None else MAX_CASES
    runs = [inspect_run(group, spool, survey) for group in groups[:shown]]
    survey_runs(groups[shown:], spool, survey)
    matcher.count_runs(lambda: (run.trace for run in runs))
    survey_traces(inactive, spool, survey)
    cases = tuple(ShownCase(case=matcher.make_case(run.trace), run=run) for run in runs)
    known = options.trace_format
    return ShownRecording(
        file=file,
        format=known if known != AUTO else detect_format_name(read(), file=file) or AUTO,
        cases=cases if options.as_json else cases[:MAX_CASES],
        further_cases=0 if options.as_json else max(len(groups) - MAX_CASES, 0),
        traces=survey.traces,
        instrumentations=survey.instrumentations,
        ignored_attributes=survey.ignored,
        ignored_traces=len({one.id for one in inactive}),
    )


def _show_eval_set(path: ResolvedPath, options: ShowOptions, session: Session) -> str:
    named = NamedEvalSet(path=path, place=COMMAND_LINE)
    eval_set = load_eval_set_file(named, session.services.workspace)
    if options.as_json:
        return render_eval_set_json(eval_set)
    return render_eval_set_text(eval_set, colour=session.colour)


def _show_requests(path: ResolvedPath, file: str, options: ShowOptions) -> str:
    from agentci.record.request_file import parse_requests  # noqa: PLC0415 (rarely used)

    data = read_file(path, name=file, limit_bytes=MAX_RECORDING_BYTES)
    names = [f"{each.method} {each.path}" for each in parse_requests(data, file=file).requests]
    if options.as_json:
        return render_requests_json(file, names)
    return render_requests_text(file, names)


def _show_results(path: ResolvedPath, file: str, options: ShowOptions, session: Session) -> str:
    from agentci.github.baseline.cache import read_baseline_report  # noqa: PLC0415 (rarely used)
    from agentci.reports.console import render_console  # noqa: PLC0415 (likewise)

    report = read_baseline_report(str(path), session.services.workspace)
    if options.as_json:
        return render_results_json(report, file)
    return render_console(report, quiet=False, verbose=True, colour=session.colour)


def _find_first_keys(path: ResolvedPath, file: str) -> frozenset[str]:
    """Return the keys of a file's first object, or of the first one in its list; else none."""
    chunks = read_chunks(path, name=file, limit_bytes=MAX_RECORDING_BYTES)
    try:
        documents = read_documents(unpack_content(chunks, file=file), file=file)
        value = next(documents).value
    except RecordingError:
        return frozenset()
    if isinstance(value, list) and value:
        value = value[0]
    return frozenset(value) if isinstance(value, dict) else frozenset()
