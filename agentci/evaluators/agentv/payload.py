"""The input of a code judge: the case and its run in the format of each AgentV generation.

The union of all formats is accepted by the SDKs of both generations, and by programs that read the
JSON themselves.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text.javascript import stringify_json
from agentci.evaluators.agentv.findings import (
    ASSISTANT,
    extract_candidate_answer,
    extract_question,
    extract_reference_answer,
    iterate_messages_with_files,
    make_prompt_messages,
)
from agentci.model.case import AgentvCase
from agentci.model.trace import Message, TokenUsage, ToolUse, Transcript
from agentci.model.values import Json, JsonObject

FieldNaming: TypeAlias = Callable[[str], str]


def to_snake_case(name: str) -> str:
    """Return the name unchanged."""
    return name


def to_camel_case(name: str) -> str:
    """Convert ``tool_calls`` to ``toolCalls``."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def encode_fields(
    known: JsonObject, naming: FieldNaming, *, without: Collection[str] = ()
) -> dict[str, Json]:
    """Encode fields that have a value; the SDKs reject null, so others are left out."""
    return {
        naming(name): value
        for name, value in known.items()
        if value is not None and name not in without
    }


def encode_messages(
    recorded: Sequence[Message], naming: FieldNaming, *, without: Collection[str] = ()
) -> list[Json]:
    """Encode recorded messages, without the message and tool call fields in ``without``."""
    return [
        encode_fields(
            {
                "role": message.role,
                "name": message.name,
                "content": message.content,
                "tool_calls": [_encode_tool_use(use, naming, without) for use in message.tool_calls]
                or None,
                "timestamp": message.timestamp,
                "start_time": message.start_time,
                "end_time": message.end_time,
                "duration_ms": message.duration_ms,
                "metadata": message.metadata,
            },
            naming,
            without=without,
        )
        for message in recorded
    ]


def encode_authored_messages(written: Sequence[JsonObject], naming: FieldNaming) -> list[Json]:
    """Return an eval file's messages unchanged, except for the path added to file parts."""
    return [_encode_authored_message(message, naming) for message in written]


def _encode_authored_message(message: JsonObject, naming: FieldNaming) -> JsonObject:
    parts = message.get("content")
    if not isinstance(parts, list):
        return message
    return {**message, "content": [_encode_authored_part(part, naming) for part in parts]}


def _encode_authored_part(part: Json, naming: FieldNaming) -> Json:
    if not isinstance(part, dict) or "resolved_path" not in part or part.get("type") != "file":
        return part
    return {naming(name) if name == "resolved_path" else name: v for name, v in part.items()}


def _encode_tool_use(use: ToolUse, naming: FieldNaming, without: Collection[str]) -> JsonObject:
    return encode_fields(
        {
            "tool": use.tool,
            "input": use.input,
            "output": use.output,
            "id": use.id,
            "status": use.status,
            "timestamp": use.timestamp,
            "start_time": use.start_time,
            "end_time": use.end_time,
            "duration_ms": use.duration_ms,
        },
        naming,
        without=without,
    )


def make_trace_summary(transcript: Transcript) -> JsonObject:
    """Make the trace summary in snake_case; unknown values are left out."""
    uses = Counter(use.tool for use in transcript.tool_uses)
    durations = _collect_durations(transcript)
    start, end = _find_time_span(transcript)
    known: dict[str, Json] = {
        "event_count": uses.total(),
        "tool_names": sorted(uses),
        "tool_calls_by_name": dict(uses),
        "error_count": 0,
        "tool_calls_recorded": None if transcript.tool_calls_recorded else False,
        "llm_call_count": sum(message.role == ASSISTANT for message in transcript.messages),
        "tool_durations": durations or None,
        "start_time": transcript.start_time or start,
        "end_time": transcript.end_time or end,
        "token_usage": format_token_usage(transcript.token_usage),
        "cost_usd": transcript.cost_usd,
        "duration_ms": transcript.duration_ms,
    }
    return {name: value for name, value in known.items() if value is not None}


def _make_known_summary(transcript: Transcript) -> JsonObject | None:
    """Make the trace summary, or none if all that it would say is that no tool was called.

    The SDKs require counts in a summary, so one with other metrics has counts of 0, and says that
    they were not recorded.
    """
    metrics = (transcript.token_usage, transcript.cost_usd, transcript.duration_ms)
    times = (transcript.start_time, transcript.end_time)
    if transcript.tool_calls_recorded or any(each is not None for each in (*metrics, *times)):
        return make_trace_summary(transcript)
    return None


def format_token_usage(usage: TokenUsage | None) -> JsonObject | None:
    """Format token usage with AgentV's field names."""
    if usage is None:
        return None
    cached = {} if usage.cached is None else {"cached": usage.cached}
    return {"input": usage.input, "output": usage.output, **cached}


def _collect_durations(transcript: Transcript) -> JsonObject:
    found: dict[str, list[Json]] = {}
    for use in transcript.tool_uses:
        taken = use.duration_ms
        if taken is None:
            start, end = _parse_time(use.start_time), _parse_time(use.end_time)
            if start is not None and end is not None:
                taken = round((end - start).total_seconds() * 1000)
        if taken is not None:
            found.setdefault(use.tool, []).append(taken)
    return found


def _find_time_span(transcript: Transcript) -> tuple[str | None, str | None]:
    """Return the earliest start and the latest end of all messages and tool calls."""
    starts = [
        at for start, _ in _iterate_times(transcript) if (at := _parse_time(start)) is not None
    ]
    ends = [at for _, end in _iterate_times(transcript) if (at := _parse_time(end)) is not None]
    return (_format_time(min(starts)) if starts else None), (
        _format_time(max(ends)) if ends else None
    )


def _iterate_times(transcript: Transcript) -> Iterator[tuple[str | None, str | None]]:
    for message in transcript.messages:
        yield message.start_time, message.end_time
        for use in message.tool_calls:
            yield use.start_time, use.end_time


def _parse_time(text: str | None) -> datetime | None:
    """Parse an ISO 8601 time; a time without an offset is UTC."""
    try:
        at = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at is None or at.tzinfo is not None else at.replace(tzinfo=UTC)


def _format_time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


TraceEventV4 = dict[str, Json]


def make_trace_v4(
    agentv_case: AgentvCase, transcript: Transcript, summary: JsonObject
) -> JsonObject:
    """Make the trace of AgentV 4, whose messages begin with the prompt.

    Args:
        summary: the trace summary of ``transcript``.
    """
    omitted = ("tool_names", "tool_calls_by_name")
    messages = _list_trace_messages(agentv_case, transcript)
    events = _make_events(messages, summary.get("end_time"))
    found = {"provider": agentv_case.provider, "target": agentv_case.target}
    return {
        **{name: value for name, value in summary.items() if name not in omitted},
        "tool_calls": summary["tool_calls_by_name"],
        "messages": encode_messages(messages, to_snake_case),
        "events": [{**event, "ordinal": ordinal} for ordinal, event in enumerate(events)],
        "metadata": {
            **{name: text for name, text in found.items() if text},
            "eval_case_id": agentv_case.id,
        },
    }


def _list_trace_messages(agentv_case: AgentvCase, transcript: Transcript) -> tuple[Message, ...]:
    """The recorded messages, after the prompt unless they contain it."""
    recorded = transcript.messages
    if any(message.role in ("user", "system") for message in recorded):
        return recorded
    prompt = make_prompt_messages(agentv_case)
    return (*(Message(role=role, content=text) for role, text in prompt), *recorded)


def _make_events(messages: Sequence[Message], end_time: Json) -> Iterator[TraceEventV4]:
    """Make the events of a trace, without their ordinals.

    Args:
        end_time: the end of the run, if it is known.
    """
    for index, message in enumerate(messages):
        times = {"timestamp": message.start_time, "duration_ms": message.duration_ms}
        yield _make_message_event(
            message, index, event_id=f"message-{index}", kind="message", fields=times
        )
        for place, use in enumerate(message.tool_calls):
            yield from _make_tool_events(use, index, place)
    answers = [index for index, message in enumerate(messages) if message.role == ASSISTANT]
    if answers:
        final = messages[answers[-1]]
        at = final.end_time or final.start_time or end_time
        fields = {"parent_event_id": f"message-{answers[-1]}", "timestamp": at}
        yield _make_message_event(
            final, answers[-1], event_id="final-response", kind="final_response", fields=fields
        )


def _make_message_event(
    message: Message, index: int, *, event_id: str, kind: str, fields: JsonObject
) -> TraceEventV4:
    written: JsonObject = {"role": message.role, "name": message.name, "content": message.content}
    event: JsonObject = {
        "event_id": event_id,
        "type": kind,
        **fields,
        "message": encode_fields({**written, "metadata": message.metadata}, to_snake_case),
        "metadata": {"message_index": index},
    }
    return encode_fields(event, to_snake_case)


def _make_tool_events(use: ToolUse, index: int, place: int) -> Iterator[TraceEventV4]:
    call = f"message-{index}-tool-{place}"
    where: JsonObject = {"message_index": index, "tool_index": place}
    tool: JsonObject = {"name": use.tool, "call_id": use.id, "output": use.output}
    made: JsonObject = {
        "event_id": call,
        "parent_event_id": f"message-{index}",
        "type": "tool_call",
        "timestamp": use.start_time,
        "duration_ms": use.duration_ms,
        "tool": encode_fields(
            {**tool, "input": use.input, "status": use.status or "ok"}, to_snake_case
        ),
        "metadata": where,
    }
    yield encode_fields(made, to_snake_case)
    if use.output is not None:
        answered: JsonObject = {
            "event_id": f"{call}-result",
            "parent_event_id": call,
            "type": "tool_result",
            "timestamp": use.end_time,
            "tool": encode_fields({**tool, "status": use.status or "ok"}, to_snake_case),
            "metadata": where,
        }
        yield encode_fields(answered, to_snake_case)


PayloadFormat: TypeAlias = Literal["union", "camel", "snake", "v4", "snake+v4"]

# The transcript of no run.
NO_RUN: Final = Transcript(messages=())

TOOL_CALLS_BY_NAME: Final = "tool_calls_by_name"
# Fields that the camelCase generation does not have.
_TIMES: Final = ("start_time", "end_time", "duration_ms")
_SINCE_SNAKE_CASE: Final = ("llm_call_count", "tool_durations", "start_time", "end_time")


def make_judge_input(
    agentv_case: AgentvCase, transcript: Transcript, config: JsonObject | None, wire: PayloadFormat
) -> str:
    """Encode the input as AgentV prints it: indented by two spaces, non-ASCII unescaped."""
    return stringify_json(make_judge_payload(agentv_case, transcript, config, wire), indent=2)


def make_judge_payload(
    agentv_case: AgentvCase, transcript: Transcript, config: JsonObject | None, wire: PayloadFormat
) -> JsonObject:
    """Make the input as an object."""
    source = _PayloadSource(agentv_case=agentv_case, transcript=transcript, config=config)
    return _FORMATTERS[wire](source)


class _PayloadSource(Struct, frozen=True, kw_only=True):
    agentv_case: AgentvCase
    transcript: Transcript
    config: JsonObject | None


def _format_camel(source: _PayloadSource) -> dict[str, Json]:
    """Format the input for early 2026 (1.6.0): camelCase, without config."""
    return encode_fields(
        {
            "question": extract_question(source.agentv_case),
            "expected_outcome": source.agentv_case.criteria,
            "expected_messages": encode_authored_messages(
                source.agentv_case.expected_messages, to_camel_case
            ),
            "reference_answer": extract_reference_answer(source.agentv_case),
            "candidate_answer": extract_candidate_answer(source.transcript),
            "output_messages": encode_messages(
                source.transcript.messages, to_camel_case, without=_TIMES
            ),
            "guideline_files": source.agentv_case.guideline_files,
            "input_files": source.agentv_case.input_files,
            "input_messages": encode_authored_messages(
                source.agentv_case.input_messages, to_camel_case
            ),
            "trace_summary": None
            if (summary := _make_known_summary(source.transcript)) is None
            else encode_fields(summary, to_camel_case, without=_SINCE_SNAKE_CASE),
        },
        to_camel_case,
    )


def _format_snake(source: _PayloadSource) -> dict[str, Json]:
    """Format the input for 1.6.1 to 2.x; ``criteria`` was called ``expected_outcome`` before."""
    return {
        "question": extract_question(source.agentv_case),
        "criteria": source.agentv_case.criteria,
        "expected_outcome": source.agentv_case.criteria,
        "expected_messages": encode_authored_messages(
            source.agentv_case.expected_messages, to_snake_case
        ),
        "reference_answer": extract_reference_answer(source.agentv_case),
        "candidate_answer": extract_candidate_answer(source.transcript),
        "output_messages": encode_messages(source.transcript.messages, to_snake_case),
        "guideline_files": source.agentv_case.guideline_files,
        "input_files": source.agentv_case.input_files,
        "input_messages": encode_authored_messages(
            source.agentv_case.input_messages, to_snake_case
        ),
        "trace_summary": _make_known_summary(source.transcript),
        "file_changes": source.transcript.file_changes,
        "workspace_path": None,
        "config": source.config,
    }


def _format_v4(source: _PayloadSource) -> dict[str, Json]:
    agentv_case, transcript = source.agentv_case, source.transcript
    summary = make_trace_summary(transcript)
    trace = make_trace_v4(agentv_case, transcript, summary)
    metric_names = ("token_usage", "cost_usd", "duration_ms", "start_time", "end_time")
    counts = {name: value for name, value in summary.items() if name not in metric_names}
    return {
        "criteria": agentv_case.criteria,
        "expected_output": encode_authored_messages(agentv_case.expected_messages, to_snake_case),
        "output": extract_candidate_answer(transcript),
        "messages": trace["messages"],
        "input_files": agentv_case.input_files,
        "input": list(iterate_messages_with_files(agentv_case)),
        "metadata": agentv_case.metadata or None,
        "trace": trace,
        "trace_summary": _rename_summary_fields(counts),
        **{name: summary.get(name) for name in metric_names},
        "file_changes": transcript.file_changes,
        "workspace_path": None,
        "config": source.config,
    }


def _format_snake_and_v4(source: _PayloadSource) -> dict[str, Json]:
    """Merge the formats in snake_case: those of the versions that read ``tests``."""
    summary = _make_known_summary(source.transcript)
    return {
        **_format_snake(source),
        **_format_v4(source),
        "trace_summary": summary and {**summary, "tool_calls": summary[TOOL_CALLS_BY_NAME]},
    }


def _format_union(source: _PayloadSource) -> dict[str, Json]:
    """Merge all formats.

    The SDKs merge both spellings of the summary, so both have the same content.
    """
    summary = _make_known_summary(source.transcript)
    both = summary and {
        **encode_fields(summary, to_camel_case),
        **summary,
        "tool_calls": summary[TOOL_CALLS_BY_NAME],
    }
    return {
        **_format_camel(source),
        **encode_fields(_format_v4(source), to_snake_case),
        **_format_snake(source),
        "traceSummary": both,
        "trace_summary": both,
    }


def _rename_summary_fields(summary: JsonObject) -> JsonObject:
    """Return the summary in the format of 4.x, which has no ``tool_names``."""
    counted = {"tool_calls": summary[TOOL_CALLS_BY_NAME]}
    return {
        **{k: v for k, v in summary.items() if k not in ("tool_names", TOOL_CALLS_BY_NAME)},
        **counted,
    }


_FORMATTERS: Final[Mapping[PayloadFormat, Callable[[_PayloadSource], JsonObject]]] = {
    "union": _format_union,
    "camel": _format_camel,
    "snake": _format_snake,
    "v4": _format_v4,
    "snake+v4": _format_snake_and_v4,
}
