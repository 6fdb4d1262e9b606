"""Agent Trajectory Interchange Format (ATIF) 1.0 to 1.8, as Harbor writes it."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from agentci._util.text.format import format_count
from agentci.model.trace import SubagentRun, TokenUsage
from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import Document, DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.transcripts.codex import is_injected as is_injected_by_codex
from agentci.recordings.transcripts.gemini_cli import is_injected as is_injected_by_gemini
from agentci.recordings.transcripts.reader import (
    TranscriptReader,
    TranscriptRun,
    UsageSum,
    as_object,
    as_text,
    find_text,
    iterate_records,
    join_text,
    make_step,
    make_usage,
    parse_cost,
)
from agentci.recordings.transcripts.turn_builder import TurnBuilder, summarize_warnings

_VERSION: Final = re.compile(r"ATIF-v\d+\.\d+")
_AGENT_SOURCE: Final = "agent-"
_MAX_NESTING: Final = 8


def _recognises(document: Json) -> bool:
    fields = as_object(document)
    version = fields.get("schema_version")
    return (
        isinstance(version, str)
        and _VERSION.fullmatch(version) is not None
        and isinstance(fields.get("steps"), list)
    )


def _read(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    for trajectory, line in iterate_records(documents):
        if not _recognises(trajectory):
            raise DocumentFormatError("not a trajectory: no `schema_version` or `steps`", line=line)
        try:
            yield _read_trajectory(trajectory, line)
        except DocumentFormatError as error:
            raise DocumentFormatError(str(error), line=line) from None


def _read_trajectory(trajectory: JsonObject, line: int) -> TranscriptRun:
    steps = _Steps()
    for step in iterate_objects(trajectory.get("steps")):
        steps.add(step)
    agent = as_object(trajectory.get("agent"))
    model = as_text(agent.get("model_name"))
    metrics = as_object(trajectory.get("final_metrics"))
    return TranscriptRun(
        id=find_text(trajectory, "trajectory_id", "session_id"),
        line=line,
        turns=steps.main.build(),
        subagents=(*steps.build_subagents(), *_read_subagents(trajectory, 0)),
        usage=_read_total_usage(metrics) or steps.usage.total,
        models=(model,) if model else (),
        cost_usd=parse_cost(metrics.get("total_cost_usd")),
        lost=tuple(steps.main.lost),
        warnings=summarize_warnings([*steps.list_warnings(), *_find_references(trajectory)]),
    )


def _read_total_usage(metrics: JsonObject) -> TokenUsage | None:
    return make_usage(
        metrics.get("total_prompt_tokens"),
        metrics.get("total_completion_tokens"),
        metrics.get("total_cached_tokens"),
    )


def _find_references(trajectory: JsonObject) -> Iterator[str]:
    if as_text(trajectory.get("continued_trajectory_ref")):
        yield "the run continues in another trajectory, which is a case of its own"


def _read_subagents(trajectory: JsonObject, depth: int) -> Iterator[SubagentRun]:
    """Read the embedded trajectories of sub-agents, and of their own sub-agents."""
    call_ids = dict(_find_references_of_calls(trajectory))
    for embedded in iterate_objects(trajectory.get("subagent_trajectories")):
        steps = _Steps()
        for step in iterate_objects(embedded.get("steps")):
            steps.add(step)
        yield SubagentRun(
            name=find_text(as_object(embedded.get("agent")), "name"),
            call_id=call_ids.get(find_text(embedded, "trajectory_id") or ""),
            turns=steps.main.build(),
        )
        if depth < _MAX_NESTING:
            yield from _read_subagents(embedded, depth + 1)


def _find_references_of_calls(trajectory: JsonObject) -> Iterator[tuple[str, str | None]]:
    """Find the trajectories that tool calls refer to, with the ids of the calls."""
    for step in iterate_objects(trajectory.get("steps")):
        for result in _iterate_results(step):
            for reference in iterate_objects(result.get("subagent_trajectory_ref")):
                if child := as_text(reference.get("trajectory_id")):
                    yield child, as_text(result.get("source_call_id"))


def _iterate_results(step: JsonObject) -> Iterator[JsonObject]:
    return iterate_objects(as_object(step.get("observation")).get("results"))


class _Steps:
    """The steps of a trajectory, by agent.

    Attributes:
        main: the turns of the main agent.
        usage: its tokens.
    """

    def __init__(self) -> None:
        self.main = TurnBuilder()
        self.usage = UsageSum()
        self._subagents: dict[str, TurnBuilder] = {}
        self._copied = 0
        self._copied_question: str | None = None

    def add(self, step: JsonObject) -> None:
        """Add a step."""
        source = step.get("source")
        if step.get("is_copied_context") is True:
            self._add_copied(step)
            return
        owner = _find_owner(step)
        turns = self.main if owner is None else self._subagents.setdefault(owner, TurnBuilder())
        if source == "user":
            self._add_user(turns, step.get("message"))
        elif source == "agent":
            metrics = as_object(step.get("metrics"))
            given, produced = metrics.get("prompt_tokens"), metrics.get("completion_tokens")
            tokens = given, produced, metrics.get("cached_tokens")
            if owner is None:
                self._resume_copied_turn()
                self.usage.add(None, *tokens)
            if step.get("llm_call_count", 1) == 1:
                model = step.get("model_name")
                turns.start_step(make_step(model, *tokens, metrics.get("cost_usd")))
            else:
                turns.end_step()
            turns.add_text(join_text(step.get("message")))
            for call in iterate_objects(step.get("tool_calls")):
                name, args = call.get("function_name"), call.get("arguments")
                turns.add_call(name, args, call.get("tool_call_id"))
        elif source != "system":
            raise DocumentFormatError("a step has a `source` other than system, user or agent")
        _add_results(turns, step)

    def _add_user(self, turns: TurnBuilder, message: Json) -> None:
        """Start a turn, unless the agent's harness wrote the message or it is blank."""
        if isinstance(message, str):
            if (
                not message.strip()
                or is_injected_by_codex(message)
                or is_injected_by_gemini(message)
            ):
                return
        elif not isinstance(message, list) or not message:
            return
        if turns is self.main:
            self._copied_question = None
        turns.start_turn(join_text(message) or "")

    def _add_copied(self, step: JsonObject) -> None:
        """Count a step of an earlier trajectory; this one may go on to answer its last question."""
        self._copied += 1
        if step.get("source") == "user" and (text := join_text(step.get("message"))):
            self._copied_question = text

    def _resume_copied_turn(self) -> None:
        if self._copied_question is not None:
            self.main.start_turn(self._copied_question)
            self._copied_question = None

    def build_subagents(self) -> Iterator[SubagentRun]:
        """Yield the runs of sub-agents whose steps are between those of the main agent."""
        for owner, turns in self._subagents.items():
            yield SubagentRun(name=owner or None, turns=turns.build())

    def list_warnings(self) -> list[str]:
        """Return what was left out."""
        copied = format_count(self._copied, "step")
        return [f"{copied} copied from an earlier trajectory left out"] if self._copied else []


def _add_results(turns: TurnBuilder, step: JsonObject) -> None:
    """Add the results of a step; those that name no call are in the order of the others."""
    results = list(_iterate_results(step))
    named = {as_text(result.get("source_call_id")) for result in results}
    calls = iterate_objects(step.get("tool_calls"))
    call_ids = (as_text(call.get("tool_call_id")) for call in calls)
    unnamed = (call_id for call_id in call_ids if call_id not in named)
    for result in results:
        call_id = as_text(result.get("source_call_id")) or next(unnamed, None)
        if call_id is not None:
            turns.add_result(call_id, result.get("content"), failed=_has_failed(result))


def _find_owner(step: JsonObject) -> str | None:
    """Return the sub-agent that a step belongs to; None for the main agent."""
    extra = as_object(step.get("extra"))
    if extra.get("is_sidechain") is True:
        return find_text(extra, "agent_id") or ""
    source = as_text(extra.get("source"))
    if as_text(extra.get("parentToolCallId")) or (source and source.startswith(_AGENT_SOURCE)):
        # Both marks occur in one sub-agent's steps, and neither names it alone.
        return find_text(extra, "interactionId") or ""
    return None


def _has_failed(result: JsonObject) -> bool | None:
    """Return whether a result is a failure, by the marks of Harbor's adapters."""
    extra = as_object(result.get("extra"))
    exit_code = as_object(extra.get("shellExecution")).get("exitCode")
    marks: list[Json] = [extra.get("is_error"), extra.get("tool_result_is_error")]
    if isinstance(extra.get("success"), bool):
        marks.append(not extra["success"])
    if type(exit_code) is int:
        marks.append(exit_code != 0)
    known = [mark for mark in marks if isinstance(mark, bool)]
    return any(known) if known else None


TRAJECTORY: Final = TranscriptReader(recognises=_recognises, read=_read)
