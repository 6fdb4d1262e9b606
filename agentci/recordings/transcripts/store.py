"""Stores the runs of a transcript while files are read, and joins sub-agents with their parents."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from msgspec import Struct

from agentci.model.problem import Place
from agentci.model.trace import SubagentRun, Trace
from agentci.model.values import replace
from agentci.recordings.telemetry.stored_trace import TraceSpool, pack_trace, unpack_trace
from agentci.recordings.transcripts.convert import make_trace
from agentci.recordings.transcripts.transcript_run import TranscriptRun


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
