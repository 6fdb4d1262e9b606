"""What `agentci record` prints: what it recorded, the problems, and what may help."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from agentci._util.files import write_to_stream
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count
from agentci._util.text.truncate import short, truncate_list
from agentci.cli.session import Session
from agentci.errors import RecordingError
from agentci.model.trace import OTHER_OUTPUT, OTHER_TELEMETRY, PRINTED_KEY
from agentci.model.values import Place, Problem, hint_at_show, replace
from agentci.record.agent_process import INPUT_VARIABLE, find_last_line
from agentci.record.otlp_receiver import TOO_MANY_SPANS
from agentci.record.record_order import INPUT_NAME, INPUT_PLACE
from agentci.record.recorded_case import NONE_MADE, RecordedCase
from agentci.record.recording_file import EarlierRecording, FileOutcome
from agentci.record.replay import REPEATED
from agentci.recordings.printed_lines import is_changed_output
from agentci.reports.groups_and_totals import MAX_NAMES, format_problem

UNREAD_HINT: Final = (
    f"the command has no `{INPUT_PLACE}` and read nothing from stdin: add `{INPUT_PLACE}` to it, "
    f"unless the agent reads {INPUT_VARIABLE}"
)
READ_INPUT_HINT: Final = (
    f"add `{INPUT_PLACE}` to the command, or read the input from stdin or {INPUT_VARIABLE}"
)
ADD_INPUT_HINT: Final = "add it to the file of cases, unless they are runs of one question"
NO_CALLS: Final = "no model call reached the recorder"
URL_HINT: Final = (
    "the agent must read its base URL from OPENAI_BASE_URL, OPENAI_API_BASE, ANTHROPIC_BASE_URL, "
    "GOOGLE_GEMINI_BASE_URL or AZURE_OPENAI_ENDPOINT, for example "
    '`OpenAI(base_url=os.environ["OPENAI_BASE_URL"])`'
)
SPANS_HINT: Final = (
    "install the instrumentation of the agent's framework, whose spans are recorded, or export "
    "OpenTelemetry"
)
QUESTION_HINT: Final = (
    "add the question to the command if the agent needs one, or ask several with --cases FILE"
)
REPLAY_HINT: Final = "record again with a key if the change is wanted, or use --replay=fallback"
UNSENT_HINT: Final = "remove the case if the agent is meant to call no model"
REPEAT_HINT: Final = "check why the agent does not end"
TURNS_HINT: Final = (
    f"let the agent ask each argument of `{INPUT_PLACE}`, a word of its own, or each line of "
    "stdin, in one conversation"
)
OUTPUT_LINES: Final = 10
MAX_QUESTION: Final = 80
MAX_REQUESTS: Final = 3
NO_INPUT_HINT: Final = (
    f"the case has no `{INPUT_NAME}`, so stdin is empty and {INPUT_VARIABLE} not set"
)
NO_ANSWER_HINT: Final = "check that the agent ends with an answer of the model"
ONE_CASE_HINT: Final = "with --case ID, a recording keeps its other cases"
ANSWER_HINT: Final = (
    "--answer stdout records what the command prints, --answer model drops this warning"
)
PRINTED_HINT: Final = "--answer model ignores what they print"
MORE_HINT: Final = "--answer stdout makes all of it the answer"
CHANGED_HINT: Final = "if the change is wanted, record again without --replay"
KEY_HINT: Final = "print no keys"
PRINT_HINT: Final = "print the answer, or pass --answer model"
RESTORED_HINT: Final = "record again, or replay and commit the restored file"
FEWER_CASES_HINT: Final = "record fewer cases at once"


def show_recording(
    found: Sequence[RecordedCase],
    file: str,
    session: Session,
    *,
    changes: Sequence[Problem],
    outcome: FileOutcome,
    failed: str,
) -> None:
    """Print what came in as `agentci show` does, how much it is, and the problems.

    Args:
        changes: warnings about cases that the file had before.
        failed: file that was written instead if the recording failed.
    """
    if any(each.source for each in found):
        from agentci.cli.commands.show import format_recording  # noqa: PLC0415 (after the agent)

        content = "\n".join(line for each in found for line in each.lines)
        try:
            written = failed if outcome == "kept" else file
            shown = format_recording(content.encode(), written, session)
        except RecordingError as error:  # as a case without a complete turn says, too
            shown = f"{escape_for_log_line(str(error.problem))}\n"
        write_to_stream(f"{shown}\n", session.out)
    summary = _format_summary(found, file, outcome, failed=failed)
    write_to_stream(f"{escape_for_log_line(summary)}\n", session.out)
    outputs: set[str] = set()
    problems = "".join(_format_problems(*each, outputs) for each in list_problems(found))
    ignored = (escape_for_log_line(format_problem(each)) for each in find_ignored_inputs(found))
    problems += "".join(f"{line}\n" for line in ignored)
    others = (
        escape_for_log_line(format_problem(each))
        for each in (*_find_answers(found), *_find_other_values(found), *changes)
    )
    problems += "".join(f"{line}\n" for line in others)
    write_to_stream(problems, session.services.err)


def _format_summary(
    found: Sequence[RecordedCase], name: str, outcome: FileOutcome, *, failed: str
) -> str:
    turns = sum(each.summary.turns for each in found)
    calls = sum(each.model_calls for each in found)
    tools = sum(each.summary.tool_calls for each in found)
    counts = [
        format_count(turns, "turn"),
        format_count(tools, "tool call"),
        format_count(calls, "model call"),
    ]
    if any(each.case for each in found):
        counts.insert(0, format_count(sum(bool(each.case) for each in found), "case"))
    sources = Counter(each.source for each in found if each.source)
    where = f"Recorded to {name}" if sources else "Nothing recorded"
    if outcome == "kept":
        where = f"Recording failed, {name} is unchanged"
    text = f"{where}: {', '.join(counts)}{_format_sources(sources)}"
    if forwarded := sum(each.forwarded for each in found):
        text += f"; {forwarded:,} of them went to the model, as the recording lacks them"
    incomplete = sum(bool(each.incomplete) for each in found)
    if incomplete and outcome != "none":
        text += (
            f"; {format_count(incomplete, 'incomplete run')}, reported as errors by `agentci run`"
        )
    if outcome in ("kept", "failed"):
        text += f"; {hint_at_show(failed)}"
    return text


def _format_sources(sources: Counter[str]) -> str:
    """Format what the traces are from: `` (proxy 2 cases, injected telemetry 1 case)``."""
    if len(sources) < 2:  # noqa: PLR2004 (one source needs no counts)
        return "".join(f" (from the {source})" for source in sources)
    counts = (f"{source} {format_count(n, 'case')}" for source, n in sources.most_common())
    return f" (from the {', '.join(counts)})"


def list_problems(
    found: Sequence[RecordedCase],
) -> list[tuple[RecordedCase, list[Problem]]]:
    """Return the problems of each case; a hint only once, as that of a crash is long."""
    hints: set[str] = set()
    listed: list[tuple[RecordedCase, list[Problem]]] = []
    for each in found:
        own: list[Problem] = []
        for problem in _find_problems(each):
            is_known = problem.hint in hints
            own.append(replace(problem, hint=None) if is_known else problem)
            hints.add(problem.hint or "")
        listed.append((each, own))
    return listed


def _format_problems(found: RecordedCase, problems: Sequence[Problem], outputs: set[str]) -> str:
    """Format the problems of a case, and below them the last lines that its command printed.

    Args:
        outputs: what was printed for other cases, which is not repeated.
    """
    lines = [escape_for_log_line(format_problem(each)) for each in problems]
    printed = found.output.strip().splitlines()[-OUTPUT_LINES:]
    # The message of a crash has the last line.
    is_shown = found.has_activity or len(printed) > 1
    if found.end.code and is_shown and found.output not in outputs:
        outputs.add(found.output)
        lines += [f"  {escape_for_log_line(line)}" for line in printed]
    return "".join(f"{line}\n" for line in lines)


def _find_problems(found: RecordedCase) -> Iterator[Problem]:
    """Yield why a case is not complete, that its command failed, and where its traces are from."""
    name = f"case {found.case}: " if found.case else ""
    if found.reason:
        yield Problem(message=f"{name}recorded from the {found.reason}", severity="note")
    for error in found.injection_errors:
        yield Problem(message=f"{name}injection failed: {error}", severity="note")
    if found.misses:
        hint = REPEAT_HINT if found.misses[0].startswith(REPEATED) else REPLAY_HINT
        yield Problem(message=f"{name}{found.misses[0]}", hint=hint)
    elif found.end.code and not found.has_activity:
        line = find_last_line(found.output)
        message = f"{name}the command {found.end.describe()} before it called a model"
        message += f": {line}" if line else ""
        yield Problem(message=message, hint=_explain_crash(found))
        return
    elif found.summary.missing and found.end.code is not None:
        why, _, hint = _explain(found).partition("; ")
        yield Problem(message=f"{name}no complete turn: {why}", hint=hint or None)
    if found.end.code:
        after = f" after the model {found.open_call}" if found.open_call else ""
        yield Problem(message=f"{name}the command {found.end.describe()}{after}")
    if found.turns_problem:
        yield Problem(message=f"{name}{found.turns_problem}", hint=TURNS_HINT)


def find_ignored_inputs(found: Sequence[RecordedCase]) -> tuple[Problem, ...]:
    """Return that all cases asked the same, if they did; without inputs, that may be meant."""
    ignoring = [each for each in found if each.ignores_input]
    lacking = [each for each in found if each.lacks_input and each.question]
    is_same = len({each.question for each in lacking}) == 1 < len(lacking)
    if not ignoring and not is_same:
        return ()
    same = ignoring or lacking
    question = short(" ".join(same[0].question.split()), MAX_QUESTION)
    number = format_count(len(same), "case")
    if ignoring:
        message = f"{number} sent the same question, not their inputs: `{question}`"
        return (Problem(message=message, hint=READ_INPUT_HINT),)
    message = f"{number} without `{INPUT_NAME}` sent the same question: `{question}`"
    return (Problem(message=message, hint=ADD_INPUT_HINT, severity="warning"),)


def describe_removed(removed: Sequence[str], file: str) -> Iterator[Problem]:
    """Yield which cases the file no longer has, if any."""
    if removed:
        names = ", ".join(truncate_list(removed, MAX_NAMES))
        message = f"{file} no longer has {format_count(len(removed), 'recorded case')}: {names}"
        yield Problem(message=message, hint=ONE_CASE_HINT, severity="warning")


def describe_kept(cases: Collection[str], file: str) -> Iterator[Problem]:
    """Yield which cases were not started and keep their earlier run, if any."""
    if cases:
        names = ", ".join(truncate_list(sorted(cases), MAX_NAMES))
        message = f"{format_count(len(cases), 'case')} ({names}) did not start: {file} keeps"
        message += " the earlier recording" + ("" if len(cases) == 1 else "s")
        yield Problem(message=message, severity="note")


def find_restored(
    found: Sequence[RecordedCase], earlier: EarlierRecording, file: str
) -> tuple[Problem, ...]:
    """Return that a replay came to complete runs which the file does not have, if it did.

    The responses are older than the incomplete runs, and may not be what the model answers now.
    """
    incomplete = earlier.list_incomplete_cases()
    restored = [each for each in found if each.is_complete and each.case in incomplete]
    if not restored:
        return ()
    message = f"the recording of {_name_cases(restored)} failed; the replay has an earlier one's"
    message += " responses"
    place = Place(file=file)
    return (Problem(message=message, place=place, hint=RESTORED_HINT, severity="warning"),)


def _find_answers(found: Sequence[RecordedCase]) -> Iterator[Problem]:
    """Yield which answers are now what the command prints, and where it prints more than that."""
    chosen = [each for each in found if each.prints_answer]
    more = [each for each in found if each.prints_more]
    if chosen:
        message = f"the answer of {_name_cases(chosen)} is what the command prints, also in replays"
        yield Problem(message=message, hint=PRINTED_HINT, severity="note")
    if more:
        message = (
            f"the answer of {_name_cases(more)} is the model's; anything else that the "
            "command prints is only compared with the recording and the baseline"
        )
        is_single = all(each.asked and each.summary.turns == 1 for each in more)
        yield Problem(message=message, hint=MORE_HINT if is_single else None, severity="note")


def _name_cases(found: Sequence[RecordedCase]) -> str:
    names = [each.case for each in found if each.case]
    if not names:
        return "the run"
    return f"{format_count(len(found), 'case')} ({', '.join(truncate_list(names, MAX_NAMES))})"


def _find_other_values(found: Sequence[RecordedCase]) -> Iterator[Problem]:
    """Yield the first warning of each kind about answers and arguments, with the other cases."""
    listed = [(each.case, text) for each in found for text in each.warnings]
    hints: tuple[tuple[Callable[[str], bool], str | None], ...] = (
        (lambda text: text.startswith(PRINTED_KEY), KEY_HINT),
        (is_changed_output, CHANGED_HINT),
        (lambda text: text.startswith(OTHER_OUTPUT), ANSWER_HINT),
        (lambda text: text.startswith(OTHER_TELEMETRY), None),
    )
    for is_kind, hint in hints:
        warned = [(case, text) for case, text in listed if is_kind(text)]
        listed = [each for each in listed if each not in warned]
        if warned:
            case, text = warned[0]
            more = f" ({format_count(len(warned) - 1, 'more warning')})" if len(warned) > 1 else ""
            message = f"{f'case {case}: ' if case else ''}{text}{more}"
            yield Problem(message=message, hint=hint, severity="warning")


def _explain_crash(found: RecordedCase) -> str:
    """Return what may help a command that failed before it called a model."""
    hints: list[str] = []
    if found.end.limit is not None:
        hints.append("raise --timeout if the agent needs longer")
    elif found.other_requests:
        hints.append(f"it sent only {', '.join(found.other_requests[:MAX_REQUESTS])}")
    elif found.unrecorded:
        hints.append(f"if it did call one, {found.unrecorded}; {SPANS_HINT}")
    else:
        if found.lacks_input and INPUT_VARIABLE in found.output:
            hints.append(NO_INPUT_HINT)
        elif found.is_input_unread and not _names_key(found):
            hints.append(UNREAD_HINT)
        if found.unset_keys:
            doubt = "" if _names_key(found) else "if it needs a key, "
            hints.append(f"{doubt}{_explain_keys(found)}")
    return "; ".join(hints) or f"correct the command; if it did call one, {URL_HINT}"


def _explain(found: RecordedCase) -> str:
    """Return why a case has no complete turn, and what may help."""
    if found.failure:
        return found.failure
    return _explain_turns(found) if found.has_activity else _explain_no_calls(found)


def _explain_turns(found: RecordedCase) -> str:
    hint = NO_INPUT_HINT if found.lacks_input and not found.question else NO_ANSWER_HINT
    if found.summary.missing.startswith(OTHER_OUTPUT):
        hint = PRINT_HINT
    if found.summary.missing == TOO_MANY_SPANS:
        hint = FEWER_CASES_HINT
    return f"{found.summary.missing}; {hint}"


def _explain_no_calls(found: RecordedCase) -> str:
    if found.summary.missing.endswith(NONE_MADE):
        return f"{found.summary.missing}; {UNSENT_HINT}; otherwise, {URL_HINT}"
    if found.other_requests:
        return f"the agent asked no model, only {', '.join(found.other_requests[:MAX_REQUESTS])}"
    if found.unrecorded:
        return f"{NO_CALLS}; {found.unrecorded}; {SPANS_HINT}; otherwise, {URL_HINT}"
    hints = [NO_CALLS]
    if not found.case:
        hints.append(QUESTION_HINT)
    is_unread = found.is_input_unread and not _names_key(found)
    if is_unread:
        hints.append(UNREAD_HINT)
    if found.unset_keys:
        hints.append(_explain_keys(found))
    hints.append(f"{'otherwise, ' if is_unread else ''}{URL_HINT}")
    return "; ".join(hints)


def _names_key(found: RecordedCase) -> bool:
    """Whether the command printed the name of a variable whose key is not set."""
    return any(name in found.output for name in found.unset_keys)


def _explain_keys(found: RecordedCase) -> str:
    names = " or ".join(found.unset_keys)
    return f"{names} is not set: set the key of the model, or use --replay"
