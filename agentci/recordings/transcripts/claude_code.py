"""Claude Code: session files, the stream on stdout, and the execution file of its action."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from agentci.model.trace import SubagentRun
from agentci.model.values import Json, JsonObject, replace
from agentci.recordings.json_documents import Document, DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects, parse_finite_float
from agentci.recordings.transcripts.provider_messages import (
    add_anthropic_answer,
    add_anthropic_results,
    has_question,
    make_message_step,
)
from agentci.recordings.transcripts.reader import (
    TranscriptReader,
    TranscriptRun,
    UsageSum,
    as_object,
    as_text,
    collect_records,
    collect_runs,
    iterate_first_objects,
    iterate_texts,
    parse_cost,
)
from agentci.recordings.transcripts.turn_builder import TurnBuilder, summarize_warnings

# Texts that Claude Code adds as the user.
INJECTED_TEXT: Final = re.compile(
    r"\s*(?:<(?:local-command-|bash-(?:input|stdout|stderr)|system-reminder|task-notification"
    r"|user-prompt-submit-hook)|\[Request interrupted by user)"
)
_COMMAND: Final = re.compile(r"\s*<command-(?:name|message)>")
_COMMAND_NAME: Final = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_COMMAND_ARGS: Final = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_SYNTHETIC_MODEL: Final = "<synthetic>"


class _Agent:
    """The main agent or a sub-agent of a session."""

    def __init__(self, *, name: str | None = None, call_id: str | None = None) -> None:
        self.turns = TurnBuilder()
        self.name = name
        self.call_id = call_id
        self.usage = UsageSum()
        self.models: dict[str, None] = {}
        self.warnings: list[str] = []
        self._is_command = False

    def add_user(self, content: Json) -> None:
        """Add tool results, and start a turn with what the user wrote."""
        add_anthropic_results(self.turns, content)
        if not has_question(content):
            return
        texts = list(iterate_texts(content))
        written = [text for text in texts if not INJECTED_TEXT.match(text) or _COMMAND.match(text)]
        if texts and not written:
            return
        self._drop_local_command()
        question = "\n".join(written)
        if _COMMAND.match(question):
            self._is_command = True
            name, args = _COMMAND_NAME.search(question), _COMMAND_ARGS.search(question)
            question = " ".join(found[1] for found in (name, args) if found and found[1])
        self.turns.start_turn(question)

    def _drop_local_command(self) -> None:
        """Remove the turn of a command that Claude Code ran without the model, such as /clear."""
        if self._is_command:
            self.turns.drop_idle_turn()
        self._is_command = False

    def add_assistant(self, message: JsonObject, error: Json = None) -> None:
        """Add a part of a reply of the model; each of its blocks is a record of its own."""
        model = as_text(message.get("model"))
        if model == _SYNTHETIC_MODEL:
            text = " ".join(iterate_texts(message.get("content")))
            if error:
                self.warnings.append(f"Claude Code reported an error: {text[:200]}")
            return
        message_id = as_text(message.get("id"))
        self.turns.start_step(make_message_step(message), key=message_id)
        add_anthropic_answer(self.turns, message.get("content"), message_id=message_id)
        usage = as_object(message.get("usage"))
        given, produced = usage.get("input_tokens"), usage.get("output_tokens")
        self.usage.add(message_id, given, produced, usage.get("cache_read_input_tokens"))
        if model is not None:
            self.models[model] = None

    def build(self) -> SubagentRun:
        """Return the run of a sub-agent."""
        self._drop_local_command()
        return SubagentRun(name=self.name, call_id=self.call_id, turns=self.turns.build())

    def finish(self) -> None:
        """Remove what turned out not to be a turn."""
        self._drop_local_command()


def _recognises_session(document: Json) -> bool:
    return any(map(_is_session_record, iterate_first_objects(document)))


def _is_session_record(record: JsonObject) -> bool:
    return (
        record.get("type") in ("user", "assistant")
        and isinstance(record.get("sessionId"), str)
        and "uuid" in record
        and "parentUuid" in record
        and isinstance(record.get("message"), dict)
    )


def _read_session(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    session = _Session()
    first_line = collect_records(documents, session)
    yield session.build(first_line)


class _Session:
    """The records of a session file, by agent."""

    def __init__(self) -> None:
        self._main = _Agent()
        self._agents: dict[str, _Agent] = {}
        self._agent_of_record: dict[str, _Agent] = {}
        self._seen: set[str] = set()
        self._session_id: str | None = None
        self._session_ids: set[str | None] = set()
        self._child_ids: dict[str, str | None] = {}
        self._has_main = False

    def add(self, record: JsonObject) -> None:
        """Add a record of the user or the model; others are ignored."""
        if not _is_session_record(record):
            return
        record_id = as_text(record.get("uuid"))
        if record_id is not None:
            if record_id in self._seen:
                return
            self._seen.add(record_id)
        self._session_id = as_text(record.get("sessionId")) or self._session_id
        self._session_ids.add(self._session_id)
        agent = self._find_agent(record, record_id)
        if record.get("isMeta") is True or record.get("isCompactSummary") is True:
            return
        message = as_object(record.get("message"))
        if "content" not in message and "parts" in message:
            raise DocumentFormatError("a message with `parts`, as Qwen Code writes it, is not read")
        if record.get("type") == "user":
            self._note_child(record, message.get("content"))
            agent.add_user(message.get("content"))
        else:
            agent.add_assistant(message, record.get("isApiErrorMessage") or record.get("error"))

    def _note_child(self, record: JsonObject, content: Json) -> None:
        """Note the sub-agent that a tool call started, whose records are in a file of its own."""
        child = as_text(as_object(record.get("toolUseResult")).get("agentId"))
        call_id = next(
            (as_text(block.get("tool_use_id")) for block in iterate_objects(content)), None
        )
        if child is not None:
            self._child_ids[child] = call_id

    def _find_agent(self, record: JsonObject, record_id: str | None) -> _Agent:
        """Return the agent of a record: sub-agents have an id, or are chains of their own."""
        if record.get("isSidechain") is not True:
            self._has_main = True
            return self._main
        agent_id = as_text(record.get("agentId"))
        parent = self._agent_of_record.get(as_text(record.get("parentUuid")) or "")
        if agent_id is not None:
            agent = self._agents.setdefault(agent_id, _Agent(name=agent_id))
        elif parent is not None:
            agent = parent
        else:
            agent = self._agents.setdefault(f"#{len(self._agents)}", _Agent())
        if record_id is not None:
            self._agent_of_record[record_id] = agent
        return agent

    def build(self, line: int) -> TranscriptRun:
        """Return the run; that of a sub-agent if the file has no main agent."""
        if not self._has_main and len(self._agents) == 1:
            [(agent_id, agent)] = self._agents.items()
            return _make_run(agent, line, run_id=agent_id, parent_id=self._session_id)
        for agent_id, agent in self._agents.items():
            agent.call_id = self._child_ids.get(agent_id)
        subagents = tuple(agent.build() for agent in self._agents.values())
        if len(self._session_ids) > 1:
            count = len(self._session_ids)
            self._main.warnings.append(f"records of {count} sessions were read as one run")
        run = _make_run(self._main, line, run_id=self._session_id, subagents=subagents)
        lost = _list_lost([self._main, *self._agents.values()])
        return replace(run, child_ids=self._child_ids, lost=lost)


def _list_lost(agents: Iterable[_Agent]) -> tuple[str, ...]:
    return tuple(sign for agent in agents for sign in agent.turns.lost)


def _make_run(
    agent: _Agent,
    line: int,
    *,
    run_id: str | None,
    parent_id: str | None = None,
    subagents: tuple[SubagentRun, ...] = (),
) -> TranscriptRun:
    agent.finish()
    return TranscriptRun(
        id=run_id,
        line=line,
        turns=agent.turns.build(),
        parent_id=parent_id,
        agent=agent.name,
        subagents=subagents,
        usage=agent.usage.total,
        models=tuple(sorted(agent.models)),
        lost=tuple(agent.turns.lost),
        warnings=summarize_warnings(agent.warnings),
    )


SESSION: Final = TranscriptReader(recognises=_recognises_session, read=_read_session)


def _recognises_stream(document: Json) -> bool:
    return any(map(_is_stream_record, iterate_first_objects(document)))


def _is_stream_record(record: JsonObject) -> bool:
    kind = record.get("type")
    if kind == "system":
        return record.get("subtype") == "init" and "session_id" in record
    if kind in ("user", "assistant"):
        return (
            "parent_tool_use_id" in record
            and "session_id" in record
            and isinstance(record.get("message"), dict)
        )
    return kind == "result" and "subtype" in record and "session_id" in record


def _read_stream(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    for stream, first_line in collect_runs(documents, _ClaudeStream, _find_start):
        if not stream.has_messages and stream.has_result:
            raise DocumentFormatError(
                "this is only the result of Claude Code's `--output-format json`, without its tool"
                " calls; record with `--output-format stream-json --verbose`",
                line=first_line,
            )
        yield stream.build(first_line)


def _find_start(record: JsonObject) -> str | None:
    is_start = record.get("type") == "system" and record.get("subtype") == "init"
    return as_text(record.get("session_id")) if is_start else None


class _ClaudeStream:
    """The records of a stream; it holds no prompt, but those of sub-agents.

    Attributes:
        has_messages: whether it has records of the user or the model.
        has_result: whether it has the record of the end.
    """

    def __init__(self) -> None:
        self._main = _Agent()
        self._agents: dict[str, _Agent] = {}
        self._session_id: str | None = None
        self._usage = UsageSum()
        self._cost: float | None = None
        self._duration: float | None = None
        self._model: str | None = None
        self._failures: list[str] = []
        self.has_messages = False
        self.has_result = False

    def add(self, record: JsonObject) -> None:
        """Add a record; those of progress are ignored."""
        kind = record.get("type")
        if kind == "system" and record.get("subtype") == "init":
            self._session_id = self._session_id or as_text(record.get("session_id"))
            self._model = self._model or as_text(record.get("model"))
        elif kind in ("user", "assistant"):
            self._add_message(record)
        elif kind == "result":
            self._add_result(record)
        elif kind == "tool_call":
            raise DocumentFormatError(
                "a record of type `tool_call`, which Cursor writes, is not read"
            )

    def _add_message(self, record: JsonObject) -> None:
        self.has_messages = True
        self.has_result = False
        self._failures.clear()
        self._session_id = self._session_id or as_text(record.get("session_id"))
        message = as_object(record.get("message"))
        call_id = as_text(record.get("parent_tool_use_id"))
        agent = self._main
        if call_id is not None:
            name = as_text(record.get("subagent_type"))
            agent = self._agents.setdefault(call_id, _Agent(name=name, call_id=call_id))
        if record.get("type") == "assistant":
            agent.add_assistant(message, record.get("error"))
        elif record.get("isSynthetic") is True:
            add_anthropic_results(agent.turns, message.get("content"))
        else:
            agent.add_user(message.get("content"))

    def _add_result(self, record: JsonObject) -> None:
        self.has_result = True
        self._session_id = self._session_id or as_text(record.get("session_id"))
        self._main.turns.end_turn()
        usage = as_object(record.get("usage"))
        given, produced = usage.get("input_tokens"), usage.get("output_tokens")
        self._usage.add(None, given, produced, usage.get("cache_read_input_tokens"))
        self._cost = parse_cost(record.get("total_cost_usd")) or self._cost
        self._duration = parse_finite_float(record.get("duration_ms"))
        subtype = as_text(record.get("subtype")) or "unknown"
        if record.get("is_error") is True or subtype != "success":
            self._failures.append(f"the run ended with an error (`{subtype[:60]}`)")
        denied = len(list(iterate_objects(record.get("permission_denials"))))
        if denied:
            self._main.warnings.append(f"permission was denied for {denied} of the tool calls")

    def build(self, line: int) -> TranscriptRun:
        """Return the run."""
        self._main.finish()
        if not self.has_result:
            self._failures.append("the stream has no `result` at its end: the run was interrupted")
        models = sorted(self._main.models) or ([self._model] if self._model else [])
        return TranscriptRun(
            id=self._session_id,
            line=line,
            turns=self._main.turns.build(),
            subagents=tuple(agent.build() for agent in self._agents.values()),
            usage=self._usage.total,
            models=tuple(models),
            cost_usd=self._cost,
            duration_ms=self._duration,
            failures=tuple(self._failures),
            lost=_list_lost([self._main, *self._agents.values()]),
            warnings=summarize_warnings(self._main.warnings),
        )


STREAM: Final = TranscriptReader(recognises=_recognises_stream, read=_read_stream)
