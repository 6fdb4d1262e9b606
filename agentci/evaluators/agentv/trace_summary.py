"""``trace_summary``: counts, times and costs of a run, as AgentV derives them."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from agentci.evaluators.agentv.helpers import ASSISTANT
from agentci.model.json import Json, JsonObject
from agentci.model.transcript import TokenUsage, Transcript


def summary_of(transcript: Transcript) -> JsonObject:
    """The summary, in snake_case; what is not known is left out."""
    uses = Counter(use.tool for use in transcript.tool_uses)
    durations = _durations(transcript)
    start, end = _span(transcript)
    known: dict[str, Json] = {
        "event_count": uses.total(),
        "tool_names": sorted(uses),
        "tool_calls_by_name": dict(uses),
        "error_count": 0,
        "llm_call_count": sum(message.role == ASSISTANT for message in transcript.messages),
        "tool_durations": durations or None,
        "start_time": transcript.start_time or start,
        "end_time": transcript.end_time or end,
        "token_usage": usage_of(transcript.token_usage),
        "cost_usd": transcript.cost_usd,
        "duration_ms": transcript.duration_ms,
    }
    return {name: value for name, value in known.items() if value is not None}


def usage_of(usage: TokenUsage | None) -> JsonObject | None:
    """Token usage in AgentV's words."""
    if usage is None:
        return None
    cached = {} if usage.cached is None else {"cached": usage.cached}
    return {"input": usage.input, "output": usage.output, **cached}


def _durations(transcript: Transcript) -> JsonObject:
    found: dict[str, list[Json]] = {}
    for use in transcript.tool_uses:
        taken = use.duration_ms
        if taken is None:
            start, end = _time(use.start_time), _time(use.end_time)
            if start is not None and end is not None:
                taken = round((end - start).total_seconds() * 1000)
        if taken is not None:
            found.setdefault(use.tool, []).append(taken)
    return found


def _span(transcript: Transcript) -> tuple[str | None, str | None]:
    """The earliest start and the latest end that any message or tool call has."""
    starts = [at for start, _ in _times(transcript) if (at := _time(start)) is not None]
    ends = [at for _, end in _times(transcript) if (at := _time(end)) is not None]
    return (_iso(min(starts)) if starts else None), (_iso(max(ends)) if ends else None)


def _times(transcript: Transcript) -> Iterator[tuple[str | None, str | None]]:
    for message in transcript.messages:
        yield message.start_time, message.end_time
        for use in message.tool_calls:
            yield use.start_time, use.end_time


def _time(text: str | None) -> datetime | None:
    """A time of ISO 8601; in UTC where it does not say."""
    try:
        at = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at is None or at.tzinfo is not None else at.replace(tzinfo=UTC)


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
