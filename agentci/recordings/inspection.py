"""Finds out what was recorded, what of it is read and what is missing, for people to see."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from agentci._util.text.format import format_count
from agentci.model.trace import Trace, Turn
from agentci.recordings.runs import RunGroup, TranscriptGroup, convert_run
from agentci.recordings.telemetry.conventions.registry import (
    CONVENTION_ATTRIBUTES,
    GENAI,
    READ_SPAN_ATTRIBUTES,
    Convention,
    find_marked_conventions,
)
from agentci.recordings.telemetry.grouping import TraceGroup
from agentci.recordings.telemetry.semconv import (
    RESOURCE_ATTRIBUTES,
    AttributeNames,
    ReadAttributes,
)
from agentci.recordings.telemetry.spans import Span
from agentci.recordings.telemetry.stored_trace import StoredTrace, TraceSpool, load_tree

MAX_EXAMPLES: Final = 3
# Names of attributes are counted up to this number; a recording has few, unless they are made up.
MAX_COUNTED_NAMES: Final = 10_000


class CountedNames(AttributeNames, frozen=True):
    """Attribute names that some rule reads, and how often others were found."""

    ignored: dict[str, int] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Return whether the attribute is read; count it if not."""
        is_read = super().has(name)
        if not is_read:
            _count(self.ignored, name)
        return is_read


def make_counted_attributes() -> tuple[ReadAttributes, dict[str, int]]:
    """Make names for ``read_recording``, and the numbers of span attributes that are not read."""
    names = CountedNames(READ_SPAN_ATTRIBUTES.exact, READ_SPAN_ATTRIBUTES.prefixes)
    return ReadAttributes(names, RESOURCE_ATTRIBUTES), names.ignored


class IgnoredAttributes(Struct, frozen=True, kw_only=True):
    """Attributes with one prefix that no convention reads.

    Attributes:
        prefix: their names up to the second dot, or the first; the whole name if it has no dot.
        count: of attributes on all spans.
        names: the most frequent ones.
    """

    prefix: str
    count: int
    names: tuple[str, ...]


class Instrumentation(Struct, frozen=True, kw_only=True):
    """Spans that one instrumentation recorded in the same conventions.

    Attributes:
        scope, version: of the instrumentation; empty if unknown.
        conventions: names of those that read the spans; empty if none does.
    """

    scope: str
    version: str
    conventions: tuple[str, ...]
    spans: int


class Survey:
    """Counts what the spans of a recording are, whether or not they are read."""

    def __init__(self, ignored: Mapping[str, int]) -> None:
        """Start with the numbers of attributes that were dropped while reading."""
        self._ignored = dict(ignored)
        self._kinds: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
        self._trace_ids: set[str] = set()

    def add(self, spans: Iterable[Span]) -> None:
        """Count the spans of a trace."""
        for span in spans:
            self._trace_ids.add(span.trace_id)
            for name in span.attributes:
                if not CONVENTION_ATTRIBUTES.has(name):
                    _count(self._ignored, name)
            conventions = tuple(one.name for one in find_marked_conventions(span))
            self._kinds[span.scope, span.scope_version, conventions] += 1

    @property
    def traces(self) -> int:
        """The number of traces."""
        return len(self._trace_ids)

    @property
    def instrumentations(self) -> tuple[Instrumentation, ...]:
        """What recorded the spans: those that are read first, then the most frequent."""
        found = [
            Instrumentation(scope=scope, version=version, conventions=conventions, spans=spans)
            for (scope, version, conventions), spans in self._kinds.items()
        ]
        return tuple(
            sorted(found, key=lambda one: (not one.conventions, -one.spans, one.scope, one.version))
        )

    @property
    def ignored(self) -> tuple[IgnoredAttributes, ...]:
        """The attributes that no convention reads, the most frequent prefix first."""
        by_prefix: dict[str, list[tuple[int, str]]] = {}
        for name, count in self._ignored.items():
            by_prefix.setdefault(_find_prefix(name), []).append((-count, name))
        found = [
            IgnoredAttributes(
                prefix=prefix,
                count=-sum(count for count, _ in names),
                names=tuple(name for _, name in sorted(names)[:MAX_EXAMPLES]),
            )
            for prefix, names in by_prefix.items()
        ]
        return tuple(sorted(found, key=lambda one: (-one.count, one.prefix)))


def _count(counts: dict[str, int], name: str) -> None:
    if name in counts or len(counts) < MAX_COUNTED_NAMES:
        counts[name] = counts.get(name, 0) + 1


def _find_prefix(name: str) -> str:
    *parts, _ = name.split(".")
    return f"{'.'.join(parts[:2])}." if parts else name


class InspectedRun(Struct, frozen=True, kw_only=True):
    """A run with what is known about its recording.

    Attributes:
        conventions: titles of those that read it; empty for a transcript.
        traces, spans: how many were joined to the run; 0 for a transcript.
        missing: what evaluators may need and the recording does not have.
        switch: what turns the recording of content on; empty if nothing is missing.
    """

    trace: Trace
    conventions: tuple[str, ...] = ()
    traces: int = 0
    spans: int = 0
    missing: tuple[str, ...] = ()
    switch: str = ""


def inspect_run(group: RunGroup, spool: TraceSpool, survey: Survey) -> InspectedRun:
    """Convert a run, and count its spans in ``survey``."""
    trace = convert_run(group, spool)
    missing = tuple(find_missing_content(trace.turns))
    if isinstance(group, TranscriptGroup):
        return InspectedRun(trace=trace, missing=missing)
    spans = _load_spans(group.traces, spool)
    survey.add(spans)
    conventions = {one.name: one for span in spans for one in find_marked_conventions(span)}
    return InspectedRun(
        trace=trace,
        conventions=tuple(one.title for one in conventions.values()),
        traces=len({span.trace_id for span in spans}),
        spans=len(spans),
        missing=missing,
        switch=_find_switch(tuple(conventions.values())) if _lacks_content(trace) else "",
    )


def survey_traces(traces: Iterable[StoredTrace], spool: TraceSpool, survey: Survey) -> None:
    """Count the spans of traces that are not converted."""
    for stored in traces:
        survey.add(_load_spans([stored], spool))


def survey_runs(groups: Iterable[RunGroup], spool: TraceSpool, survey: Survey) -> None:
    """Count the spans of runs that are not converted."""
    for group in groups:
        if isinstance(group, TraceGroup):
            survey_traces(group.traces, spool, survey)


def _load_spans(traces: Iterable[StoredTrace], spool: TraceSpool) -> list[Span]:
    return [span for stored in traces for span in load_tree(stored, spool).spans]


def _lacks_content(trace: Trace) -> bool:
    """Whether something is missing that a switch may have turned off; an agent may not answer."""
    return bool(trace.not_captured) or any(
        not turn.user_text or any(call.args is None for call in turn.tool_calls)
        for turn in trace.turns
    )


def _find_switch(conventions: Sequence[Convention]) -> str:
    """Return what turns content on in the most specific convention."""
    specific = [one for one in conventions if one.name != GENAI] or conventions
    return specific[0].capture if specific else ""


def find_missing_content(turns: Sequence[Turn]) -> Iterator[str]:
    """Say what the turns do not have, such as ``arguments of 2 of 3 tool calls``."""
    if not turns:
        yield "turns"
        return
    questions = sum(not turn.user_text for turn in turns)
    answers = sum(not turn.answer_parts for turn in turns)
    calls = [call for turn in turns for call in turn.tool_calls]
    arguments = sum(call.args is None for call in calls)
    results = len(calls) - sum(
        one.output is not None for turn in turns for one in turn.tool_responses
    )
    for count, total, noun in (
        (questions, len(turns), "questions"),
        (answers, len(turns), "answers"),
        (arguments, len(calls), "arguments"),
        (results, len(calls), "results"),
    ):
        if count > 0:
            whole = "turn" if noun in ("questions", "answers") else "tool call"
            yield f"{noun} of {count:,} of {format_count(total, whole)}"
