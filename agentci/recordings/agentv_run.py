"""One recorded run of an agent: fields that formats share, and conversion to turns and rows."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, to_builtins

from agentci.model.trace import (
    Message,
    TokenUsage,
    ToolCall,
    ToolResponse,
    ToolUse,
    Trace,
    Transcript,
    Turn,
)
from agentci.model.values import Json, JsonObject, Place
from agentci.recordings.json_documents import DocumentFormatError

ID_KEYS = ("id", "test_id", "eval_id", "case_id")
UNSAFE_IN_PROMPT_ID: Final = re.compile(r"[^A-Za-z0-9_.-]+")
MAX_PROMPT_ID: Final = 48


class RecordedRun(Struct, frozen=True, kw_only=True):
    """One recorded run.

    Attributes:
        case_id: the case that the run names; None if it names none.
        attempt: index of the run among the runs of its case, from 0; None if not recorded.
        question: the user's question, if it can identify the case.
        leaves_out_question: the format of the recording does not hold the question.
        is_session: an imported session of an agent, whose id is not that of a case.
        warnings: what was dropped while reading.
        not_captured: as in ``Trace``.
    """

    case_id: str | None
    transcript: Transcript
    place: Place
    attempt: int | None = None
    question: str | None = None
    leaves_out_question: bool = False
    is_session: bool = False
    warnings: tuple[str, ...] = ()
    not_captured: str = ""


def find_case_id(row: JsonObject) -> str | None:
    """Return the case id in ``row``, under any of AgentV's spellings."""
    ids = (row.get(key) for key in ID_KEYS)
    return next((each for each in ids if isinstance(each, str) and each), None)


def make_prompt_case_id(case_id: str, prompt_id: str) -> str:
    """AgentV's id of a case for one of several prompts."""
    safe = UNSAFE_IN_PROMPT_ID.sub("-", prompt_id.strip()).strip("-")[:MAX_PROMPT_ID]
    return f"{case_id}__prompt_{safe}"


def read_attempt(row: JsonObject) -> int | None:
    """Return the index of the run among the runs of its case; None if not recorded.

    Raises:
        DocumentFormatError: if it is not an integer from 0.
    """
    attempt = row.get("attempt")
    if attempt is None or (type(attempt) is int and attempt >= 0):
        return attempt
    raise DocumentFormatError("`attempt` is not a whole number from 0")


class RunMetrics(Struct, frozen=True, kw_only=True):
    """Tokens, cost and duration of a run; None for what was not recorded."""

    token_usage: TokenUsage | None
    cost_usd: float | None
    duration_ms: float | None
    warnings: tuple[str, ...]


def read_run_metrics(row: JsonObject, *, prefix: str = "") -> RunMetrics:
    """Read the metrics in ``row``; negative values count as not recorded, as in AgentV.

    Args:
        prefix: start of the keys, such as ``transcript_``.

    Raises:
        DocumentFormatError: if a metric is not a number.
    """
    warnings: list[str] = []

    def amount(key: str) -> float | None:
        value = row.get(f"{prefix}{key}")
        number = read_number(value, f"{prefix}{key}")
        if number is not None and number < 0:
            warnings.append(f"`{prefix}{key}` is negative ({number:g}) and was ignored")
            return None
        return number

    return RunMetrics(
        token_usage=_read_token_usage(row.get(f"{prefix}token_usage")),
        cost_usd=amount("cost_usd"),
        duration_ms=amount("duration_ms"),
        warnings=tuple(warnings),
    )


def read_number(value: Json, name: str) -> float | None:
    """Return a number; None if there is none.

    Raises:
        DocumentFormatError: if the value is not a number.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DocumentFormatError(f"`{name}` is not a number")
    return value


def read_optional_text(value: Json, name: str) -> str | None:
    """Return a text; None if there is none.

    Raises:
        DocumentFormatError: if the value is not text.
    """
    if value is None or isinstance(value, str):
        return value
    raise DocumentFormatError(f"`{name}` is not text")


def read_objects(value: Json, name: str) -> Iterator[JsonObject]:
    """Iterate over a list of objects.

    Raises:
        DocumentFormatError: if the value is not a list of objects.
    """
    if not isinstance(value, list):
        raise DocumentFormatError(f"`{name}` is not a list")
    for each in value:
        if not isinstance(each, dict):
            raise DocumentFormatError(f"an item of `{name}` is not an object")
        yield each


def _read_token_usage(value: Json) -> TokenUsage | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise DocumentFormatError("`token_usage` is not an object")
    counts = {
        name: read_number(value.get(name), f"token_usage.{name}")
        for name in ("input", "output", "cached")
    }
    given, produced = counts["input"], counts["output"]
    if given is None or produced is None:
        raise DocumentFormatError("`token_usage` needs `input` and `output`")
    return TokenUsage(input=given, output=produced, cached=counts["cached"])


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
