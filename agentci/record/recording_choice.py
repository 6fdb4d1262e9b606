"""Chooses between what the proxy saw of a case and its telemetry, and summarizes the choice."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

from msgspec import Struct

from agentci._util.files import SpooledChunks
from agentci._util.text.format import format_count
from agentci._util.text.json_text import dumps_compact
from agentci.errors import RecordingError
from agentci.model.trace import RunSpan, ToolCall, Trace, Turn
from agentci.model.values import Json, replace
from agentci.record.printed_answer import (
    describe_other_answers,
    describe_other_arguments,
)
from agentci.record.write_spans import list_marks
from agentci.recordings.registry import read_recording
from agentci.recordings.telemetry.conversion import convert_to_trace
from agentci.recordings.telemetry.grouping import group_traces
from agentci.recordings.telemetry.stored_trace import StoredTrace

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
