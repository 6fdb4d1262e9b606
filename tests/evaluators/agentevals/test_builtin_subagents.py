"""Tool calls of sub-agents, in the place of the call that started them."""

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.builtin import include_subagents, make_builtin_evaluator
from agentci.model.trace import SubagentRun, ToolCall, Trace, Turn
from agentci.model.values import Place, replace


def turn(*names: str) -> Turn:
    calls = tuple(ToolCall(name=name, args={}, id=f"id-{name}") for name in names)
    return Turn(id="1", user_text="Hi", tool_calls=calls)


def trace(*turns: Turn, subagents: tuple[SubagentRun, ...] = ()) -> Trace:
    return Trace(id="t", key="t", turns=turns, place=Place(file="t"), subagents=subagents)


def names_of(turns: tuple[Turn, ...]) -> list[list[str]]:
    return [[call.name for call in each.tool_calls] for each in turns]


def test_calls_are_after_the_call_that_started_the_agent() -> None:
    found = trace(
        turn("a", "b"),
        turn("c"),
        subagents=(
            SubagentRun(turns=(turn("x", "y"),), call_id="id-a"),
            SubagentRun(turns=(turn("z"),), call_id="id-x"),
        ),
    )
    assert names_of(include_subagents(found)) == [["a", "x", "z", "y", "b"], ["c"]]


def test_calls_without_a_known_start_end_the_only_turn() -> None:
    found = trace(turn("a", "b"), subagents=(SubagentRun(turns=(turn("x"),)),))
    assert names_of(include_subagents(found)) == [["a", "b", "x"]]


def test_unknown_turn_is_an_error() -> None:
    found = trace(turn("a"), turn("b"), subagents=(SubagentRun(turns=(turn("x"),), name="n"),))
    with pytest.raises(EvaluatorError, match="in which turn sub-agent `n` was started"):
        include_subagents(found)


def test_unrecorded_calls_of_a_subagent_are_an_error() -> None:
    inner = replace(turn(), tool_calls_recorded=False)
    found = trace(turn("a"), subagents=(SubagentRun(turns=(inner,), call_id="id-a"),))
    with pytest.raises(EvaluatorError, match="does not say which tools were called"):
        include_subagents(found)


def test_agents_that_start_each_other_end() -> None:
    found = trace(turn("a"), subagents=(SubagentRun(turns=(turn("a"),), call_id="id-a"),))
    assert names_of(include_subagents(found)) == [["a", "a"]]


def test_run_without_subagents_is_unchanged() -> None:
    found = trace(turn("a"))
    assert include_subagents(found) is found.turns


def test_counting_subagents_changes_the_definition() -> None:
    own = make_builtin_evaluator("tool_trajectory_avg_score", place=Place(file="c"))
    assert replace(own, subagents=True).definition != own.definition
