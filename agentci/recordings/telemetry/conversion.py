"""Groups stored traces into conversations, and converts each to turns with performance metrics."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci.model.json import JsonObject
from agentci.model.problem import Place
from agentci.model.trace import Trace, Turn
from agentci.recordings.telemetry import semconv, tool_calls
from agentci.recordings.telemetry.missing_content import explain_missing_content
from agentci.recordings.telemetry.span_views import (
    ModelCallUsage,
    find_unread_attributes,
    make_span_views,
)
from agentci.recordings.telemetry.spans import Span, find_identifier
from agentci.recordings.telemetry.stored_trace import StoredTrace, TraceSpool, load_tree
from agentci.recordings.telemetry.trace_tree import SpanTree, merge_trees
from agentci.recordings.telemetry.turn_roots import (
    TurnSpans,
    find_parentless_views,
    group_spans_by_root,
)
from agentci.recordings.telemetry.turns import PartialTurn, join_continuations, make_partial_turn

GroupBy: TypeAlias = Literal["auto", "trace", "conversation"]


class TraceGroup(Struct, frozen=True, kw_only=True):
    """Traces that are evaluated as one run.

    Attributes:
        key: what the traces share (a session id, say); the trace id for a single trace.
        traces: in first-seen order of the traces, then of the files.
    """

    key: str
    traces: tuple[StoredTrace, ...]


def group_traces(
    recorded: Iterable[StoredTrace],
    spool: TraceSpool,
    *,
    group_by: GroupBy,
    multi_turn_eval_cases: bool,
) -> tuple[TraceGroup, ...]:
    """Group traces into conversations, in first-seen order."""
    traces: dict[str, list[StoredTrace]] = {}
    for stored in recorded:
        traces.setdefault(stored.id, []).append(stored)
    keys = _find_conversation_keys(
        traces, spool, group_by=group_by, multi_turn_eval_cases=multi_turn_eval_cases
    )
    members: dict[str, list[StoredTrace]] = {}
    for trace_id, parts in traces.items():
        members.setdefault(keys.get(trace_id, trace_id), []).extend(parts)
    return tuple(TraceGroup(key=key, traces=tuple(parts)) for key, parts in members.items())


def load_trees(recorded: Iterable[StoredTrace], spool: TraceSpool) -> list[SpanTree]:
    """Load the traces of a group, sorted by start; spans recorded twice count once."""
    traces: dict[str, list[SpanTree]] = {}
    for stored in recorded:
        apart: list[SpanTree] = []
        tree = load_tree(stored, spool)
        for part in traces.get(stored.id, ()):
            if not {span.id for span in part.spans}.isdisjoint(span.id for span in tree.spans):
                tree = merge_trees(part, tree)
            else:
                apart.append(part)
        traces[stored.id] = [*apart, tree]
    return sorted((tree for parts in traces.values() for tree in parts), key=_tree_start)


def find_conversation_id(trees: Sequence[SpanTree]) -> str | None:
    """Return the id that the traces of a conversation share; None if there is none."""
    key = _find_conversation_key(_sort_spans(trees))
    return None if key is None else key.text


class _ConversationKey(Struct, frozen=True, kw_only=True):
    text: str
    is_session: bool


def _find_conversation_keys(
    traces: Mapping[str, Sequence[StoredTrace]],
    spool: TraceSpool,
    *,
    group_by: GroupBy,
    multi_turn_eval_cases: bool,
) -> dict[str, str]:
    """Map trace ids to conversation ids; empty if traces are not grouped."""
    surely = group_by == "conversation" or (group_by == "auto" and multi_turn_eval_cases)
    perhaps = group_by == "auto" and any(
        stored.may_have_session for parts in traces.values() for stored in parts
    )
    if not (surely or perhaps):
        return {}
    keys = {
        id_: _find_conversation_key(_sort_spans(load_trees(parts, spool)))
        for id_, parts in traces.items()
    }
    found = {trace_id: key for trace_id, key in keys.items() if key is not None}
    if not (surely or any(key.is_session for key in found.values())):
        return {}
    return {trace_id: key.text for trace_id, key in found.items()}


def _find_conversation_key(spans: Sequence[Span]) -> _ConversationKey | None:
    attributes, resources = [span.attributes for span in spans], [span.resource for span in spans]
    if session := find_identifier(resources, semconv.SESSION_NAME):
        return _ConversationKey(text=session, is_session=True)
    for name in (semconv.CONVERSATION_ID, semconv.SESSION_ID):
        if shared := find_identifier([*attributes, *resources], name):
            return _ConversationKey(text=shared, is_session=False)
    return None


def _sort_spans(trees: Iterable[SpanTree]) -> list[Span]:
    return sorted((span for tree in trees for span in tree.spans), key=lambda span: span.start)


def _tree_start(tree: SpanTree) -> tuple[int, str]:
    return tree.spans[0].start, tree.id


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
            partial_turns, uses, [view.span for spans in views for view in spans]
        ),
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
