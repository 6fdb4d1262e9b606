"""GitHub Copilot CLI: session events, and the stream of ``--output-format json``."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from agentci.model.trace import SubagentRun
from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import Document, DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.transcripts.reader import (
    TranscriptReader,
    TranscriptRun,
    UsageSum,
    as_object,
    as_text,
    collect_records,
    find_text,
    iterate_first_objects,
    join_text,
    looks_like_call,
    make_step,
)
from agentci.recordings.transcripts.turn_builder import TurnBuilder

# The CLI replaces the values of secrets by this, wherever they occur.
_MASK: Final = "******"
_READ_TYPES: Final = (
    *("session.start", "user.message", "assistant.message", "tool.execution_start"),
    *("tool.execution_complete", "session.usage_record", "session.error", "abort"),
)
_AGENT_SOURCE: Final = "agent-"


def _recognises(document: Json) -> bool:
    return any(_is_event(one) or _is_flat(one) for one in iterate_first_objects(document))


def _is_flat(record: JsonObject) -> bool:
    """Return whether a record is of the form without ``data``, by keys that only it has."""
    kind = record.get("type")
    if kind == "tool_use":
        return isinstance(record.get("name"), str) and "input" in record and "role" not in record
    return kind == "usage" and "input_tokens" in record


def _is_event(record: JsonObject) -> bool:
    kind = record.get("type")
    return (
        isinstance(kind, str)
        and "." in kind
        and isinstance(record.get("data"), dict)
        and "id" in record
        and "parentId" in record
        and "timestamp" in record
    )


@lru_cache(maxsize=256)
def _unmask_type(kind: str) -> str:
    """Return the type of an event, parts of which may be masked as a secret."""
    if _MASK not in kind:
        return kind
    pattern = re.compile(".+".join(map(re.escape, kind.split(_MASK)[:8])))
    return next((known for known in _READ_TYPES if pattern.fullmatch(known)), kind)


def _read(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    session = _Events()
    first_line = collect_records(documents, session)
    yield session.build(first_line)


class _Events:
    """The events of a session, by agent."""

    def __init__(self) -> None:
        self._main = TurnBuilder()
        self._agents: dict[str, tuple[TurnBuilder, str | None]] = {}
        self._names: dict[str, str] = {}
        self._usage = UsageSum()
        self._models: dict[str, None] = {}
        self._session_id: str | None = None
        self._failures: list[str] = []

    def add(self, record: JsonObject) -> None:
        """Add an event; those that repeat others in pieces are ignored."""
        kind, data = record.get("type"), as_object(record.get("data"))
        if "data" not in record:
            self._add_flat(record)
            return
        if record.get("ephemeral") is True or not isinstance(kind, str):
            return
        kind = _unmask_type(kind)
        if kind == "session.start":
            self._session_id = self._session_id or as_text(data.get("sessionId"))
        elif kind == "session.usage_record":
            self._add_usage(record, as_object(data.get("usage")))
        elif kind in ("session.error", "abort"):
            text = find_text(data, "message", "reason") or "unknown"
            self._failures.append(f"Copilot reported an error: {text[:200]}")
        elif kind in _READ_TYPES:
            self._add_message(record, kind, data)

    def _add_flat(self, record: JsonObject) -> None:
        """Add a record without ``data``: the end of a stream, or all records of the older form.

        These do not tell replies apart.
        """
        kind = record.get("type")
        if model := as_text(record.get("model")):
            self._models[model] = None
        if kind == "result":
            self._session_id = self._session_id or as_text(record.get("sessionId"))
        elif kind == "usage":
            self._usage.add(None, record.get("input_tokens"), record.get("output_tokens"))
        elif kind == "tool_use":
            self._main.add_call(record.get("name"), record.get("input"), record.get("id"))
        elif kind == "tool_result":
            is_error = record.get("is_error")
            failed = is_error if isinstance(is_error, bool) else None
            call_id, output = record.get("tool_use_id"), record.get("content")
            self._main.add_result(call_id, output, failed=failed)
        elif kind == "message":
            self._add_flat_message(record.get("role"), join_text(record.get("content")))
        elif kind == "text" or looks_like_call(kind):
            raise DocumentFormatError(f"a record of type `{str(kind)[:40]}` is not read")

    def _add_flat_message(self, role: Json, text: str | None) -> None:
        if role == "assistant":
            self._main.add_text(text)
        elif role == "user":
            self._main.start_turn(text or "")

    def _add_message(self, record: JsonObject, kind: str, data: JsonObject) -> None:
        turns, is_main = self._find_turns(record, data)
        if kind == "user.message":
            content = data.get("content")
            turns.start_turn(content if isinstance(content, str) else "")
        elif kind == "assistant.message":
            turns.start_step(make_step(data.get("model")))
            turns.add_text(data.get("content"))
            for call in iterate_objects(data.get("toolRequests")):
                turns.add_call(call.get("name"), call.get("arguments"), call.get("toolCallId"))
            if is_main and (model := as_text(data.get("model"))):
                self._models[model] = None
        elif kind == "tool.execution_complete":
            self._add_result(turns, data)

    def _find_turns(self, record: JsonObject, data: JsonObject) -> tuple[TurnBuilder, bool]:
        """Return the turns of the agent of an event, and whether it is the main agent."""
        call_id = as_text(data.get("parentToolCallId"))
        source = as_text(data.get("source"))
        is_delegated = source is not None and source.startswith(_AGENT_SOURCE)
        agent = as_text(record.get("agentId")) or call_id
        if agent is None and not is_delegated:
            return self._main, True
        turns, known_call = self._agents.get(agent or "", (TurnBuilder(), None))
        self._agents[agent or ""] = turns, known_call or call_id
        return turns, False

    def _add_result(self, turns: TurnBuilder, data: JsonObject) -> None:
        code = as_object(data.get("shellExecution")).get("exitCode")
        succeeded = data.get("success")
        failed = not succeeded if isinstance(succeeded, bool) else None
        if type(code) is int:
            failed = code != 0 or failed
        result, error = as_object(data.get("result")), data.get("error")
        output = result.get("content") if "content" in result else data.get("result")
        if output is None and error is not None:
            output = find_text(as_object(error), "message") or error
        turns.add_result(data.get("toolCallId"), output, failed=failed)

    def _add_usage(self, record: JsonObject, usage: JsonObject) -> None:
        if as_text(record.get("agentId")) or as_text(usage.get("parentToolCallId")):
            return
        key, given = as_text(usage.get("apiCallId")), usage.get("inputTokens")
        self._usage.add(key, given, usage.get("outputTokens"), usage.get("cacheReadTokens"))

    def build(self, line: int) -> TranscriptRun:
        """Return the run."""
        return TranscriptRun(
            id=self._session_id,
            line=line,
            turns=self._main.build(),
            subagents=tuple(
                SubagentRun(name=agent or None, call_id=call_id, turns=turns.build())
                for agent, (turns, call_id) in self._agents.items()
            ),
            usage=self._usage.total,
            models=tuple(sorted(self._models)),
            failures=tuple(self._failures),
            lost=tuple(self._main.lost),
        )


EVENTS: Final = TranscriptReader(recognises=_recognises, read=_read)
