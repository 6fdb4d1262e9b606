"""What was recorded of a case, as agentci reads it, and whether it can be evaluated."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.files import SpooledChunks
from agentci._util.text.format import format_count
from agentci.errors import RecordingError
from agentci.model.trace import Trace, Turn
from agentci.model.values import replace
from agentci.recordings.registry import read_recording
from agentci.recordings.telemetry.conversion import convert_to_trace
from agentci.recordings.telemetry.grouping import group_traces
from agentci.recordings.telemetry.stored_trace import StoredTrace

PROXY: Final = "proxy"
EXPORTED: Final = "exported telemetry"
INJECTED: Final = "injected telemetry"
NO_ACTIVITY: Final = "no agent activity was recorded"


class TraceSummary(Struct, frozen=True, kw_only=True):
    """What agentci reads in the lines of a case.

    Attributes:
        cases: number of cases that `agentci run` makes of the traces by default.
        missing: why no turn can be evaluated; empty if one can.
        warnings: of reading it.
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
    content = "\n".join(lines).encode()
    if not content:
        return TraceSummary()
    spool = SpooledChunks()
    try:
        runs = read_recording([content], file="recording", spool=spool)
    except RecordingError as error:
        return TraceSummary(missing=error.problem.message)
    stored = [run for run in runs if isinstance(run, StoredTrace)]
    groups = group_traces(stored, spool, group_by="conversation", multi_turn_eval_cases=True)
    cases = group_traces(stored, spool, group_by="auto", multi_turn_eval_cases=False)
    traces = [convert_to_trace(group, spool) for group in groups]
    return summarize_traces(traces, cases=len(cases))


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
            missing = "no answer was recorded"
    return TraceSummary(
        cases=cases,
        turns=len(turns),
        tool_calls=sum(len(turn.tool_calls) for turn in turns),
        results=sum(len(turn.tool_responses) for turn in turns),
        complete_turns=len(complete),
        missing="" if complete and not reasons else missing,
        warnings=tuple(warning for trace in traces for warning in trace.warnings),
        content=tuple(sorted(text for turn in turns for text in _list_content(turn))),
        has_tokens=any(trace.usage is not None for trace in traces),
    )


def _list_content(turn: Turn) -> Iterator[str]:
    yield from (f"{call.name} {json.dumps(call.args, sort_keys=True)}" for call in turn.tool_calls)
    yield "".join((turn.final_text or "").split())


class RecordingChoice(Struct, frozen=True, kw_only=True):
    """The lines to keep of a case.

    Attributes:
        source: what they are from.
        reason: why, if there was a choice; else empty.
    """

    lines: tuple[str, ...]
    summary: TraceSummary
    source: str = PROXY
    reason: str = ""


def choose_recording(
    by_proxy: Sequence[str], *, exported: Sequence[str] = (), injected: Sequence[str] = ()
) -> RecordingChoice:
    """Choose the most complete of what the proxy saw and the telemetry of the agent.

    Telemetry has the agent's structure and times. It is chosen if it has all turns, calls and
    results that the proxy saw, or if the proxy saw no complete turn.

    Args:
        exported: telemetry that the agent exports by itself.
        injected: telemetry of what is installed with the agent. It may repeat what the agent's own
            instrumentation has, so it is only chosen if its calls and answers are just those that
            the proxy saw.
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
    """Return what the telemetry has not; empty if it has all that the proxy saw."""
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
