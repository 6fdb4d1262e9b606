"""Gemini CLI: sessions and ``--output-format stream-json``; sessions of its fork Qwen Code."""

from collections.abc import Iterable, Iterator
from typing import Final

from agentci.model.trace import SubagentRun
from agentci.model.values import Json, JsonObject, replace
from agentci.recordings.json_documents import Document, DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects, parse_int64
from agentci.recordings.transcripts import adk
from agentci.recordings.transcripts.reader import (
    TranscriptReader,
    TranscriptRun,
    UsageSum,
    as_object,
    as_text,
    collect_records,
    collect_runs,
    find_text,
    iterate_first_objects,
    iterate_texts,
    looks_like_call,
    make_step,
    make_usage,
)
from agentci.recordings.transcripts.turn_builder import TurnBuilder

_CONTEXT: Final = "<session_context>"


def is_injected(text: str) -> bool:
    """Return whether the CLI added a text that a record attributes to the user."""
    return text.lstrip().startswith(_CONTEXT)


def _recognises_session(document: Json) -> bool:
    return any(
        isinstance(record.get("sessionId"), str) and "projectHash" in record
        for record in iterate_first_objects(document)
    )


def _read_session(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    history = _History()
    first_line = collect_records(documents, history)
    try:
        yield history.build(first_line)
    except DocumentFormatError as error:
        raise DocumentFormatError(str(error), line=first_line) from None


class _History:
    """The messages of a session by id, as its records change them."""

    def __init__(self) -> None:
        self._header: JsonObject | None = None
        self._messages: dict[str, JsonObject] = {}

    def add(self, record: JsonObject) -> None:
        """Apply a record: a header, a message, or a change."""
        if "projectHash" in record:
            self._header = self._header or record
            self._add_messages(record.get("messages"))
        elif "$set" in record:
            self._add_messages(as_object(record.get("$set")).get("messages"))
        elif (start := as_text(record.get("$rewindTo"))) is not None:
            self._rewind(start)
        elif as_text(record.get("id")) is not None:
            self._merge(record)

    def _add_messages(self, messages: Json) -> None:
        for message in iterate_objects(messages):
            self._merge(message)

    def _merge(self, message: JsonObject) -> None:
        """Add a message, or update it: it is written again once its tools have run."""
        message_id = as_text(message.get("id")) or f"#{len(self._messages)}"
        before = self._messages.get(message_id, {})
        changed = dict(message)
        if changed.get("type") == "message_update":
            del changed["type"]
        if before.get("toolCalls") and not changed.get("toolCalls"):
            # A resumed session repeats its history without the calls.
            changed.pop("toolCalls", None)
            changed.pop("content", None)
        self._messages[message_id] = {**before, **changed}

    def _rewind(self, start: str) -> None:
        """Remove a message and those after it."""
        ids = list(self._messages)
        if start in self._messages:
            for message_id in ids[ids.index(start) :]:
                del self._messages[message_id]

    def build(self, line: int) -> TranscriptRun:
        """Return the run."""
        turns, usage, models = TurnBuilder(), UsageSum(), dict[str, None]()
        children: dict[str, str | None] = {}
        for message_id, message in self._messages.items():
            if message.get("type") == "user":
                _add_user(turns, message.get("content"))
            elif message.get("type") == "gemini" or message.get("toolCalls"):
                tokens = as_object(message.get("tokens"))
                counts = tuple(tokens.get(name) for name in ("input", "output", "cached"))
                turns.start_step(make_step(message.get("model"), *counts))
                _add_reply(turns, message, children)
                usage.add(message_id, *counts)
                if model := as_text(message.get("model")):
                    models[model] = None
        return TranscriptRun(
            id=as_text((self._header or {}).get("sessionId")),
            line=line,
            turns=turns.build(),
            child_ids=children,
            usage=usage.total,
            models=tuple(sorted(models)),
            lost=tuple(turns.lost),
        )


def _add_user(turns: TurnBuilder, content: Json) -> None:
    """Start a turn, unless the message holds only tool results or was added by the CLI."""
    has_results = False
    for part in iterate_objects(content):
        if response := as_object(part.get("functionResponse")):
            has_results = True
            call_id = as_text(response.get("id"))
            if call_id is not None and not turns.has_result(call_id):
                _add_response(turns, call_id, response)
    written = [text for text in iterate_texts(content) if not is_injected(text)]
    if written and any(text.strip() for text in written):
        turns.start_turn("\n".join(written))
    elif (
        isinstance(content, list)
        and content
        and not has_results
        and not list(iterate_texts(content))
    ):
        turns.start_turn("")


def _add_response(turns: TurnBuilder, call_id: str | None, response: JsonObject) -> None:
    value = response.get("response")
    fields = as_object(value)
    failed = "error" in fields or (False if "output" in fields else None)
    output = next((fields[name] for name in ("output", "error") if name in fields), value)
    turns.add_result(call_id, output, failed=failed)


def _add_reply(turns: TurnBuilder, message: JsonObject, children: dict[str, str | None]) -> None:
    content = message.get("content")
    turns.add_text("\n".join(iterate_texts(content)))
    calls = list(iterate_objects(message.get("toolCalls")))
    for call in calls:
        call_id = as_text(call.get("id"))
        turns.add_call(call.get("name"), call.get("args"), call_id)
        _add_call_result(turns, call, call_id)
        if child := as_text(call.get("agentId")):
            children[child] = call_id
    if not calls:
        for part in iterate_objects(content):
            if call := as_object(part.get("functionCall")):
                turns.add_call(call.get("name"), call.get("args"), call.get("id"))


def _add_call_result(turns: TurnBuilder, call: JsonObject, call_id: str | None) -> None:
    result = call.get("result")
    response = next(
        (
            found
            for part in iterate_objects(result)
            if (found := as_object(part.get("functionResponse")))
        ),
        None,
    )
    if call_id is not None and response is not None:
        _add_response(turns, call_id, response)
    elif result is not None:
        turns.add_result(call_id, result, failed=_read_status(call))


def _read_status(record: JsonObject) -> bool | None:
    """Return whether a tool failed; None if that is not recorded."""
    return {"error": True, "success": False}.get(str(record.get("status")))


SESSION: Final = TranscriptReader(recognises=_recognises_session, read=_read_session)


def _is_qwen_record(record: JsonObject) -> bool:
    """Return whether a record is of Qwen Code: Google's parts in a record of Claude Code."""
    parts = as_object(record.get("message")).get("parts")
    return isinstance(record.get("sessionId"), str) and isinstance(parts, list)


def _recognises_qwen(document: Json) -> bool:
    return any(map(_is_qwen_record, iterate_first_objects(document)))


def _read_qwen(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    session = _QwenSession()
    first_line = collect_records(documents, session)
    yield session.build(first_line)


class _QwenSession:
    """The records of a session of Qwen Code, which are in their order."""

    def __init__(self) -> None:
        self._turns = TurnBuilder()
        self._usage = UsageSum()
        self._models: set[str] = set()
        self._subagents: list[SubagentRun] = []
        self._id: str | None = None
        self._seen: set[str] = set()

    def add(self, record: JsonObject) -> None:
        """Add a record; those of the program itself are ignored."""
        record_id, kind = as_text(record.get("uuid")), record.get("type")
        if record_id is not None and record_id in self._seen:
            return
        if record_id is not None:
            self._seen.add(record_id)
        self._id = self._id or as_text(record.get("sessionId"))
        parts = list(iterate_objects(as_object(record.get("message")).get("parts")))
        if kind == "user":
            _add_user(self._turns, list[Json](parts))
        elif kind == "assistant":
            self._add_reply(record, parts)
        elif kind == "tool_result":
            self._add_results(record, parts)
        elif kind != "system":
            raise DocumentFormatError(f"a record of type `{str(kind)[:40]}` is not read")

    def _add_reply(self, record: JsonObject, parts: list[JsonObject]) -> None:
        tokens = as_object(record.get("usageMetadata"))
        counts = tuple(tokens.get(name) for name in _QWEN_COUNTS)
        self._turns.start_step(make_step(record.get("model"), *counts))
        adk.add_parts(self._turns, parts, is_user=False)
        self._usage.add(as_text(record.get("uuid")), *counts)
        if model := as_text(record.get("model")):
            self._models.add(model)

    def _add_results(self, record: JsonObject, parts: list[JsonObject]) -> None:
        result = as_object(record.get("toolCallResult"))
        for part in parts:
            if response := as_object(part.get("functionResponse")):
                _add_response(self._turns, as_text(response.get("id")), response)
        ran = as_object(result.get("resultDisplay"))
        if ran.get("type") == "task_execution":
            self._add_subagent(ran, as_text(result.get("callId")))

    def _add_subagent(self, ran: JsonObject, call_id: str | None) -> None:
        """Add a sub-agent, whose tool calls are only counted."""
        turns = TurnBuilder()
        turns.start_turn(as_text(ran.get("taskPrompt")))
        turns.add_text(ran.get("result"))
        counted = parse_int64(as_object(ran.get("executionSummary")).get("totalToolCalls"))
        [turn] = turns.build()
        self._subagents.append(
            SubagentRun(
                name=as_text(ran.get("subagentName")),
                call_id=call_id,
                turns=(replace(turn, tool_calls_recorded=counted == 0),),
            )
        )

    def build(self, line: int) -> TranscriptRun:
        """Return the run."""
        return TranscriptRun(
            id=self._id,
            line=line,
            turns=self._turns.build(),
            subagents=tuple(self._subagents),
            usage=self._usage.total,
            models=tuple(sorted(self._models)),
            lost=tuple(self._turns.lost),
        )


_QWEN_COUNTS: Final = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount")
QWEN_SESSION: Final = TranscriptReader(recognises=_recognises_qwen, read=_read_qwen)


def _recognises_stream(document: Json) -> bool:
    return any(
        record.get("type") == "init" and isinstance(record.get("session_id"), str)
        for record in iterate_first_objects(document)
    )


def _read_stream(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    for stream, first_line in collect_runs(documents, _GeminiStream, _find_start):
        yield stream.build(first_line)


def _find_start(record: JsonObject) -> str | None:
    return as_text(record.get("session_id")) if record.get("type") == "init" else None


class _GeminiStream:
    """The records of a stream, in which answers come in pieces.

    The CLI runs the tools of a reply when the reply is complete, so results end it.
    """

    def __init__(self) -> None:
        self._turns = TurnBuilder()
        self._answer: list[str] = []
        self._init: JsonObject = {}
        self._stats: JsonObject | None = None
        self._failures: list[str] = []

    def add(self, record: JsonObject) -> None:
        """Add a record."""
        kind = record.get("type")
        if kind == "message" and record.get("role") == "assistant":
            self._answer += iterate_texts(record.get("content"))
            return
        self._end_answer()
        if kind == "init":
            self._init = self._init or record
        elif kind == "message" and record.get("role") == "user":
            self._turns.start_turn("\n".join(iterate_texts(record.get("content"))))
        elif kind == "tool_use":
            name, args = record.get("tool_name"), record.get("parameters")
            self._turns.continue_step()
            self._turns.add_call(name, args, record.get("tool_id"))
        elif kind == "tool_result":
            self._add_result(record)
        else:
            self._note_end(record)

    def _add_result(self, record: JsonObject) -> None:
        self._turns.end_step()
        output = record.get("output")
        if output is None:
            output = find_text(as_object(record.get("error")), "message")
        failed = _read_status(record)
        self._turns.add_result(record.get("tool_id"), output, failed=failed)

    def _note_end(self, record: JsonObject) -> None:
        kind = record.get("type")
        if looks_like_call(kind):
            raise DocumentFormatError(f"a record of type `{str(kind)[:40]}` is not read")
        if kind == "error":
            text = find_text(record, "message") or "unknown"
            self._failures.append(f"Gemini CLI reported: {text[:200]}")
        elif record.get("type") == "result":
            self._stats = as_object(record.get("stats"))
            if record.get("status") != "success":
                self._failures.append("the run ended with an error")

    def _end_answer(self) -> None:
        if self._answer:
            self._turns.continue_step()
        self._turns.add_text("".join(self._answer))
        self._answer.clear()

    def build(self, line: int) -> TranscriptRun:
        """Return the run."""
        self._end_answer()
        if self._stats is None:
            self._failures.append("the stream has no `result` at its end: the run was interrupted")
        stats, model = self._stats or {}, as_text(self._init.get("model"))
        return TranscriptRun(
            id=as_text(self._init.get("session_id")),
            line=line,
            turns=self._turns.build(),
            usage=make_usage(
                stats.get("input_tokens"), stats.get("output_tokens"), stats.get("cached")
            ),
            models=(model,) if model else (),
            failures=tuple(self._failures),
            lost=tuple(self._turns.lost),
        )


STREAM: Final = TranscriptReader(recognises=_recognises_stream, read=_read_stream)
