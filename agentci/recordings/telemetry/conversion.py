"""Converts a group of traces to turns with performance metrics."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from agentci.model.json import JsonObject
from agentci.model.problem import Place
from agentci.model.trace import Trace, Turn
from agentci.recordings.telemetry import tool_calls
from agentci.recordings.telemetry.grouping import TraceGroup, find_conversation_id, load_trees
from agentci.recordings.telemetry.missing_content import explain_missing_content
from agentci.recordings.telemetry.span_views import (
    ModelCallUsage,
    find_unread_attributes,
    make_span_views,
)
from agentci.recordings.telemetry.stored_trace import TraceSpool
from agentci.recordings.telemetry.trace_tree import SpanTree
from agentci.recordings.telemetry.turn_roots import (
    TurnSpans,
    find_parentless_views,
    group_spans_by_root,
)
from agentci.recordings.telemetry.turns import PartialTurn, join_continuations, make_partial_turn

NANOSECONDS_PER_MILLISECOND: Final = 1e6


def measure_performance(
    turns: Sequence[PartialTurn],
    uses: Sequence[tool_calls.ToolInvocation],
    root_durations: Sequence[int],
) -> JsonObject:
    """Summarize latency, tokens and counts of the turns.

    Args:
        uses: the tool calls of all turns.
        root_durations: nanoseconds; used as turn durations if there are no turns.
    """
    calls = list(chain.from_iterable(turn.calls for turn in turns))
    overall = [max(turn.end - turn.start, 0) for turn in turns] or root_durations
    executions = [use.duration for use in uses if use.duration is not None]
    return {
        "latency": {
            "overall": _summarize_durations(overall),
            "llm_calls": _summarize_durations([max(call.end - call.start, 0) for call in calls]),
            "tool_executions": _summarize_durations(executions),
        },
        "tokens": _summarize_tokens([call.usage for call in calls if call.usage is not None]),
        "counts": {"llm_calls": len(calls), "tool_calls": len(uses), "invocations": len(turns)},
        "models": sorted({call.model for call in calls if call.model}),
        "tool_names": sorted({use.name for use in uses}),
    }


def _summarize_durations(nanoseconds: Sequence[int]) -> JsonObject:
    return _summarize_distribution([value / NANOSECONDS_PER_MILLISECOND for value in nanoseconds])


def _summarize_tokens(usages: Sequence[ModelCallUsage]) -> JsonObject:
    prompts = [usage.input or 0 for usage in usages]
    outputs = [usage.output or 0 for usage in usages]
    totals = [float(prompt + output) for prompt, output in zip(prompts, outputs, strict=True)]
    return {
        "total_prompt": sum(prompts),
        "total_output": sum(outputs),
        "total": sum(prompts) + sum(outputs),
        "per_llm_call": _summarize_distribution(totals),
        "cache_creation_tokens": sum(usage.cache_write or 0 for usage in usages),
        "cache_read_tokens": sum(usage.cache_read or 0 for usage in usages),
    }


def _summarize_distribution(values: Sequence[float]) -> JsonObject:
    ordered = sorted(values) or [0.0]
    size = len(ordered)
    median = (ordered[(size - 1) // 2] + ordered[size // 2]) / 2
    return {
        "min": ordered[0],
        "median": median,
        "max": ordered[-1],
        "count": len(values),
        "p50": median,
        "p95": ordered[int(size * 0.95)],
        "p99": ordered[int(size * 0.99)],
    }


def convert_to_trace(group: TraceGroup, spool: TraceSpool) -> Trace:
    """Convert a group of stored traces to one trace, which may have no turns."""
    trees = load_trees(group.traces, spool)
    views = [make_span_views(tree) for tree in trees]
    found = [turn_spans for spans in views for turn_spans in group_spans_by_root(spans)]
    partial_turns, continuation_warnings = join_continuations(
        [make_partial_turn(turn_spans) for turn_spans in found if turn_spans.is_turn]
    )
    used = [tool_calls.find_tool_invocations(turn.calls, turn.runs) for turn in partial_turns]
    uses = [tools for tools, _ in used]
    first = trees[0]
    warnings = (
        *(warning for tree in trees for warning in (*tree.warnings, *find_unread_attributes(tree))),
        *(
            _format_empty_span(turn_spans)
            for turn_spans in found
            if turn_spans.is_agentic and not turn_spans.is_turn
        ),
        *continuation_warnings,
        *_format_joined_traces(trees),
        *(warning for _, guesses in used for warning in guesses),
    )
    return Trace(
        id=first.id,
        key=group.key,
        conversation=find_conversation_id(trees),
        turns=tuple(map(_make_turn, partial_turns, uses)),
        place=Place(file=first.file),
        eval_case_id=next((tree.eval_case_id for tree in trees if tree.eval_case_id), None),
        performance=measure_performance(
            partial_turns,
            tuple(chain.from_iterable(uses)),
            [view.span.duration for spans in views for view in find_parentless_views(spans)],
        ),
        warnings=tuple(sorted(set(warnings))),
        not_captured=explain_missing_content(
            partial_turns, uses, [view for spans in views for view in spans]
        ),
    )


def _format_joined_traces(trees: Sequence[SpanTree]) -> Iterator[str]:
    """Warn that traces were joined by what they repeat, which an id would make sure."""
    count = len({tree.id for tree in trees})
    if count > 1 and find_conversation_id(trees) is None:
        yield (
            f"{count} traces joined, as each repeats the messages of the one before; set "
            "gen_ai.conversation.id (or session.id) to join them by id"
        )


def _make_turn(turn: PartialTurn, uses: Sequence[tool_calls.ToolInvocation]) -> Turn:
    answer = turn.answer.text if turn.answer is not None else None
    return Turn(
        id=turn.id,
        user_text=turn.question or "",
        answer_parts=(answer,) if answer is not None else (),
        tool_calls=tool_calls.make_tool_calls(uses),
        tool_responses=tool_calls.make_tool_responses(uses),
        intermediate_texts=turn.intermediate_texts,
        trace_id=turn.trace_id,
        span_id=turn.id,
    )


def _format_empty_span(turn_spans: TurnSpans) -> str:
    return (
        f"agent span {turn_spans.root.span.id} has no model calls, tool calls or messages; it is"
        " not a turn"
    )
