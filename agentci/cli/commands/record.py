"""``agentci record``: run an agent and record what it asks models."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, NoReturn

from msgspec import Struct

from agentci._util.files import write_to_stream
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count, parse_seconds
from agentci._util.text.suggest import find_nearest, quote_name
from agentci._util.workspace import (
    ResolvedPath,
    Workspace,
    is_file,
    is_folder,
    limit_input,
    read_file,
)
from agentci.cli.commands.record_report import (
    describe_kept,
    describe_removed,
    find_ignored_inputs,
    find_restored,
    list_problems,
    show_recording,
)
from agentci.cli.session import Session
from agentci.config.options import COMMAND_PLACEHOLDER
from agentci.errors import InputError
from agentci.model.result import EXIT_INVALID_INPUT
from agentci.model.values import COMMAND_LINE, Place, Problem, replace
from agentci.record.case_file import (
    NO_CASE,
    OWN_ID_HINT,
    RecordCase,
    choose_cases,
    describe_equal_ids,
    fold_id,
    read_cases,
)
from agentci.record.printed_answer import AnswerSource
from agentci.record.record_order import INPUT_NAME, INPUT_PLACE, RecordOrder
from agentci.record.recorded_case import RecordedCase
from agentci.record.recorder import record
from agentci.record.recording_choice import are_equal_runs
from agentci.record.recording_file import (
    EarlierRecording,
    FileOutcome,
    RecordingWriter,
    find_recording_path,
    note_failed_recording,
)
from agentci.record.redaction import RecordingRedactor
from agentci.record.replay import ReplayMode, read_requests
from agentci.record.request_file import remove_other_cases, write_requests
from agentci.record.write_spans import CaseStamp, mark_incomplete, mark_lines
from agentci.recordings.registry import REQUESTS_SUFFIX, name_failed_recording
from agentci.recordings.telemetry import semconv

EXIT_FAILED: Final = 1
EXIT_INCOMPLETE: Final = 3
MAX_CASES_BYTES: Final = 64 * 1024**2
MAX_WORKFLOW_BYTES: Final = 1024**2
PLACEHOLDER_LINE: Final = re.compile(rf"^[^#]*\b{COMMAND_PLACEHOLDER}\b")
# Of the process of a case, and of a command without cases, such as a test suite or a server.
CASE_SECONDS: Final = 300
COMMAND_SECONDS: Final = 3_600
PLACEHOLDER: Final = re.compile(r"\$?(?:\{\{\s*(\w+)\s*\}\}|\{\s*(\w+)\s*\})")


class RecordOptions(Struct, frozen=True, kw_only=True):
    """The options of the command.

    Attributes:
        cases: files with cases.
        case_ids: which cases of the files; without files, the id of the only case.
        redact: regular expressions of what to keep out of the recording.
        requests: folder with requests and responses; empty for one next to ``out``.
        is_injected: whether Python and Node programs also send the spans of what is installed.
        replay: how to answer from that folder; None to ask the models and write it.
        timeout: seconds after which a case is stopped, or ``none``; empty for the default.
        answer: what the answer of a case is; None for what was recorded before, else as in
            ``RecordOrder.answers``.
    """

    command: tuple[str, ...]
    out: str
    cases: tuple[str, ...] = ()
    case_ids: tuple[str, ...] = ()
    jobs: int = 1
    redact: tuple[str, ...] = ()
    requests: str = ""
    is_injected: bool = True
    replay: ReplayMode | None = None
    timeout: str = ""
    answer: AnswerSource | None = None


class Recording(Struct, frozen=True, kw_only=True):
    """What was recorded.

    Attributes:
        file: with the traces, as shown to users; if the recording failed, `agentci run` reads
            another file instead, see ``name_failed_recording``.
        problems: cases that are not complete, commands that failed, and invalid input.
    """

    file: str
    problems: tuple[Problem, ...]
    exit_code: int


def record_agent(options: RecordOptions, environ: Mapping[str, str], session: Session) -> int:
    """Run the command, write its recording and show it; the exit code says if it is complete.

    Args:
        environ: the environment of the command.

    Raises:
        InputError: an option or the file of cases is invalid, or the command cannot be started.
    """
    recording = make_recording(options, environ, session)
    if recording.exit_code == EXIT_INVALID_INPUT:
        raise InputError(recording.problems)
    return recording.exit_code


def make_recording(
    options: RecordOptions,
    environ: Mapping[str, str],
    session: Session,
    *,
    shares_terminal: bool = True,
) -> Recording:
    """Run the command, write its recording and show it.

    One that fails is noted for `agentci run`; invalid options and files leave everything as it was.

    Args:
        shares_terminal: whether a single command without an input keeps stdin and the terminal.

    Raises:
        InputError: the recording cannot be written.
    """
    workspace = session.services.workspace
    path = find_recording_path(options.out, workspace)
    try:
        return _make_recording(options, environ, session, path, shares_terminal=shares_terminal)
    except InputError as error:
        name = workspace.display_path(path.path)
        return Recording(file=name, problems=error.problems, exit_code=EXIT_INVALID_INPUT)


@contextmanager
def _noting_failure(order: RecordOrder, path: ResolvedPath, workspace: Workspace) -> Iterator[None]:
    """Note for `agentci run` that a recording failed, such as a command that cannot be started.

    Args:
        path: of the recording.
    """
    try:
        yield
    except Exception as error:
        problems = error.problems if isinstance(error, InputError) else ()
        reason = _describe_problems(problems) or "it ended with a bug of agentci"
        note_failed_recording(path, reason, order.cases, workspace, order.redactor)
        raise


def _describe_problems(problems: Sequence[Problem]) -> str:
    """Return the first problem with its place, and how many more there are."""
    if not problems:
        return ""
    place = problems[0].place
    where = "" if place in (None, COMMAND_LINE) else f"{place}: "
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{where}{problems[0].message}{more}"


def _make_recording(
    options: RecordOptions,
    environ: Mapping[str, str],
    session: Session,
    path: ResolvedPath,
    *,
    shares_terminal: bool,
) -> Recording:
    services = session.services
    workspace, interruption = services.workspace, services.interruption
    _check_command(options, session)
    cases = _find_cases(options, workspace)
    name = workspace.display_path(path.path)
    folder = _find_requests_folder(options, workspace)
    recorded = None if options.replay is None else read_requests(folder, workspace)
    earlier = _read_earlier(options, path, workspace)
    writer = RecordingWriter(
        path,
        workspace,
        part=[each.id for each in cases] if options.case_ids else None,
        needs_all=options.replay is not None,
        earlier=earlier,
    )

    def keep(found: RecordedCase) -> None:
        writer.add(found.lines, has_runs=bool(found.source), is_complete=found.is_complete)
        if options.replay is None and found.requests:
            # Those of a complete run stay, so that it can be replayed.
            is_kept = bool(found.incomplete)
            write_requests(folder, found.case, found.requests, workspace, keeps_older=is_kept)

    interruption.is_immediate_allowed = False
    order = RecordOrder(
        command=options.command,
        cases=cases,
        jobs=options.jobs,
        environ=environ,
        redactor=RecordingRedactor(services.variables.redactor, options.redact),
        recorded=recorded,
        answers=_find_answer_sources(options, cases, earlier),
        shares_terminal=shares_terminal,
        fallback=options.replay == "fallback",
        is_injected=options.is_injected,
        report=lambda text: write_to_stream(f"{escape_for_log_line(text)}\n", services.err),
        is_stopped=interruption.is_requested,
        timeout=_parse_timeout(options.timeout, has_cases=bool(options.cases)),
    )
    with closing(writer), _noting_failure(order, path, workspace):
        found = record(order, keep)
        if options.replay is not None:
            found = _keep_equal_runs(found, earlier)
        unstarted = _find_kept_cases(found, earlier)
        found = tuple(each for each in found if each.case not in unstarted)
        outcome = _finish_file(writer, found, earlier, order.redactor, is_part=bool(unstarted))
    is_whole = outcome == "written" and not options.case_ids and not unstarted
    if options.replay is None and any(each.requests for each in found) and is_whole:
        remove_other_cases(folder, [each.case for each in found])
    removed = _list_removed(earlier, found) if is_whole else []
    restored = () if options.replay is None else find_restored(found, earlier, name)
    show_recording(
        found,
        name,
        session,
        changes=(*restored, *describe_removed(removed, name), *describe_kept(unstarted, name)),
        outcome=outcome,
        failed=workspace.display_path(name_failed_recording(path.path)),
    )
    number = interruption.signal_number
    return Recording(
        file=name,
        problems=(
            *(problem for _, listed in list_problems(found) for problem in listed),
            *find_ignored_inputs(found),
            *restored,
        ),
        exit_code=_find_exit_code(found) if number is None else 128 + number,
    )


def _finish_file(
    writer: RecordingWriter,
    found: Sequence[RecordedCase],
    earlier: EarlierRecording,
    redactor: RecordingRedactor,
    *,
    is_part: bool,
) -> FileOutcome:
    """Write the lines of all cases.

    If a command without cases came to nothing, its error is that of all runs of the file: it does
    not tell which of them it would have recorded.

    Args:
        is_part: whether the other cases of the file stay.
    """
    if is_part:
        writer.limit([each.case for each in found])
    lines: Sequence[str] = [line for each in found for line in each.lines]
    has_runs = any(each.source for each in found)
    unnamed = next((each for each in found if not each.case and each.lines), None)
    if unnamed is not None and not has_runs and (runs := earlier.list_runs()):
        reason, stamp = unnamed.incomplete, CaseStamp()
        lines = mark_incomplete(runs, reason, stamp, seed=b"", redact=redactor.redact)
    return writer.finish(
        lines,
        has_runs=has_runs,
        is_complete=[each.is_complete for each in found if each.lines],
    )


def _find_answer_sources(
    options: RecordOptions, cases: Sequence[RecordCase], earlier: EarlierRecording
) -> Mapping[str, AnswerSource]:
    """Return what the answer of each case is, as the user chose now, or as it was recorded."""
    if options.answer is not None:
        return {case.id: options.answer for case in cases}
    known = earlier.list_answer_sources()
    if options.replay is not None:
        return known
    # An agent that now prints something else than the model's answer is to be noticed.
    return {each.id: "stdout" for each in cases if each.input and known.get(each.id) == "stdout"}


def _check_command(options: RecordOptions, session: Session) -> None:
    """Check that there is a command, and an input for its ``{input}``.

    Raises:
        InputError: there is not.
    """
    if not options.command:
        hint = "write it after `--`, as in `agentci record -- python agent.py`"
        raise InputError.from_message("no command to record", hint=hint)
    if COMMAND_PLACEHOLDER in options.command:
        message = f"{COMMAND_PLACEHOLDER} is not a command"
        hint = f"replace {COMMAND_PLACEHOLDER} by the command that runs your agent"
        place = find_placeholder(session.workflow.context.workflow_path, session.services.workspace)
        raise InputError.from_message(message, place=place, hint=hint)
    if options.command[0].startswith("-"):
        message = f"the command begins with the option `{options.command[0]}`"
        raise InputError.from_message(message, hint="write options of `record` before `--`")
    if mistaken := _find_mistaken_placeholder(options):
        message = f"unknown placeholder `{mistaken}` in the command"
        raise InputError.from_message(message, hint=f"did you mean `{INPUT_PLACE}`?")
    if options.answer == "stdout" and not options.cases:
        message = "--answer stdout needs cases, as a process may print several answers"
        raise InputError.from_message(message, hint="add --cases FILE")
    if not options.cases and any(INPUT_PLACE in word for word in options.command):
        message = f"`{INPUT_PLACE}` in the command needs cases"
        hint = f"add --cases FILE, or write the input itself instead of `{INPUT_PLACE}`"
        raise InputError.from_message(message, hint=hint)


def find_placeholder(workflow: str, workspace: Workspace) -> Place | None:
    """Find the line of a workflow that still has the placeholder for the command of the agent.

    Args:
        workflow: path of its file in the repository.
    """
    path = workspace.root / workflow
    if not workflow or not is_file(path):
        return None
    with suppress(InputError):
        resolved = workspace.resolve_given(path)
        text = read_file(resolved, name=workflow, limit_bytes=MAX_WORKFLOW_BYTES).decode(
            "utf-8", "replace"
        )
        for number, line in enumerate(text.splitlines(), start=1):
            if PLACEHOLDER_LINE.search(line):
                return Place(file=workflow, line=number)
    return None


def _parse_timeout(text: str, *, has_cases: bool) -> float | None:
    """Return seconds; None for no limit.

    Args:
        text: empty for the default.
        has_cases: whether the command runs once per case.
    """
    if text == "none":
        return None
    default = CASE_SECONDS if has_cases else COMMAND_SECONDS
    seconds = parse_seconds(text) if text else default
    if seconds is not None:
        return seconds or None
    message = f"the time limit of a case is not a time: {quote_name(text)}"
    hint = "write `30s`, `5m`, a number of seconds, or `none`"
    raise InputError.from_message(message, hint=hint)


def _find_mistaken_placeholder(options: RecordOptions) -> str:
    """Return what stands in the command where ``{input}`` was probably meant; else empty."""
    found = [each for word in options.command for each in PLACEHOLDER.finditer(word)]
    for each in found:
        name = each[1] or each[2]
        # `${inputs}` is a variable of a shell.
        is_meant = name == INPUT_NAME if each[0][0] == "$" else find_nearest(name, [INPUT_NAME])
        if is_meant and each[0] != INPUT_PLACE:
            return each[0]
    if not options.cases or any(each[0] == INPUT_PLACE for each in found):
        return ""
    # A whole word of a command that does not take the input elsewhere, such as `{question}`.
    words = (each[0] for each in found if each[0] == each.string and each[0][0] != "$")
    return next(words, "")


def _read_earlier(
    options: RecordOptions, path: ResolvedPath, workspace: Workspace
) -> EarlierRecording:
    """Read the file as it is; one that is replaced need not be readable.

    Raises:
        InputError: it cannot be read, although its other cases or equal runs stay.
    """
    try:
        with limit_input(workspace.display_path(path.path)):
            return EarlierRecording.read(path, workspace)
    except InputError:
        if options.case_ids or options.replay is not None:
            raise
        return EarlierRecording()


def _list_removed(earlier: EarlierRecording, found: Sequence[RecordedCase]) -> list[str]:
    """Return the cases of an earlier recording that have none of the lines."""
    known = EarlierRecording([line for each in found for line in each.lines]).list_cases()
    return [each for each in earlier.list_cases() if each not in known]


def _find_kept_cases(found: Sequence[RecordedCase], earlier: EarlierRecording) -> frozenset[str]:
    """Return the cases that keep their earlier run, as a signal came before they started."""
    unstarted = {each.case for each in found if not each.is_started}
    return frozenset(unstarted.intersection(earlier.list_cases()) if unstarted else ())


def _keep_equal_runs(
    found: Sequence[RecordedCase], earlier: EarlierRecording
) -> tuple[RecordedCase, ...]:
    """Return cases with their earlier lines where a replay came to the same; mark the others.

    A replay has new ids, and times that say nothing of the model. A case whose calls all went to
    the model is new.
    """
    marks = {semconv.REPLAYED: "true"}
    names = [each.case for each in found]
    kept: list[RecordedCase] = []
    for each in found:
        own = earlier.select(each.case) if each.case else earlier.select_others(names)
        is_new = bool(each.forwarded) and not each.answered
        is_equal = bool(own) and bool(each.lines) and are_equal_runs(own, each.lines)
        marked = mark_lines(each.lines, marks if each.answered else {})
        kept.append(replace(each, lines=tuple(own) if is_equal and not is_new else marked))
    return tuple(kept)


def _find_cases(options: RecordOptions, workspace: Workspace) -> tuple[RecordCase, ...]:
    if not options.cases:
        if len(options.case_ids) > 1:
            message = "--case may be given several times only with --cases"
            raise InputError.from_message(message, hint="remove one of them")
        named = tuple(RecordCase(id=each, input=None) for each in options.case_ids)
        return named or (NO_CASE,)
    found: dict[str, RecordCase] = {}
    needs_input = any(INPUT_PLACE in word for word in options.command)
    for given in options.cases:
        path = workspace.resolve_given(Path(given), named=f"--cases {given}")
        _check_cases_file(path, given)
        name = workspace.display_path(path.path)
        with limit_input(name):
            data = read_file(path, name=name, limit_bytes=MAX_CASES_BYTES)
            read = read_cases(data, file=name, needs_input=needs_input)
        folded = {fold_id(each): each for each in found}
        if twice := [case.id for case in read if fold_id(case.id) in folded]:
            own, other = twice[0], folded[fold_id(twice[0])]
            message = f"{name}: another file has a case {quote_name(own)}, too"
            if own != other:
                message = f"{name}: {describe_equal_ids(own, other)}"
            raise InputError.from_message(message, hint=OWN_ID_HINT)
        found |= {case.id: case for case in read}
    files = ", ".join(options.cases)
    chosen = choose_cases(tuple(found.values()), options.case_ids, file=files)
    lacking = next((case for case in chosen if not case.input), None)
    if options.answer == "stdout" and lacking is not None:
        _refuse_printed_answer(lacking)
    return chosen


def _refuse_printed_answer(case: RecordCase) -> NoReturn:
    name = quote_name(case.id)
    if case.turns:
        turns = format_count(len(case.turns), "turn")
        message = f"--answer stdout records one answer, and {name} is a conversation of {turns}"
        hint = (
            "record conversations by themselves, without --answer stdout and with --case ID: their "
            "answers are then the model's"
        )
        raise InputError.from_message(message, hint=hint)
    message = f"--answer stdout needs cases with an input, and {name} has none"
    raise InputError.from_message(message, hint="leave it out, or add its `input`")


def _check_cases_file(path: ResolvedPath, given: str) -> None:
    """Check that there is a file, with an error that names the option instead of a line."""
    if is_folder(path.path):
        raise InputError.from_message(f"--cases {given} is a folder", hint="name a file in it")
    if not os.path.lexists(path.path):
        message = f"--cases {given} does not exist"
        raise InputError.from_message(message, hint="check the name of the file")


def _find_requests_folder(options: RecordOptions, workspace: Workspace) -> ResolvedPath:
    given = Path(options.requests or Path(options.out).with_suffix(REQUESTS_SUFFIX))
    found = workspace.resolve_given(given, named=f"--requests {given}")
    if is_file(found.path):
        message = f"--requests {given} is a file"
        raise InputError.from_message(message, hint="name a folder for the requests")
    return found


def _find_exit_code(found: Sequence[RecordedCase]) -> int:
    if any(each.summary.missing or each.incomplete for each in found):
        return EXIT_INCOMPLETE
    return EXIT_FAILED if any(each.end.code for each in found) else 0
