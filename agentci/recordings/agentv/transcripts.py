"""Recorded traces as transcripts, and transcripts as the turns that reports show."""

from collections.abc import Iterator, Mapping

from agentci.model.json import Json, JsonObject
from agentci.model.trace import ToolCall, ToolResponse, Trace, Turn
from agentci.model.transcript import Message, TokenUsage, ToolUse, Transcript
from agentci.recordings.agentv.recorded_run import RecordedRun


def run_of(trace: Trace) -> RecordedRun:
    """A conversation of spans, message by message; it belongs to the case that it names or asks."""
    tokens = _object(_object(trace.performance).get("tokens"))
    return RecordedRun(
        case_id=trace.golden_id,
        transcript=Transcript(
            messages=tuple(message for turn in trace.turns for message in _messages(turn)),
            token_usage=_usage(tokens),
            duration_ms=_duration(trace),
        ),
        place=trace.place,
        question=trace.turns[0].user_text if trace.turns else None,
        warnings=trace.warnings,
    )


def turn_of(transcript: Transcript, *, question: str, answer: str) -> Turn:
    """A transcript as one round: what was asked, which tools were used, what was answered."""
    uses = tuple(transcript.tool_uses)
    return Turn(
        id="",
        user_text=question,
        answer_parts=(answer,) if answer else (),
        tool_calls=tuple(ToolCall(name=use.tool, args=use.input, id=use.id) for use in uses),
        tool_responses=tuple(
            ToolResponse(name=use.tool, output=use.output, id=use.id, call=index)
            for index, use in enumerate(uses)
            if use.output is not None
        ),
    )


def _messages(turn: Turn) -> Iterator[Message]:
    if turn.user_text:
        yield Message(role="user", content=turn.user_text)
    for text in turn.intermediate_texts:
        yield Message(role="assistant", content=text)
    if turn.tool_calls:
        answered = {each.call: each for each in turn.tool_responses}
        yield Message(
            role="assistant",
            tool_calls=tuple(
                ToolUse(
                    tool=call.name,
                    input=call.args,
                    output=answered[index].output if index in answered else None,
                    id=call.id,
                )
                for index, call in enumerate(turn.tool_calls)
            ),
        )
    if turn.final_text is not None:
        yield Message(role="assistant", content=turn.final_text)


def _usage(tokens: JsonObject) -> TokenUsage | None:
    given, produced, cached = (
        value if isinstance(value, int) else 0
        for value in (tokens.get(k) for k in ("total_prompt", "total_output", "cache_read_tokens"))
    )
    if not given + produced:
        return None
    return TokenUsage(input=given, output=produced, cached=cached or None)


def _duration(trace: Trace) -> float | None:
    """Of a single turn; several are not known to have followed each other without a pause."""
    overall = _object(_object(_object(trace.performance).get("latency")).get("overall"))
    longest = overall.get("max")
    return longest if overall.get("count") == 1 and isinstance(longest, int | float) else None


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, Mapping) else {}
