"""Adds the tool calls of sub-agents to those of the agent that started them."""

from collections.abc import Iterator, Mapping, Sequence

from agentci.errors import EvaluatorError
from agentci.model.trace import SubagentRun, ToolCall, Trace, Turn
from agentci.model.values import replace


def include_subagents(trace: Trace) -> tuple[Turn, ...]:
    """Return the turns with the calls of sub-agents, without results.

    They are after the call that started the sub-agent; if it was not recorded, at the end of the
    only turn.

    Raises:
        EvaluatorError: the turn that started a sub-agent is not known.
    """
    if not trace.subagents:
        return trace.turns
    own_ids = {call.id for turn in trace.turns for call in turn.tool_calls if call.id}
    runs: dict[str, list[SubagentRun]] = {}
    unplaced: list[SubagentRun] = []
    nested_ids = {
        call.id for run in trace.subagents for turn in run.turns for call in turn.tool_calls
    }
    for run in trace.subagents:
        if run.call_id is not None and run.call_id in own_ids | nested_ids:
            runs.setdefault(run.call_id, []).append(run)
        else:
            unplaced.append(run)
    if unplaced and len(trace.turns) != 1:
        raise EvaluatorError(
            f"the recording does not say in which turn sub-agent `{unplaced[0].name or 'unknown'}`"
            " was started"
        )
    turns = [replace(turn, tool_calls=tuple(_expand(turn, runs, ()))) for turn in trace.turns]
    left = [call for run in unplaced for turn in run.turns for call in _expand(turn, runs, ())]
    if left:
        turns[0] = replace(turns[0], tool_calls=(*turns[0].tool_calls, *left))
    return tuple(replace(turn, tool_responses=()) for turn in turns)


def _expand(
    turn: Turn, runs: Mapping[str, Sequence[SubagentRun]], above: tuple[str, ...]
) -> Iterator[ToolCall]:
    """Yield the calls of a turn, each with those of the sub-agents that it started."""
    for call in turn.tool_calls:
        yield call
        if call.id is not None and call.id not in above:
            for run in runs.get(call.id, ()):
                for inner in run.turns:
                    yield from _expand(inner, runs, (*above, call.id))
