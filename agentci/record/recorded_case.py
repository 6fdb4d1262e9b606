"""The cases to record, from JSON Lines, YAML or an ADK eval set, and what was recorded of a case.

That includes whether a recorded case can be evaluated.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final, cast

from msgspec import Struct

from agentci._util.files import SpooledChunks
from agentci._util.text.format import format_count
from agentci._util.text.json_document import JSON_TYPE_NAMES
from agentci._util.text.json_text import dumps_compact
from agentci._util.text.suggest import find_nearest, quote_name, suggest_name
from agentci.config.yaml_document import read_tree
from agentci.config.yaml_nodes import MappingNode, SequenceNode, find_first, plain_data
from agentci.errors import InputError, RecordingError
from agentci.model.trace import RunSpan, ToolCall, Trace, Turn
from agentci.model.values import Json, JsonObject, Place, Problem, replace
from agentci.record.printed_answer import (
    describe_other_answers,
    describe_other_arguments,
)
from agentci.record.write_spans import list_marks
from agentci.recordings.adk_eval_set import read_eval_set
from agentci.recordings.json_documents import read_documents
from agentci.recordings.registry import read_recording
from agentci.recordings.telemetry.conversion import convert_to_trace
from agentci.recordings.telemetry.grouping import group_traces
from agentci.recordings.telemetry.stored_trace import StoredTrace

YAML_SUFFIXES: Final = (".yaml", ".yml")
EXAMPLE: Final = '{"id": "refund", "input": "Can I return it?"}'
OWN_ID_HINT: Final = "give each case an id of its own"
HINT: Final = f"a case is an object such as {EXAMPLE}"
MAX_ID: Final = 200
# Each case is a process of its own.
MAX_CASES: Final = 10_000
# Linux starts no process with an argument or a variable of 128 KiB.
MAX_INPUT_BYTES: Final = 100 * 1024


class RecordCase(Struct, frozen=True, kw_only=True):
    """A case to record.

    Attributes:
        id: unique in the file; its position if the file gives none.
        input: what the agent is asked; None for a conversation, or if only the command knows.
        is_named: whether the file gives the id.
        turns: what the user writes in each turn of a conversation; else empty.
    """

    id: str
    input: str | None
    is_named: bool = True
    turns: tuple[str, ...] = ()

    @property
    def text(self) -> str | None:
        """The input, or a line for each turn; None without both."""
        lines = "".join(f"{' '.join(turn.splitlines())}\n" for turn in self.turns)
        return lines or self.input


def read_cases(data: bytes, *, file: str, needs_input: bool = False) -> tuple[RecordCase, ...]:
    """Read a file with cases; other keys than ``id`` and ``input`` are for other tools.

    Args:
        needs_input: whether the command asks for the input of each case.

    Raises:
        InputError: with a problem for each invalid case, or if there are none or too many.
    """
    cases: dict[str, RecordCase] = {}
    folded: dict[str, str] = {}
    problems: list[Problem] = []
    for number, (value, place) in enumerate(_read_items(data, file), start=1):
        if number > MAX_CASES:
            message, hint = f"more than {MAX_CASES:,} cases", "split the file"
            raise InputError.from_message(message, place=place, hint=hint)
        case = _read_case(value, number)
        if isinstance(case, RecordCase) and not (case.text or "").strip():
            case = _describe_missing_input(value, number, is_needed=needs_input) or case
        if isinstance(case, str):
            problems.append(Problem(message=case, place=place, hint=HINT))
        elif other := folded.get(fold_id(case.id)):
            message = describe_equal_ids(case.id, other)
            problems.append(Problem(message=message, place=place, hint=OWN_ID_HINT))
        else:
            cases[case.id] = case
            folded[fold_id(case.id)] = case.id
    if not problems and not cases:
        problems.append(Problem(message="no cases", place=Place(file=file), hint=HINT))
    if problems:
        raise InputError(problems)
    return tuple(cases.values())


def fold_id(case: str) -> str:
    """Return an id in the form that must be unique: some systems ignore the case of file names."""
    return case.casefold()


def describe_equal_ids(case: str, other: str) -> str:
    """Describe an id that equals another, perhaps except for upper and lower case."""
    if case == other:
        return f"duplicate id {quote_name(case)}"
    return (
        f"id {quote_name(case)} differs from {quote_name(other)} only in upper and lower case: "
        "their requests would be one file on some systems"
    )


def _read_items(data: bytes, file: str) -> Iterator[tuple[Json, Place]]:
    if PurePath(file).suffix.lower() in YAML_SUFFIXES:
        return _read_yaml_cases(data, file)
    return _read_eval_cases(data, file) if _is_eval_set(data) else _read_json_cases(data, file)


def choose_cases(
    cases: Sequence[RecordCase], names: Sequence[str], *, file: str
) -> tuple[RecordCase, ...]:
    """Return the cases with these ids; all without names.

    Raises:
        InputError: there is no case with one of the ids.
    """
    known = {case.id: case for case in cases}
    if unknown := [name for name in names if name not in known]:
        message = f"{file} has no case {quote_name(unknown[0])}"
        hint = suggest_name(unknown[0], [*known]) or f"its cases are {', '.join(known)}"
        raise InputError.from_message(message, hint=hint)
    return tuple(known[name] for name in dict.fromkeys(names)) if names else tuple(cases)


def _read_json_cases(data: bytes, file: str) -> Iterator[tuple[Json, Place]]:
    try:
        for document in read_documents(iter([data.removeprefix(BOM_UTF8)]), file=file):
            place = Place(file=file, line=document.line)
            listed = document.value if isinstance(document.value, list) else [document.value]
            yield from ((value, place) for value in listed)
    except RecordingError as error:
        message = error.problem.message
        raise InputError.from_message(message, place=error.problem.place, hint=HINT) from None


def _is_eval_set(data: bytes) -> bool:
    """Return whether JSON looks like an ADK eval set, or its older format with queries."""
    start = data.removeprefix(BOM_UTF8).lstrip()[:1]
    return (start == b"{" and b'"eval_cases"' in data) or (start == b"[" and b'"query"' in data)


def _read_eval_cases(data: bytes, file: str) -> Iterator[tuple[Json, Place]]:
    for case in read_eval_set(data, file=file).cases:
        yield (
            {"id": case.id, "turns": [{"input": turn.user_text} for turn in case.turns]},
            case.place,
        )


def _read_yaml_cases(data: bytes, file: str) -> Iterator[tuple[Json, Place]]:
    root, problems = read_tree(data, file=file, content_hint=HINT)
    if errors := [each for each in problems if each.severity == "error"]:
        raise InputError(errors)
    listed = find_first(root, ("cases", "eval_cases")) if isinstance(root, MappingNode) else root
    if not isinstance(listed, SequenceNode):
        message = "found no list of cases"
        raise InputError.from_message(message, place=root.place, hint=HINT)
    yield from ((plain_data(each), each.place) for each in listed.items)


def _describe_missing_input(value: Json, number: int, *, is_needed: bool) -> str:
    """Describe a case without an input, and suggest the key that was probably meant.

    Args:
        is_needed: whether the command has ``{input}``; else only a misspelled key is an error.
    """
    found = ""
    if isinstance(value, Mapping):
        if value.get("input") is not None:
            return f"`input` of case {number} is empty" if is_needed else ""
        if is_needed and value.get("turns"):
            return f"not every turn of case {number} has an `input`"
        others = (key for key, given in value.items() if key != "input" and isinstance(given, str))
        found = next((key for key in others if find_nearest(key, ["input"])), "")
    meant = f"; did you mean `input` instead of `{found}`?" if found else ""
    if not is_needed:
        return f"case {number} has no `input`{meant}" if found else ""
    return f"case {number} has no `input`, which the command asks for{meant}"


def _read_inputs(value: JsonObject) -> tuple[Json, tuple[str, ...]]:
    """Return the input, and the inputs of a conversation's turns: none if any has no text."""
    text, given = value.get("input"), value.get("turns")
    listed = given if text is None and isinstance(given, list) else []
    found = [each.get("input") for each in listed if isinstance(each, Mapping)]
    texts = tuple(each for each in found if isinstance(each, str) and each.strip())
    turns = texts if len(texts) == len(listed) else ()
    return (turns[0], ()) if len(turns) == 1 else (text, turns)


def _read_case(value: Json, number: int) -> RecordCase | str:
    """Return the case, or a message if it is invalid."""
    if not isinstance(value, Mapping):
        return f"case {number} is {JSON_TYPE_NAMES[type(value)]}, not an object"
    given = value.get("id")
    text, turns = _read_inputs(value)
    texts = [text] if isinstance(text, str) else turns
    name = "" if given is None else str(given).strip()
    problem = ""
    if isinstance(given, bool) or not isinstance(given, str | int | None):
        problem = f"`id` of case {number} is not text or a whole number"
    elif len(name) > MAX_ID or not name.isprintable():
        problem = f"`id` of case {number} is longer than {MAX_ID} characters or not printable"
    elif text is None and not name and not texts:
        problem = f"case {number} has neither `id` nor `input`"
    elif len("\n".join(texts).encode("utf-8", "replace")) > MAX_INPUT_BYTES:
        problem = (
            f"`input` of case {number} is larger than {MAX_INPUT_BYTES // 1024} KiB; give the name "
            "of a file, which the agent reads"
        )
    if isinstance(text, str | None) and not problem:
        return RecordCase(id=name or f"case-{number}", input=text, is_named=bool(name), turns=turns)
    if isinstance(text, list) and not problem:
        return (
            f"`input` of case {number} is an array, not text; write a conversation as "
            "`turns: [{input: TEXT}, ...]`"
        )
    return problem or f"`input` of case {number} is {JSON_TYPE_NAMES[type(text)]}, not text"


PROXY: Final = "proxy"
EXPORTED: Final = "exported telemetry"
INJECTED: Final = "injected telemetry"
NO_ACTIVITY: Final = "no agent activity was recorded"
NO_ANSWER: Final = "no answer was recorded"


# Ids, times, and names made from ids, of traces and their parts.
_RUN_FIELDS: Final = frozenset(
    {
        *("id", "key", "conversation", "trace_id", "span_id", "call_id", "parent", "place", "span"),
        *("recorded_run", "start", "start_ms", "ms", "duration_ms", "performance", "warnings"),
        *("replayed", "printed"),
    }
)


class TraceSummary(Struct, frozen=True, kw_only=True):
    """What agentci reads in the lines of a case.

    Attributes:
        cases: number of cases that `agentci run` makes of the traces by default.
        missing: why no turn can be evaluated; empty if one can.
        warnings: of reading it.
        answers: of the turns that have one.
        texts: the same, and the model's other texts.
        calls: of tools.
        content: tool calls with arguments, and answers, sorted.
        has_tokens: whether tokens were counted.
    """

    cases: int = 0
    turns: int = 0
    tool_calls: int = 0
    results: int = 0
    complete_turns: int = 0
    missing: str = NO_ACTIVITY
    warnings: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    content: tuple[str, ...] = ()
    has_tokens: bool = False

    def format_content(self) -> str:
        """Format how much was recorded: ``2 turns, 3 tool calls``."""
        turns, calls = (
            format_count(self.turns, "turn"),
            format_count(self.tool_calls, "tool call"),
        )
        return f"{turns}, {calls}"


def summarize_lines(lines: Iterable[str]) -> TraceSummary:
    """Read lines of OTLP JSON as `agentci run` does, and summarize them."""
    try:
        traces, cases = _read_lines(lines)
    except RecordingError as error:
        return TraceSummary(missing=error.problem.message)
    return summarize_traces(traces, cases=cases) if traces else TraceSummary()


def _read_lines(lines: Iterable[str]) -> tuple[list[Trace], int]:
    """Return conversations, and the number of cases that `agentci run` makes of them.

    Raises:
        RecordingError: the lines cannot be read.
    """
    content = "\n".join(lines).encode()
    if not content:
        return [], 0
    spool = SpooledChunks()
    runs = read_recording([content], file="recording", spool=spool)
    stored = [run for run in runs if isinstance(run, StoredTrace)]
    groups = group_traces(stored, spool, group_by="conversation", multi_turn_eval_cases=True)
    cases = group_traces(stored, spool, group_by="auto", multi_turn_eval_cases=False)
    return [convert_to_trace(group, spool) for group in groups], len(cases)


def are_equal_runs(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two recordings are equal as agentci reads them, apart from ids and times."""
    if list_marks(one) != list_marks(other):
        return False
    try:
        found, known = _read_lines(one), _read_lines(other)
    except RecordingError:
        return False
    return _describe_runs(*found) == _describe_runs(*known)


def _describe_runs(traces: Sequence[Trace], cases: int) -> tuple[int, list[str]]:
    return cases, sorted(dumps_compact(_drop_ids(trace)) for trace in traces)


def _drop_ids(value: object) -> Json:
    """Return a value without the ids and times that differ between equal runs.

    Objects in it are arguments and results of tools, which stay as they are.
    """
    if isinstance(value, Struct):
        return {
            name: _drop_ids(getattr(value, name))
            for name in value.__struct_fields__
            if name not in _RUN_FIELDS
        }
    if isinstance(value, tuple):
        listed = [_drop_ids(each) for each in value]
        # Spans that start together are in the order of their ids.
        are_spans = bool(value) and isinstance(value[0], RunSpan)
        return sorted(listed, key=dumps_compact) if are_spans else listed
    return cast("Json", value)


def summarize_traces(traces: Sequence[Trace], *, cases: int = 1) -> TraceSummary:
    """Summarize the turns of traces.

    Args:
        cases: number of cases that `agentci run` makes of them by default.
    """
    turns = [turn for trace in traces for turn in trace.turns]
    complete = [turn for turn in turns if turn.user_text and turn.final_text]
    reasons = [trace.not_captured for trace in traces if trace.not_captured]
    missing = NO_ACTIVITY
    if turns:
        has_question = any(turn.user_text for turn in turns)
        missing = reasons[0] if reasons else "no turn has a question and an answer"
        if not reasons and has_question:
            missing = NO_ANSWER
    answers = tuple(turn.final_text for turn in turns if turn.final_text)
    return TraceSummary(
        cases=cases,
        turns=len(turns),
        tool_calls=sum(len(turn.tool_calls) for turn in turns),
        results=sum(len(turn.tool_responses) for turn in turns),
        complete_turns=len(complete),
        missing="" if complete and not reasons else missing,
        warnings=tuple(warning for trace in traces for warning in trace.warnings),
        answers=answers,
        texts=(*answers, *(text for turn in turns for text in turn.intermediate_texts)),
        calls=tuple(call for turn in turns for call in turn.tool_calls),
        content=tuple(sorted(text for turn in turns for text in _list_content(turn))),
        has_tokens=any(trace.usage is not None for trace in traces),
    )


def _list_content(turn: Turn) -> Iterator[str]:
    yield from (f"{call.name} {json.dumps(call.args, sort_keys=True)}" for call in turn.tool_calls)
    yield "".join((turn.final_text or "").split())


class RecordingChoice(Struct, frozen=True, kw_only=True):
    """The lines to keep of a case.

    Attributes:
        source: where they are from.
        reason: of the choice; empty if there was none.
        other_answer: that the framework's answers differ from those in the lines; else empty.
        other_arguments: that the arguments of its tool calls do; else empty.
    """

    lines: tuple[str, ...]
    summary: TraceSummary
    source: str = PROXY
    reason: str = ""
    other_answer: str = ""
    other_arguments: str = ""


def choose_recording(
    by_proxy: Sequence[str], *, exported: Sequence[str] = (), injected: Sequence[str] = ()
) -> RecordingChoice:
    """Choose the most complete of what the proxy saw and the telemetry of the agent.

    Telemetry has the agent's structure and times. It is chosen if it has all turns, calls and
    results that the proxy saw, or if the proxy saw no complete turn.

    Args:
        exported: telemetry that the agent exports by itself.
        injected: telemetry of what is installed with the agent. It may repeat that of the agent's
            own instrumentation, so it is chosen only if its calls and answers are exactly those
            that the proxy saw.
    """
    seen = summarize_lines(by_proxy)
    choice = RecordingChoice(lines=tuple(by_proxy), summary=seen)
    for kind, lines in ((INJECTED, injected), (EXPORTED, exported)):
        if not lines:
            continue
        sent = summarize_lines(lines)
        proxied, reason = _compare_sources(seen, sent, kind, is_seen=bool(by_proxy))
        is_worse = bool(sent.missing) and not choice.summary.missing
        if not proxied and not is_worse:
            choice = RecordingChoice(lines=tuple(lines), summary=sent, source=kind, reason=reason)
        elif choice.source == PROXY and not (kind == INJECTED and sent.missing):
            choice = replace(choice, reason=reason)
            if kind == INJECTED and not seen.missing:
                choice = replace(
                    choice,
                    other_answer=describe_other_answers(sent.answers, seen.answers),
                    other_arguments=describe_other_arguments(sent.calls, seen.calls),
                )
    return choice


def _compare_sources(
    seen: TraceSummary, sent: TraceSummary, kind: str, *, is_seen: bool
) -> tuple[bool, str]:
    """Return whether the proxy saw more, and the reason of the choice.

    Args:
        kind: of the telemetry.
        is_seen: whether the proxy saw any model call.
    """
    difference = _find_difference(seen, sent, is_exact=kind == INJECTED)
    choice = True, f"{PROXY}, as the {kind} {difference}"
    if not is_seen:
        choice = False, f"{kind}, as no model call was seen"
    elif sent.missing:
        choice = True, f"{PROXY}, as in the {kind} {sent.missing}"
    elif seen.missing:
        choice = False, f"{kind}, as in the {PROXY} {seen.missing}"
    elif not difference:
        choice = False, f"{kind}, which has all that the {PROXY} saw"
    return choice


def _find_difference(seen: TraceSummary, sent: TraceSummary, *, is_exact: bool) -> str:
    """Describe what the telemetry lacks; empty if it has all that the proxy saw."""
    has_all = (
        sent.complete_turns == seen.complete_turns
        and sent.tool_calls >= seen.tool_calls
        and sent.results >= seen.results
    )
    found, known = sent.format_content(), seen.format_content()
    if not has_all or (is_exact and sent.turns != seen.turns):
        return f"has {found} where the {PROXY} saw {known}"
    if sent.cases > seen.cases:
        return "does not join the turns of a conversation"
    if is_exact and sent.content != seen.content:
        return f"has other arguments or answers than the {PROXY} saw"
    return "has no tokens" if seen.has_tokens and not sent.has_tokens else ""
