"""Traces of files, set aside as they are read: what there is of them may not fit into memory."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Protocol

from msgspec import Struct

from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.ids import first_name
from agentci.recordings.telemetry.serialize import pack, unpack
from agentci.recordings.telemetry.span import LogRecord, Record, Rejection, Span
from agentci.recordings.telemetry.trace_tree import SpanTree, assemble, span_count


class Spool(Protocol):
    """Keeps bytes aside."""

    def put(self, chunk: bytes) -> int:
        """Keep ``chunk``; the number is what it is taken by."""
        ...

    def take(self, number: int) -> bytes:
        """The chunk that was put."""
        ...


class Recorded(Struct, frozen=True, kw_only=True):
    """One trace of one file, as much as is kept in memory.

    Attributes:
        chunks: where its spans and log records are, in the file's order.
        complaints: what of the file could not be used.
        may_have_session: one of its spans names a session.
    """

    id: str
    file: str
    chunks: tuple[int, ...]
    complaints: tuple[str, ...]
    may_have_session: bool


def set_aside(
    records: Iterable[Record], *, file: str, spool: Spool
) -> tuple[tuple[Recorded, ...], tuple[str, ...]]:
    """Group the records of a file by trace.

    Returns:
        The traces that have spans in first-seen order, and what is to be said about the spans that
        were rejected.
    """
    chunks: defaultdict[str, list[int]] = defaultdict(list)
    sessions: dict[str, bool] = {}
    rejected: Counter[str] = Counter()
    # Spans of one trace mostly stand together, so that no more than one trace has to wait.
    for trace_id, run in groupby(_usable(records, rejected), key=attrgetter("trace_id")):
        read = list(run)
        chunks[trace_id].append(spool.put(pack(read)))
        if spans := [one for one in read if isinstance(one, Span)]:
            named = first_name((span.resource for span in spans), semconv.SESSION_NAME) is not None
            sessions[trace_id] = named or sessions.get(trace_id, False)
    complaints = tuple(_complaint(reason, count) for reason, count in sorted(rejected.items()))
    return tuple(
        Recorded(
            id=trace_id,
            file=file,
            chunks=tuple(chunks[trace_id]),
            complaints=complaints,
            may_have_session=may_have_session,
        )
        for trace_id, may_have_session in sessions.items()
    ), complaints


def tree_of(recorded: Recorded, spool: Spool) -> SpanTree:
    """All that was recorded of a trace."""
    records = [record for chunk in recorded.chunks for record in unpack(spool.take(chunk))]
    return assemble(
        records, trace_id=recorded.id, complaints=recorded.complaints, file=recorded.file
    )


def _usable(records: Iterable[Record], rejected: Counter[str]) -> Iterator[Span | LogRecord]:
    """What is no rejection; those are counted by their reasons."""
    for record in records:
        if isinstance(record, Rejection):
            rejected[record.reason] += 1
        else:
            yield record


def _complaint(reason: str, count: int) -> str:
    return f"{span_count(count)} rejected: {reason}"
