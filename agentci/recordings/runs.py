"""The recorded runs of a suite: traces grouped into conversations, and transcripts."""

from collections.abc import Iterable
from typing import TypeAlias

from agentci.model.trace import Trace
from agentci.recordings.telemetry.conversion import convert_to_trace
from agentci.recordings.telemetry.grouping import GroupBy, TraceGroup, group_traces
from agentci.recordings.telemetry.stored_trace import StoredTrace, TraceSpool
from agentci.recordings.transcripts.store import (
    StoredTranscript,
    TranscriptGroup,
    group_transcripts,
    load_transcript,
)

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
