"""Converts a group of traces to turns with performance metrics.

Agents that tools run are taken out of a trace, to keep their calls apart from their caller's. Of
traces with only the outermost run exported, its answer is the whole history.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from agentci.model.trace import (
    ModelStep,
    RunSpan,
    SpanKind,
    SubagentRun,
    TokenTotals,
    TokenUsage,
    Trace,
    Turn,
)
from agentci.model.values import JsonObject, Place, replace
from agentci.recordings.telemetry import semconv, tool_calls
from agentci.recordings.telemetry.conventions.api_messages import parse_message_list
from agentci.recordings.telemetry.conventions.registry import RUN_OUTPUT_ATTRIBUTES
from agentci.recordings.telemetry.grouping import TraceGroup, find_conversation_id, load_trees
from agentci.recordings.telemetry.json_input import parse_finite_float
from agentci.recordings.telemetry.messages import SpanMessages
from agentci.recordings.telemetry.span_views import (
    AGENT_KINDS,
    ModelCall,
    ModelCallUsage,
    SpanView,
    TurnSpans,
    find_parentless_views,
    find_unread_attributes,
    group_spans_by_root,
    make_span_views,
)
from agentci.recordings.telemetry.spans import OperationKind, Span, SpanTree
from agentci.recordings.telemetry.stored_trace import TraceSpool
from agentci.recordings.telemetry.tool_calls import NANOSECONDS_PER_MILLISECOND
from agentci.recordings.telemetry.turns import (
    PartialTurn,
    add_stray_runs,
    explain_missing_content,
    join_continuations,
    make_partial_turn,
)


class NestedAgent(Struct, frozen=True, kw_only=True):
    """An agent that a tool ran: the spans below that of the tool."""

    tool: SpanView
    tree: SpanTree

    @property
    def name(self) -> str | None:
        """The name of its outermost span."""
        parentless = (one for one in self.tree.spans if one.parent_id == self.tool.span.id)
        return next((span.name for span in parentless if span.name), None)


def split_tree(tree: SpanTree) -> tuple[SpanTree, tuple[NestedAgent, ...]]:
    """Return the trace without what tools that called a model did, and each of these apart."""
    views = make_span_views(tree)
    tools = _find_tools_above(views)
    nesting = {tools[view.span.id] for view in views if view.kind == "inference"} - {None}
    inner: defaultdict[str, list[Span]] = defaultdict(list)
    outer: list[Span] = []
    for span in tree.spans:
        tool_id = tools[span.id]
        (inner[tool_id] if tool_id is not None and tool_id in nesting else outer).append(span)
    agents = tuple(
        NestedAgent(tool=view, tree=_select_spans(tree, inner[view.span.id]))
        for view in views
        if view.span.id in inner
    )
    return _select_spans(tree, outer), agents


def _find_tools_above(views: Sequence[SpanView]) -> dict[str, str | None]:
    """Return the id of the outermost tool above each span."""
    children: defaultdict[str, list[SpanView]] = defaultdict(list)
    for view in views:
        if view.span.parent_id is not None:
            children[view.span.parent_id].append(view)
    found: dict[str, str | None] = {}
    ahead: list[tuple[SpanView, str | None]] = [(one, None) for one in find_parentless_views(views)]
    while ahead:
        view, tool_id = ahead.pop()
        found[view.span.id] = tool_id
        if tool_id is None and view.kind == "tool":
            tool_id = view.span.id
        ahead.extend((child, tool_id) for child in children[view.span.id])
    return found


def _select_spans(tree: SpanTree, spans: list[Span]) -> SpanTree:
    ids = {span.id for span in spans}
    return replace(
        tree,
        spans=tuple(spans),
        logs=tuple(log for log in tree.logs if log.span_id is None or log.span_id in ids),
    )


_INNER_KINDS: Final = frozenset({"inference", "tool"})


def is_outer_run(views: Sequence[SpanView]) -> bool:
    """Return whether a trace has an agent or workflow, but neither its model nor its tool calls."""
    kinds = {view.kind for view in views}
    return kinds.isdisjoint(_INNER_KINDS) and not kinds.isdisjoint(AGENT_KINDS)


def expand_history(views: Sequence[SpanView]) -> tuple[SpanView, ...] | None:
    """Add the model calls that the answer of the outermost run shows.

    Returns:
        The views with one more per message of the model; None if the answer is not a history.
    """
    parentless = [view for view in find_parentless_views(views) if view.kind in AGENT_KINDS]
    histories = list(map(_read_history, parentless))
    if not all("user" in {message.role for message in history} for history in histories):
        return None
    steps = map(_make_steps, parentless, histories)
    return (*views, *chain.from_iterable(steps))


def _read_history(outer: SpanView) -> SpanMessages:
    """Return all messages that a run returned; those before the question, too."""
    raw = (outer.span.attributes.get(name) for name in RUN_OUTPUT_ATTRIBUTES)
    return next(filter(None, (parse_message_list(one, "assistant") for one in raw)), ())


def _make_steps(outer: SpanView, messages: SpanMessages) -> Iterator[SpanView]:
    """Make a model call of each message of the model after the last of the user."""
    last = max(index for index, message in enumerate(messages) if message.role == "user")
    for index, message in enumerate(messages[last + 1 :], start=last + 1):
        if message.role == "assistant":
            span = outer.span
            step = replace(
                span,
                id=f"{span.id}:{index}",
                parent_id=span.id,
                start=span.start + index,
                end=span.start + index,
            )
            yield replace(
                outer, span=step, kind="inference", input=messages[:index], output=(message,)
            )


# A microsecond is more precise than the clocks of recorders.
DIGITS: Final = 3
_KINDS: Final[Mapping[OperationKind, SpanKind]] = {
    "inference": "model",
    "agent": "agent",
    "workflow": "agent",
    "tool": "tool",
}


def list_run_spans(views: Sequence[SpanView]) -> Iterator[RunSpan]:
    """Yield the spans of a run in order of their start."""
    first = min((start for view in views if (start := view.span.start) > 0), default=0)
    known = {view.span.id for view in views}
    for view in sorted(views, key=lambda view: view.span.start):
        span, usage = view.span, view.usage
        yield RunSpan(
            id=span.id,
            parent=span.parent_id if span.parent_id in known else None,
            name=span.name,
            kind=_KINDS.get(view.kind, "other"),
            start_ms=_as_milliseconds(max(span.start - first, 0)),
            ms=_as_milliseconds(span.duration),
            tokens=None
            if usage is None
            else TokenTotals(input=usage.input or 0, output=usage.output or 0),
            first_token_ms=_find_first_token(view),
            model=view.request_model or view.response_model,
            error=span.failed,
        )


def _find_first_token(view: SpanView) -> float | None:
    """Return after how many milliseconds a model call had its first token, if that is recorded."""
    if view.kind == "inference":
        for name, unit in semconv.FIRST_TOKEN_UNITS.items():
            value = parse_finite_float(view.span.attributes.get(name))
            if value is not None and value >= 0:
                return round(value * unit, DIGITS)
    return None


def _as_milliseconds(nanoseconds: int) -> float:
    return round(nanoseconds / NANOSECONDS_PER_MILLISECOND, DIGITS)


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
    return _summarize_distribution(
        [value / tool_calls.NANOSECONDS_PER_MILLISECOND for value in nanoseconds]
    )


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
    if any(stored.keeps_subagents_apart for stored in group.traces):
        return _convert_export(trees, group.key)
    return _convert_views(trees, [make_span_views(tree) for tree in trees], group.key)


_OUTER_RUN_ONLY = (
    "The export has only the outermost run of a trace, and so no tool calls; export all runs of the"
    " trace"
)


# Agents in tools of agents; those below are not told apart.
_MAX_NESTED_AGENTS = 5


def _convert_export(trees: Sequence[SpanTree], key: str, depth: int = 0) -> Trace:
    """Convert the traces of a platform's export.

    Agents that tools ran are apart; of a trace with only its outermost run, the calls are those in
    the history that it returned.
    """
    apart = depth < _MAX_NESTED_AGENTS
    split = [split_tree(tree) if apart else (tree, ()) for tree in trees]
    outer = [tree for tree, _ in split]
    views = [make_span_views(tree) for tree in outer]
    expanded = [expand_history(one) if is_outer_run(one) else one for one in views]
    known = [one if one is not None else own for one, own in zip(expanded, views, strict=True)]
    trace = _convert_views(outer, known, key)
    nested = [agent for _, agents in split for agent in agents]
    inner = [_convert_export([agent.tree], key, depth + 1) for agent in nested]
    own_runs = (
        SubagentRun(name=agent.name, call_id=agent.tool.tool.id, turns=run.turns)
        for agent, run in zip(nested, inner, strict=True)
        if run.turns
    )
    reasons = [one.not_captured for one in (trace, *inner)]
    reasons += [_OUTER_RUN_ONLY for one in expanded if one is None]
    return replace(
        trace,
        subagents=(*own_runs, *chain.from_iterable(run.subagents for run in inner)),
        warnings=tuple(
            sorted({*trace.warnings, *chain.from_iterable(run.warnings for run in inner)})
        ),
        not_captured=next(filter(None, reasons), ""),
    )


def _convert_views(
    trees: Sequence[SpanTree], views: Sequence[Sequence[SpanView]], key: str
) -> Trace:
    found = [turn_spans for spans in views for turn_spans in group_spans_by_root(spans)]
    partial_turns, continuation_warnings = join_continuations(
        [make_partial_turn(turn_spans) for turn_spans in found if turn_spans.is_turn]
    )
    partial_turns, unplaced_runs = add_stray_runs(partial_turns, found)
    used = [tool_calls.find_tool_invocations(turn.calls, turn.runs) for turn in partial_turns]
    uses = [tools for tools, _ in used]
    first = trees[0]
    calls = [call for turn in partial_turns for call in turn.calls]
    cost = _sum_cost(calls)
    replayed = any(tree.replayed for tree in trees)
    turns = _use_printed_answer(list(map(_make_turn, partial_turns, uses)), trees)
    performance = measure_performance(
        partial_turns,
        tuple(chain.from_iterable(uses)),
        [view.span.duration for spans in views for view in find_parentless_views(spans)],
    )
    if replayed:
        turns = tuple(map(_drop_times, turns))
        performance = {key: each for key, each in performance.items() if key != "latency"}
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
        *(f"tool {run.name} (span {run.span_id}) belongs to no turn" for run in unplaced_runs),
    )
    return Trace(
        id=first.id,
        key=key,
        conversation=find_conversation_id(trees),
        turns=turns,
        place=Place(file=first.file, line=first.line),
        eval_case_id=next((tree.eval_case_id for tree in trees if tree.eval_case_id), None),
        asked=next((tree.asked for tree in trees if tree.asked), ""),
        recorded_run=next((tree.recorded_run for tree in trees if tree.recorded_run), ""),
        replayed=replayed,
        printed=next((tree.printed for tree in trees if tree.printed is not None), None),
        performance=_add_cost(performance, cost),
        usage=_sum_usage(calls),
        cost_usd=cost,
        warnings=tuple(sorted(set(warnings))),
        not_captured=next((tree.incomplete for tree in trees if tree.incomplete), "")
        or explain_missing_content(
            partial_turns, uses, [view for spans in views for view in spans], unplaced_runs
        ),
        spans=tuple(list_run_spans([view for spans in views for view in spans])),
    )


def _drop_times(turn: Turn) -> Turn:
    """Drop the durations of a turn and of its model calls."""
    steps = tuple(replace(step, duration_ms=None) for step in turn.model_steps)
    return replace(turn, duration_ms=None, model_steps=steps)


def _format_joined_traces(trees: Sequence[SpanTree]) -> Iterator[str]:
    """Warn that traces were joined by what they repeat, which an id would make sure."""
    count = len({tree.id for tree in trees})
    if count > 1 and find_conversation_id(trees) is None:
        yield (
            f"{count} traces joined, as each repeats the messages of the one before; set "
            "gen_ai.conversation.id (or session.id) to join them by id"
        )


def _add_cost(performance: JsonObject, cost: float | None) -> JsonObject:
    return performance if cost is None else {**performance, "cost_usd": cost}


def _sum_usage(calls: Sequence[ModelCall]) -> TokenUsage | None:
    """Add up the tokens of all calls; None if one has none."""
    usages = [call.usage for call in calls if call.usage is not None]
    inputs = [usage.input for usage in usages if usage.input is not None]
    outputs = [usage.output for usage in usages if usage.output is not None]
    if not calls or len(inputs) < len(calls) or len(outputs) < len(calls):
        return None
    cached = [usage.cache_read for usage in usages if usage.cache_read is not None]
    return TokenUsage(
        input=sum(inputs), output=sum(outputs), cached=sum(cached) if cached else None
    )


def _sum_cost(calls: Sequence[ModelCall]) -> float | None:
    """Add up the costs of all calls; None if one has none."""
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    return sum(costs) if calls and len(costs) == len(calls) else None


def _make_model_step(call: ModelCall) -> ModelStep:
    usage = call.usage
    return ModelStep(
        model=call.model,
        input_tokens=None if usage is None else usage.input,
        output_tokens=None if usage is None else usage.output,
        cached_tokens=None if usage is None else usage.cache_read,
        cache_write_tokens=None if usage is None else usage.cache_write,
        cost_usd=call.cost_usd,
        start=call.start or None,
        duration_ms=_measure_milliseconds(call.start, call.end),
        span=call.id,
    )


def _measure_milliseconds(start: int, end: int) -> float | None:
    """Return the milliseconds between two times; None if one could not be read."""
    known = start and end
    return max(end - start, 0) / tool_calls.NANOSECONDS_PER_MILLISECOND if known else None


def _make_turn(turn: PartialTurn, uses: Sequence[tool_calls.ToolInvocation]) -> Turn:
    answer = turn.answer.text if turn.answer is not None else None
    return Turn(
        id=turn.id,
        user_text=turn.question or "",
        answer_parts=(answer,) if answer is not None else (),
        tool_calls=tool_calls.make_tool_calls(uses),
        tool_responses=tool_calls.make_tool_responses(uses),
        intermediate_texts=turn.intermediate_texts,
        model_steps=tuple(map(_make_model_step, turn.calls)),
        early_end=turn.early_end,
        trace_id=turn.trace_id,
        span_id=turn.id,
        start=turn.start or None,
        duration_ms=_measure_milliseconds(turn.start, turn.end),
    )


def _use_printed_answer(turns: Sequence[Turn], trees: Sequence[SpanTree]) -> tuple[Turn, ...]:
    """Replace the last answer of the model by what the command printed, if that is recorded."""
    printed = next((tree.printed_answer for tree in trees if tree.printed_answer), "")
    if not turns or not printed:
        return tuple(turns)
    texts = [each for each in turns[-1].answer_parts if each != printed]
    last = replace(
        turns[-1],
        answer_parts=(printed,),
        intermediate_texts=(*turns[-1].intermediate_texts, *texts),
    )
    return (*turns[:-1], last)


def _format_empty_span(turn_spans: TurnSpans) -> str:
    return (
        f"agent span {turn_spans.root.span.id} has no model calls, tool calls or messages; it is"
        " not a turn"
    )
