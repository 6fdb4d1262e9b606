"""Restores recorded runs from the contents that a report keeps of them."""

from typing import Final

from msgspec import UNSET, json

from agentci.model.case import CaseSummary, DialogueTurn
from agentci.model.result import RunContent, TurnContent
from agentci.model.trace import SubagentRun, TokenUsage, ToolCall, ToolResponse, Trace, Turn
from agentci.reports.case_summary import excerpt_turn

NOT_KEPT: Final = "the results of the baseline keep only a part of their runs (option `content`)"
HAS_SECRETS: Final = "secrets are removed from their runs in the results of the baseline"
NO_TURNS: Final = "their runs in the results of the baseline have no turns"


def explain_incomplete_content(content: RunContent) -> str:
    """Explain why a run cannot be restored; empty if it can."""
    turns = [*content.turns, *(turn for run in content.subagents for turn in run.turns)]
    if content.redacted:
        return HAS_SECRETS
    if content.level != "full" or any(turn.cut for turn in turns) or {*content.cut} - {"spans"}:
        return NOT_KEPT
    return "" if any(not turn.missing for turn in content.turns) else NO_TURNS


def list_dialogue(content: RunContent) -> tuple[DialogueTurn, ...]:
    """List the recorded turns as summaries of cases have them."""
    return tuple(excerpt_turn(turn.user, turn.answer) for turn in content.turns if not turn.missing)


def restore_trace(case: CaseSummary, content: RunContent) -> Trace:
    """Restore the trace of a case from its complete content."""
    tokens = content.tokens
    return Trace(
        id=case.trace_id,
        key=case.trace_id,
        turns=tuple(_restore_turn(turn) for turn in content.turns if not turn.missing),
        place=case.recording,
        performance=None if content.performance is None else json.decode(content.performance),
        usage=None if tokens is None else TokenUsage(input=tokens.input, output=tokens.output),
        cost_usd=content.cost_usd,
        subagents=tuple(
            SubagentRun(
                turns=tuple(map(_restore_turn, run.turns)), name=run.name, call_id=run.call_id
            )
            for run in content.subagents
        ),
    )


def _restore_turn(turn: TurnContent) -> Turn:
    return Turn(
        id=turn.id,
        user_text=turn.user,
        user_text_recorded=turn.user_recorded,
        answer_parts=() if turn.answer is None else (turn.answer,),
        tool_calls=tuple(
            ToolCall(
                name=call.name,
                args=call.arguments,
                id=call.id,
                step=call.step,
                failed=call.error,
                start=call.start,
                duration_ms=call.ms,
                span_id=call.span,
            )
            for call in turn.calls
        ),
        tool_calls_recorded=turn.calls_recorded,
        tool_responses=tuple(
            ToolResponse(
                name=call.name,
                output=None if call.result is UNSET else call.result,
                id=call.id,
                failed=bool(call.error),
                call_index=index,
            )
            for index, call in enumerate(turn.calls)
            if call.result is not UNSET or call.error
        ),
        intermediate_texts=turn.texts,
        model_steps=turn.steps,
        trace_id=turn.trace,
        span_id=turn.span,
        start=turn.start,
        duration_ms=turn.latency_ms,
    )
