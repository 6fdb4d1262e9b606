"""Codex: rollout files of sessions, and the stream of ``codex exec --json``."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from agentci._util.text.json_text import is_shallow
from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import Document, DocumentFormatError
from agentci.recordings.telemetry.json_input import (
    iterate_objects,
    parse_int64,
    parse_json_or_text,
    parse_nested_json,
)
from agentci.recordings.transcripts.provider_messages import add_call_item, read_message_texts
from agentci.recordings.transcripts.reader import (
    TranscriptReader,
    TranscriptRun,
    as_object,
    as_text,
    collect_records,
    collect_runs,
    find_text,
    iterate_first_objects,
    join_text,
    looks_like_call,
    make_usage,
)
from agentci.recordings.transcripts.turn_builder import TurnBuilder

# Texts that Codex adds as the user.
_INJECTED: Final = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|subagent_notification|turn_aborted|skill"
    r"|permissions instructions|collaboration_mode|user_shell_command|personality_spec)\b"
    r"|# AGENTS\.md)"
)
_EXIT_CODE: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_CHILD_KEY: Final = '"agent_id"'
_EXIT_CODE_CHARACTERS: Final = 500


def is_injected(text: str) -> bool:
    """Return whether Codex added a text that a record attributes to the user."""
    return _INJECTED.match(text) is not None


def _recognises_rollout(document: Json) -> bool:
    return any(
        record.get("type") == "session_meta" and isinstance(record.get("payload"), dict)
        for record in iterate_first_objects(document)
    )


def _read_rollout(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    rollout = _Rollout()
    first_line = collect_records(documents, rollout)
    yield rollout.build(first_line)


class _Rollout:
    """The records of a session."""

    def __init__(self) -> None:
        self._turns = TurnBuilder()
        self._meta: JsonObject | None = None
        self._models: dict[str, None] = {}
        self._usage: JsonObject = {}
        self._child_ids: dict[str, str | None] = {}
        self._failures: list[str] = []

    def add(self, record: JsonObject) -> None:
        """Add a record; those of the display log are ignored."""
        kind, payload = record.get("type"), as_object(record.get("payload"))
        if kind == "session_meta":
            # Later ones are those of sessions whose history was copied.
            self._meta = self._meta or payload
        elif kind == "turn_context":
            if model := as_text(payload.get("model")):
                self._models[model] = None
        elif kind == "response_item":
            self._add_item(payload)
        elif kind == "event_msg":
            self._add_event(payload)

    def _add_item(self, item: JsonObject) -> None:
        if item.get("type") != "message":
            self._note_child(item)
            add_call_item(self._turns, item, failed=_has_failed(item.get("output")))
        elif item.get("role") == "assistant":
            text = "\n".join(read_message_texts(item))
            self._turns.continue_step()
            self._turns.add_text(text, message_id=as_text(item.get("id")))
        elif item.get("role") == "user":
            written = list(_iterate_written_parts(item))
            if written:
                self._turns.start_turn(join_text(written) or "")

    def _note_child(self, item: JsonObject) -> None:
        """Note the sub-agent that a tool call started, whose records are in a file of its own."""
        output = item.get("output")
        if item.get("type") == "function_call_output" and isinstance(output, str):
            value = parse_json_or_text(output) if _CHILD_KEY in output[:200] else None
            if child := as_text(as_object(value).get("agent_id")):
                self._child_ids[child] = as_text(item.get("call_id"))

    def _add_event(self, event: JsonObject) -> None:
        kind = event.get("type")
        if kind == "token_count":
            total = as_object(event.get("info")).get("total_token_usage")
            self._usage = as_object(total) or self._usage
        elif kind == "turn_aborted":
            self._failures.append("a turn was interrupted")
        elif kind == "error":
            text = as_text(event.get("message")) or "unknown"
            self._failures.append(f"Codex reported an error: {text[:200]}")

    def build(self, line: int) -> TranscriptRun:
        """Return the run."""
        meta = self._meta or {}
        spawn = as_object(
            as_object(as_object(meta.get("source")).get("subagent")).get("thread_spawn")
        )
        return TranscriptRun(
            id=as_text(meta.get("id")),
            line=line,
            turns=self._turns.build(),
            child_ids=self._child_ids,
            parent_id=find_text(spawn, "parent_thread_id") or find_text(meta, "parent_thread_id"),
            agent=find_text(meta, "agent_nickname", "agent_path"),
            usage=make_usage(
                self._usage.get("input_tokens"),
                self._usage.get("output_tokens"),
                self._usage.get("cached_input_tokens"),
            ),
            models=tuple(sorted(self._models)),
            failures=tuple(self._failures),
            lost=tuple(self._turns.lost),
        )


def _iterate_written_parts(item: JsonObject) -> Iterator[JsonObject]:
    """Yield the parts of a user message that the user wrote.

    Since 0.169, records say where each part comes from.
    """
    passthrough = as_object(item.get("internal_chat_message_metadata_passthrough"))
    origins = list(iterate_objects(passthrough.get("content_item_metadata")))
    parts = list(iterate_objects(item.get("content")))
    for index, part in enumerate(parts):
        origin = None
        if len(origins) == len(parts):
            origin = as_object(origins[index].get("provenance")).get("type")
        text = part.get("text")
        if origin not in (None, "user") or (isinstance(text, str) and is_injected(text)):
            continue
        yield part


def _has_failed(output: Json) -> bool | None:
    """Return whether the output of a command states an exit code other than 0; None without one."""
    text = join_text(output)
    if not text:
        succeeded = as_object(output).get("success")
        return not succeeded if isinstance(succeeded, bool) else None
    if text.startswith("{"):
        try:
            value = parse_nested_json(text)
        except ValueError:
            return None
        code = parse_int64(as_object(as_object(value).get("metadata")).get("exit_code"))
        return None if code is None else code != 0
    found = _EXIT_CODE.search(text[:_EXIT_CODE_CHARACTERS])
    return None if found is None else found[1] != "0"


ROLLOUT: Final = TranscriptReader(recognises=_recognises_rollout, read=_read_rollout)


def _recognises_exec(document: Json) -> bool:
    return any(
        record.get("type") == "thread.started" and "thread_id" in record
        for record in iterate_first_objects(document)
    )


def _read_exec(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    for stream, first_line in collect_runs(documents, _ExecStream, _find_start):
        yield stream.build(first_line)


def _find_start(record: JsonObject) -> str | None:
    return as_text(record.get("thread_id")) if record.get("type") == "thread.started" else None


class _ExecStream:
    """The records of ``codex exec --json``, which hold no prompt and no model."""

    def __init__(self) -> None:
        self._turns = TurnBuilder()
        self._thread_id: str | None = None
        self._usage: JsonObject = {}
        self._ended = False
        self._failures: list[str] = []

    def add(self, record: JsonObject) -> None:
        """Add a record."""
        kind = record.get("type")
        if kind == "thread.started":
            self._thread_id = as_text(record.get("thread_id"))
        elif kind == "turn.started":
            self._turns.end_turn()
            self._ended = False
        elif kind in ("item.started", "item.updated", "item.completed"):
            self._add_item(as_object(record.get("item")), completed=kind == "item.completed")
        elif kind == "turn.completed":
            self._usage = as_object(record.get("usage"))
            self._ended = True
        elif kind in ("turn.failed", "error"):
            error = find_text(as_object(record.get("error")), "message")
            error = error or find_text(record, "message") or "unknown"
            self._failures.append(f"Codex reported an error: {error[:200]}")

    def _add_item(self, item: JsonObject, *, completed: bool) -> None:
        kind, item_id = item.get("type"), as_text(item.get("id"))
        if kind == "agent_message":
            if completed:
                self._turns.add_text(item.get("text"))
            return
        call = _read_exec_call(item)
        if call is None:
            return
        # A call is in the order of its start; its arguments may be complete only at its end.
        if item_id is None or not self._turns.replace_call(item_id, *call):
            self._turns.add_call(*call, item_id)
        if completed:
            self._turns.add_result(item_id, _read_exec_result(item), failed=_has_item_failed(item))

    def build(self, line: int) -> TranscriptRun:
        """Return the run."""
        if not self._ended:
            self._failures.append(
                "the stream has no `turn.completed` at its end: the run was interrupted"
            )
        return TranscriptRun(
            id=self._thread_id,
            line=line,
            turns=self._turns.build(),
            usage=make_usage(
                self._usage.get("input_tokens"),
                self._usage.get("output_tokens"),
                self._usage.get("cached_input_tokens"),
            ),
            failures=tuple(self._failures),
            lost=tuple(self._turns.lost),
        )


def _read_exec_call(item: JsonObject) -> tuple[Json, Json] | None:
    """Return name and arguments of a tool's item; None for other items."""
    kind = item.get("type")
    if kind == "mcp_tool_call":
        return item.get("tool"), item.get("arguments")
    if kind == "collab_tool_call":
        names = ("prompt", "receiver_thread_ids")
        return item.get("tool"), {name: item[name] for name in names if item.get(name)}
    fields = {"command_execution": "command", "web_search": "query", "file_change": "changes"}
    field = fields.get(kind) if isinstance(kind, str) else None
    if field is None and looks_like_call(kind):
        raise DocumentFormatError(f"an item of type `{str(kind)[:40]}` is not read")
    return None if field is None else (kind, {field: item.get(field)})


def _read_exec_result(item: JsonObject) -> Json:
    if "aggregated_output" in item:
        return item.get("aggregated_output")
    error = item.get("error")
    if error is not None:
        return find_text(as_object(error), "message") or error
    result = item.get("result")
    content = as_object(result).get("content")
    states = item.get("agents_states")
    value = result if content is None else content
    return states if value is None and is_shallow(states, 8) else value


def _has_item_failed(item: JsonObject) -> bool | None:
    code = item.get("exit_code")
    if item.get("status") in ("failed", "declined") or (type(code) is int and code != 0):
        return True
    return False if item.get("status") == "completed" or code == 0 else None


EXEC: Final = TranscriptReader(recognises=_recognises_exec, read=_read_exec)
