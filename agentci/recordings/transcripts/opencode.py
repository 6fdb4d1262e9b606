"""OpenCode: exports of sessions, and the stream of ``opencode run --format json``."""

from collections.abc import Iterable, Iterator
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import Document, DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.transcripts.reader import (
    TranscriptReader,
    TranscriptRun,
    UsageSum,
    as_object,
    as_text,
    find_text,
    iterate_first_objects,
    iterate_records,
    looks_like_call,
    make_step,
    parse_cost,
    sum_costs,
)
from agentci.recordings.transcripts.turn_builder import TurnBuilder

_STREAM_TYPES: Final = ("step_start", "text", "tool_use", "step_finish", "reasoning")


def _recognises_export(document: Json) -> bool:
    fields = as_object(document)
    session_id = as_object(fields.get("info")).get("id")
    return (
        isinstance(session_id, str)
        and isinstance(fields.get("messages"), list)
        and all(
            "info" in message and "parts" in message
            for message in iterate_objects(fields["messages"])
        )
    )


def _read_export(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    for document in documents:
        if not _recognises_export(document.value):
            message = "not an export of a session: no `info` and `messages`"
            raise DocumentFormatError(message, line=document.line)
        try:
            yield _read_session(as_object(document.value), document.line)
        except DocumentFormatError as error:
            raise DocumentFormatError(str(error), line=document.line) from None


def _read_session(export: JsonObject, line: int) -> TranscriptRun:
    turns, usage, costs = TurnBuilder(), UsageSum(), list[float | None]()
    models, children, failures = dict[str, None](), dict[str, str | None](), list[str]()
    for message in iterate_objects(export.get("messages")):
        info, parts = as_object(message.get("info")), list(iterate_objects(message.get("parts")))
        if info.get("role") == "user":
            _add_user(turns, parts)
        elif info.get("role") == "assistant":
            if info.get("summary") is True:
                continue
            for part in parts:
                _add_part(turns, part, info, children)
            _add_usage(usage, as_object(info.get("tokens")))
            costs.append(parse_cost(info.get("cost")))
            if model := as_text(info.get("modelID")):
                models[model] = None
            if error := as_text(as_object(info.get("error")).get("name")):
                failures.append(f"OpenCode reported an error: {error[:100]}")
    session = as_object(export.get("info"))
    total = UsageSum()
    _add_usage(total, as_object(session.get("tokens")))
    cost = parse_cost(session.get("cost"))
    return TranscriptRun(
        id=as_text(session.get("id")),
        line=line,
        turns=turns.build(),
        parent_id=as_text(session.get("parentID")),
        child_ids=children,
        agent=as_text(session.get("agent")),
        usage=total.total or usage.total,
        models=tuple(sorted(models)),
        cost_usd=sum_costs(costs) if cost is None else cost,
        failures=tuple(failures),
        lost=tuple(turns.lost),
    )


def _add_user(turns: TurnBuilder, parts: list[JsonObject]) -> None:
    """Start a turn with what the user wrote; the text of attached files is synthetic."""
    texts = [
        text
        for part in parts
        if part.get("type") == "text" and part.get("synthetic") is not True
        if (text := as_text(part.get("text")))
    ]
    if texts or any(part.get("type") == "file" for part in parts):
        turns.start_turn("\n".join(texts))


def _add_part(
    turns: TurnBuilder, part: JsonObject, message: JsonObject, children: dict[str, str | None]
) -> None:
    """Add a part of a message of the model, which has an id and may name the model."""
    kind, model = part.get("type"), message.get("modelID")
    if kind == "text":
        if part.get("synthetic") is not True:
            turns.add_text(part.get("text"), message_id=as_text(message.get("id")))
    elif kind == "step-start":
        turns.start_step(make_step(model))
    elif kind == "step-finish":
        counts = _list_counts(as_object(part.get("tokens")))
        turns.measure_step(make_step(model, *counts, part.get("cost")))
        turns.end_step()
    elif kind == "tool":
        _add_tool(turns, part, children)
    elif looks_like_call(kind):
        raise DocumentFormatError(f"a part of type `{str(kind)[:40]}` is not read")


def _add_tool(turns: TurnBuilder, part: JsonObject, children: dict[str, str | None]) -> None:
    """Add a call with its result; the ids of sub-agents go to ``children``."""
    call_id, state = as_text(part.get("callID")), as_object(part.get("state"))
    turns.add_call(part.get("tool"), state.get("input"), call_id)
    metadata, status = as_object(state.get("metadata")), state.get("status")
    exit_code, times = metadata.get("exit"), as_object(state.get("time"))
    if status == "completed":
        failed = type(exit_code) is int and exit_code != 0
        turns.add_result(call_id, state.get("output"), failed=failed)
    elif status == "error":
        turns.add_result(call_id, state.get("error"), failed=True)
    if call_id is not None:
        turns.time_call(call_id, times.get("start"), times.get("end"))
    if child := find_text(metadata, "sessionId", "sessionID"):
        children[child] = call_id


def _add_usage(usage: UsageSum, tokens: JsonObject) -> None:
    usage.add(None, *_list_counts(tokens))


def _list_counts(tokens: JsonObject) -> tuple[Json, Json, Json]:
    """Return the tokens of input, output, and those read from a cache."""
    cached = as_object(tokens.get("cache")).get("read")
    return tokens.get("input"), tokens.get("output"), cached


EXPORT: Final = TranscriptReader(recognises=_recognises_export, read=_read_export)


def _recognises_stream(document: Json) -> bool:
    return any(
        record.get("type") in _STREAM_TYPES
        and isinstance(record.get("sessionID"), str)
        and isinstance(record.get("part"), dict)
        for record in iterate_first_objects(document)
    )


def _read_stream(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    turns, usage, costs = TurnBuilder(), UsageSum(), list[float | None]()
    children, failures = dict[str, str | None](), list[str]()
    session_id: str | None = None
    first_line = 0
    for record, line in iterate_records(documents):
        first_line = first_line or line
        session_id = session_id or as_text(record.get("sessionID"))
        part = as_object(record.get("part"))
        if record.get("type") == "error":
            name = find_text(as_object(record.get("error")), "name") or "unknown"
            failures.append(f"OpenCode reported an error: {name[:100]}")
        try:
            _add_part(turns, part, {"id": part.get("messageID")}, children)
        except DocumentFormatError as error:
            raise DocumentFormatError(str(error), line=line) from None
        if part.get("type") == "step-finish":
            _add_usage(usage, as_object(part.get("tokens")))
            costs.append(parse_cost(part.get("cost")))
    yield TranscriptRun(
        id=session_id,
        line=first_line or 1,
        turns=turns.build(),
        child_ids=children,
        usage=usage.total,
        cost_usd=sum_costs(costs),
        failures=tuple(failures),
        lost=tuple(turns.lost),
    )


STREAM: Final = TranscriptReader(recognises=_recognises_stream, read=_read_stream)
