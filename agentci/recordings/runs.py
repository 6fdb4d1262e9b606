"""The recorded runs of a suite: traces grouped into conversations, and transcripts.

Runs of transcripts are stored while files are read. Sub-agents are joined with their parents.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.case import QUESTION_NOT_RECORDED
from agentci.model.trace import SubagentRun, Trace
from agentci.model.values import Json, JsonObject, Place, replace
from agentci.recordings.telemetry.conversion import convert_to_trace
from agentci.recordings.telemetry.grouping import GroupBy, TraceGroup, group_traces
from agentci.recordings.telemetry.stored_trace import (
    StoredTrace,
    TraceSpool,
    pack_trace,
    unpack_trace,
)
from agentci.recordings.transcripts.reader import TranscriptRun
from agentci.recordings.transcripts.turn_builder import summarize_warnings

COMPLETE_HINT: Final = (
    "record the run from its beginning, in a form that agentci's docs/transcripts.md lists"
)


def make_trace(run: TranscriptRun, *, file: str, own_id: str) -> Trace:
    """Convert one run.

    Args:
        own_id: the id of a run that records none.
    """
    run_id = run.id or own_id
    warnings = {*run.warnings, *summarize_warnings(list(run.failures))}
    if any(not turn.user_text_recorded for turn in run.turns):
        warnings.add(QUESTION_NOT_RECORDED)
    return Trace(
        id=run_id,
        key=run_id,
        turns=run.turns,
        place=Place(file=file, line=run.line),
        eval_case_id=run.eval_case_id,
        performance=summarize_performance(run),
        usage=run.usage,
        cost_usd=run.cost_usd,
        subagents=run.subagents,
        warnings=tuple(sorted(warnings)),
        not_captured=_explain_missing_answer(run),
    )


def _explain_missing_answer(run: TranscriptRun) -> str:
    """Say that a call is missing, or that the run ended before an answer; empty if neither is."""
    if run.lost:
        return f"A tool call of the run is missing: {run.lost[0]}; {COMPLETE_HINT}"
    last = run.turns[-1] if run.turns else None
    if last is None or last.answer_parts:
        return ""
    if run.failures:
        return f"The agent did not finish its last turn: {run.failures[-1]}"
    if last.intermediate_texts or last.tool_calls:
        return ""
    return (
        f"The recording ends before the agent answered: turn {len(run.turns)} has no text and no "
        "tool call of the agent; record the run to its end"
    )


def summarize_performance(run: TranscriptRun) -> JsonObject:
    """Summarize what was recorded of duration, tokens, counts and cost, as for other traces."""
    found: dict[str, Json] = {}
    calls = [call.name for turn in run.turns for call in turn.tool_calls]
    if run.duration_ms is not None:
        found["latency"] = {"overall": {"max": run.duration_ms, "count": 1}}
    if run.usage is not None:
        tokens: dict[str, Json] = {
            "total_prompt": _as_count(run.usage.input),
            "total_output": _as_count(run.usage.output),
            "total": _as_count(run.usage.input + run.usage.output),
        }
        if run.usage.cached is not None:
            tokens["cache_read_tokens"] = _as_count(run.usage.cached)
        found["tokens"] = tokens
    if run.cost_usd is not None:
        found["cost_usd"] = run.cost_usd
    found["counts"] = {"tool_calls": len(calls), "invocations": len(run.turns)}
    if run.models:
        found["models"] = list(run.models)
    found["tool_names"] = sorted(set(calls))
    return found


def _as_count(number: float) -> float:
    return int(number) if float(number).is_integer() else number


class StoredTranscript(Struct, frozen=True, kw_only=True):
    """The part of a run that is kept in memory.

    Attributes:
        chunk: number of its chunk in the spool.
        parent_id, child_ids, agent: as in ``TranscriptRun``.
    """

    id: str
    chunk: int
    place: Place
    warnings: tuple[str, ...]
    parent_id: str | None = None
    child_ids: Mapping[str, str | None] = {}
    agent: str | None = None


class TranscriptGroup(Struct, frozen=True, kw_only=True):
    """A run, and those of the sub-agents that other files hold."""

    run: StoredTranscript
    children: tuple[StoredTranscript, ...] = ()


def store_transcripts(
    runs: Iterable[TranscriptRun], *, file: str, spool: TraceSpool
) -> tuple[StoredTranscript, ...]:
    """Store the runs of a file that have turns.

    A run without an id of its own is named after its file, and its line if there are several.
    """
    stored: list[StoredTranscript] = []
    remaining = (run for run in runs if run.turns)
    first, second = next(remaining, None), next(remaining, None)
    head = [run for run in (first, second) if run is not None]
    for run in chain(head, remaining):
        own_id = file if second is None else f"{file}:{run.line}"
        trace = make_trace(run, file=file, own_id=own_id)
        stored.append(
            StoredTranscript(
                id=trace.id,
                chunk=spool.append(pack_trace(trace)),
                place=trace.place,
                warnings=trace.warnings,
                parent_id=run.parent_id,
                child_ids=run.child_ids,
                agent=run.agent,
            )
        )
    return tuple(stored)


def group_transcripts(stored: Iterable[StoredTranscript]) -> Iterator[TranscriptGroup]:
    """Join sub-agents with the run that started them; without it, they are runs of their own."""
    runs = list(stored)
    by_id = {run.id: run for run in reversed(runs)}
    parents = {child: run.id for run in runs for child in run.child_ids}
    children: dict[str, list[StoredTranscript]] = {}
    top: list[StoredTranscript] = []
    for run in runs:
        parent_id = _find_top_parent(run, by_id, parents)
        if parent_id is None:
            top.append(run)
        else:
            children.setdefault(parent_id, []).append(run)
    for run in top:
        # Of several runs with one id, the first has the sub-agents.
        own = children.pop(run.id, ())
        yield TranscriptGroup(run=run, children=tuple(own))


def _find_top_parent(
    run: StoredTranscript, by_id: Mapping[str, StoredTranscript], parents: Mapping[str, str]
) -> str | None:
    """Return the id of the run that no other run started, and that led to this one."""
    found: str | None = None
    seen = {run.id}
    current = run
    while True:
        parent_id = current.parent_id or parents.get(current.id)
        if parent_id is None or parent_id in seen or parent_id not in by_id:
            return found
        seen.add(parent_id)
        found, current = parent_id, by_id[parent_id]


def load_transcript(group: TranscriptGroup, spool: TraceSpool) -> Trace:
    """Load a run with its sub-agents."""
    trace = _load(group.run, spool)
    found = [
        SubagentRun(
            name=child.agent or child.id,
            call_id=group.run.child_ids.get(child.id),
            turns=_load(child, spool).turns,
        )
        for child in group.children
    ]
    return replace(trace, subagents=(*trace.subagents, *found)) if found else trace


def _load(stored: StoredTranscript, spool: TraceSpool) -> Trace:
    packed = spool.read(stored.chunk)
    return unpack_trace(packed, place=stored.place, warnings=stored.warnings)


StoredRun: TypeAlias = StoredTrace | StoredTranscript
RunGroup: TypeAlias = TraceGroup | TranscriptGroup


def group_runs(
    recorded: Iterable[StoredRun],
    spool: TraceSpool,
    *,
    group_by: GroupBy,
    multi_turn_eval_cases: bool,
) -> tuple[RunGroup, ...]:
    """Group what was read into runs: those of traces first, then transcripts."""
    traces: list[StoredTrace] = []
    transcripts: list[StoredTranscript] = []
    for one in recorded:
        if isinstance(one, StoredTrace):
            traces.append(one)
        else:
            transcripts.append(one)
    groups = group_traces(
        traces, spool, group_by=group_by, multi_turn_eval_cases=multi_turn_eval_cases
    )
    return (*groups, *group_transcripts(transcripts))


def convert_run(group: RunGroup, spool: TraceSpool) -> Trace:
    """Convert a group to one trace, which may have no turns."""
    if isinstance(group, TraceGroup):
        return convert_to_trace(group, spool)
    return load_transcript(group, spool)
