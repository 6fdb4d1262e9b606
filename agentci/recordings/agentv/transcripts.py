"""Converts traces to transcripts, and transcripts to turns and to rows of recorded outputs."""

from collections.abc import Iterator, Mapping

from msgspec import to_builtins

from agentci.model.json import Json, JsonObject
from agentci.model.trace import (
    Message,
    ToolCall,
    ToolResponse,
    ToolUse,
    Trace,
    Transcript,
    Turn,
)
from agentci.recordings.agentv.recorded_run import RecordedRun


def make_run_row(case_id: str, attempt: int | None, transcript: Transcript) -> JsonObject:
    """Write a run as a row of AgentV's CLI provider, with the id of its case.

    Args:
        attempt: index of the run among the runs of the case.
    """
    usage = transcript.token_usage
    return {
        "id": case_id,
        **_drop_none({"attempt": attempt}),
        **_make_output(transcript),
        **_drop_none(
            {
                "token_usage": None if usage is None else _drop_none(to_builtins(usage)),
                "cost_usd": transcript.cost_usd,
                "duration_ms": transcript.duration_ms,
                "start_time": transcript.start_time,
                "end_time": transcript.end_time,
                "file_changes": transcript.file_changes,
            }
        ),
    }


def _make_output(transcript: Transcript) -> JsonObject:
    if not transcript.tool_calls_recorded and len(transcript.messages) == 1:
        return {"text": transcript.messages[0].content}  # not a list, which would hold tool calls
    return {"output_messages": [_make_message_row(each) for each in transcript.messages]}


def _make_message_row(message: Message) -> JsonObject:
    calls = [_make_tool_use_row(each) for each in message.tool_calls]
    fields = {name: getattr(message, name) for name in Message.__struct_fields__}
    return _drop_none({**fields, "tool_calls": calls or None})


def _make_tool_use_row(use: ToolUse) -> JsonObject:
    return _drop_none({name: getattr(use, name) for name in ToolUse.__struct_fields__})


def _drop_none(fields: Mapping[str, Json]) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def convert_trace_to_run(trace: Trace) -> RecordedRun:
    """Convert a trace to a recorded run; its case is found by id or by the first question."""
    return RecordedRun(
        case_id=trace.eval_case_id,
        transcript=Transcript(
            messages=tuple(message for turn in trace.turns for message in _make_messages(turn)),
            token_usage=trace.usage,
            cost_usd=trace.cost_usd,
            duration_ms=_find_duration(trace),
            tool_calls_recorded=all(turn.tool_calls_recorded for turn in trace.turns),
        ),
        place=trace.place,
        question=trace.turns[0].user_text if trace.turns else None,
        leaves_out_question=bool(trace.turns) and not trace.turns[0].user_text_recorded,
        warnings=trace.warnings,
        not_captured=trace.not_captured,
    )


def convert_transcript_to_turn(transcript: Transcript, *, question: str, answer: str) -> Turn:
    """Convert a transcript to a single turn."""
    uses = tuple(transcript.tool_uses)
    return Turn(
        id="",
        user_text=question,
        answer_parts=(answer,) if answer else (),
        tool_calls=tuple(
            ToolCall(name=use.tool, args=use.input, id=use.id, duration_ms=use.duration_ms)
            for use in uses
        ),
        tool_calls_recorded=transcript.tool_calls_recorded,
        tool_responses=tuple(
            ToolResponse(name=use.tool, output=use.output, id=use.id, call_index=index)
            for index, use in enumerate(uses)
            if use.output is not None
        ),
    )


def _make_messages(turn: Turn) -> Iterator[Message]:
    if turn.user_text:
        yield Message(role="user", content=turn.user_text)
    for text in turn.intermediate_texts:
        yield Message(role="assistant", content=text)
    if turn.tool_calls:
        responses = {each.call_index: each for each in turn.tool_responses}
        yield Message(
            role="assistant",
            tool_calls=tuple(
                ToolUse(
                    tool=call.name,
                    input=call.args,
                    output=responses[index].output if index in responses else None,
                    id=call.id,
                )
                for index, call in enumerate(turn.tool_calls)
            ),
        )
    if turn.final_text is not None:
        yield Message(role="assistant", content=turn.final_text)


def _find_duration(trace: Trace) -> float | None:
    """Return the duration of a single turn in milliseconds, else None.

    Several turns have no known duration: there may be pauses between them.
    """
    overall = _as_object(_as_object(_as_object(trace.performance).get("latency")).get("overall"))
    longest = overall.get("max")
    return longest if overall.get("count") == 1 and isinstance(longest, int | float) else None


def _as_object(value: Json) -> JsonObject:
    return value if isinstance(value, Mapping) else {}
