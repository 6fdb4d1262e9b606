"""Turns that go on: a model called again with the answers of the tools that it had asked for."""

from collections.abc import Sequence
from typing import Final

from agentci.recordings.telemetry import message
from agentci.recordings.telemetry.message import is_captured
from agentci.recordings.telemetry.model_calls import Call
from agentci.recordings.telemetry.turn_builder import Draft, merged

TOOL_REASONS: Final = frozenset({"tool_calls", "tool_call", "tool_use", "function_call"})


def joined(drafts: Sequence[Draft]) -> tuple[tuple[Draft, ...], tuple[str, ...]]:
    """The turns of a conversation, by time, with continuations joined to what they continue."""
    turns: list[Draft] = []
    warnings: list[str] = []
    for draft in sorted(drafts, key=lambda draft: (draft.start, draft.id)):
        if not turns or draft.is_agentic:
            turns.append(draft)
        elif _continues(turns[-1], draft):
            turns[-1] = merged(turns[-1], draft)
        else:
            if _may_continue(turns[-1], draft):
                warnings.append(
                    f"turn {draft.id} may continue turn {turns[-1].id} after a tool call, "
                    "but message content was not captured; kept as its own turn",
                )
            turns.append(draft)
    return tuple(turns), tuple(warnings)


def _continues(previous: Draft, draft: Draft) -> bool:
    if not previous.calls or not draft.calls:
        return False
    requests = list(message.calls(_last(previous).output))
    shown = draft.calls[0].input
    if not requests or not shown or not shown[-1].is_tool_response:
        return False
    asked = {part.id for part in requests} - {None}
    answered = {part.id for part in message.responses(shown)} - {None}
    return not asked or not answered or not asked.isdisjoint(answered)


def _may_continue(previous: Draft, draft: Draft) -> bool:
    return (
        bool(previous.calls and draft.calls)
        and not is_captured(draft.calls[0].input)
        and not TOOL_REASONS.isdisjoint(_last(previous).finish_reasons)
    )


def _last(turn: Draft) -> Call:
    """The model call that ended last."""
    return max(turn.calls, key=lambda call: (call.end, call.start))
