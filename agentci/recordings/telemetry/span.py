"""Spans and log records as the rules of conversion need them, whatever format they came in."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Struct, field

from agentci.model.json import Json
from agentci.recordings.telemetry import semconv

NOTHING: Final[Mapping[str, Json]] = MappingProxyType({})


def nothing() -> Mapping[str, Json]:
    """No attributes; a dataclass takes no mapping itself as a default."""
    return NOTHING


class Event(Struct, frozen=True, kw_only=True):
    """A span event or a log record that carries messages.

    Attributes:
        time: nanoseconds since 1970.
        payload: the attributes; of a log record with a message, its body.
    """

    name: str
    time: int
    payload: Mapping[str, Json]


class Span(Struct, frozen=True, kw_only=True):
    """One timed step of a trace.

    Attributes:
        parent_id: as recorded; the parent need not be in the trace.
        start, end: nanoseconds since 1970; 0 where it could not be read.
        attributes, resource: only those that some rule reads.
        failed: its status is ERROR, or it has an ``error.type``.
        adk: Google's Agent Development Kit recorded it.
    """

    trace_id: str
    id: str
    parent_id: str | None
    name: str
    start: int
    end: int
    attributes: Mapping[str, Json] = field(default_factory=nothing)
    resource: Mapping[str, Json] = field(default_factory=nothing)
    failed: bool = False
    adk: bool = False
    events: tuple[Event, ...] = ()

    @property
    def duration(self) -> int:
        """Nanoseconds; 0 where the span ends before it starts."""
        return max(self.end - self.start, 0)


class LogRecord(Struct, frozen=True, kw_only=True):
    """A log record with messages; ``span_id`` may name no span of the trace."""

    trace_id: str
    span_id: str | None
    event: Event


class Rejection(Struct, frozen=True, kw_only=True):
    """A span that cannot be used, and why."""

    reason: str


Record: TypeAlias = Span | LogRecord | Rejection


def is_adk(scope: Json, attributes: Iterable[str]) -> bool:
    """Whether Google's Agent Development Kit recorded a span with these attributes."""
    return scope == semconv.ADK or any(name.startswith(semconv.ADK_PREFIX) for name in attributes)
