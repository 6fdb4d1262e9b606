"""Model calls in traces of their own, joined by the messages that they repeat."""

from collections.abc import Sequence
from typing import Any

import pytest

from agentci.model.trace import Trace
from agentci.recordings.telemetry.spans import Span
from tests.recordings.telemetry.recorder import (
    answers,
    assistant,
    calls,
    chat,
    read,
    span,
    traces,
    user,
)

ASKED = calls("f", {"a": 1}, "1")
ANSWERED = answers("42", "1")


def call(number: int, inputs: Sequence[Any], output: Any, **more: Any) -> Span:
    """A model call in a trace of its own."""
    at = (number * 100, number * 100 + 50)
    return chat(f"c{number}", inputs, [output], trace=f"t{number}", at=at, **more)


def join(*spans: Span, **more: Any) -> tuple[Trace, ...]:
    return traces(read(*spans), **more)


def test_call_that_repeats_the_history_continues_the_turn() -> None:
    (joined,) = join(
        call(1, [user("hi")], ASKED), call(2, [user("hi"), ASKED, ANSWERED], assistant("done"))
    )
    (turn,) = joined.turns
    assert (turn.user_text, turn.final_text) == ("hi", "done")
    assert [(one.name, one.args) for one in turn.tool_calls] == [("f", {"a": 1})]
    (warning,) = [one for one in joined.warnings if "joined" in one and "traces" in one]
    assert "gen_ai.conversation.id" in warning


def test_call_with_only_the_tools_results_continues_the_call_that_asked() -> None:
    (joined,) = join(call(1, [user("hi")], ASKED), call(2, [ANSWERED], assistant("done")))
    assert [turn.final_text for turn in joined.turns] == ["done"]


def test_trace_that_two_calls_precede_is_not_joined() -> None:
    found = join(
        call(1, [user("hi")], ASKED),
        call(2, [user("hi")], ASKED),
        call(3, [user("hi"), ASKED, ANSWERED], assistant("done")),
    )
    assert len(found) == 3
    assert all("gen_ai.conversation.id" in "".join(one.warnings) for one in found)


def test_call_that_two_traces_continue_is_not_joined() -> None:
    later = [user("hi"), ASKED, ANSWERED]
    found = join(
        call(1, [user("hi")], ASKED),
        call(2, later, assistant("done")),
        call(3, later, assistant("other")),
    )
    assert len(found) == 3


@pytest.mark.parametrize(("multi_turn", "count"), [(False, 2), (True, 1)])
def test_next_question_is_joined_only_in_conversations(*, multi_turn: bool, count: int) -> None:
    found = join(
        call(1, [user("hi")], assistant("hello")),
        call(2, [user("hi"), assistant("hello"), user("again")], assistant("yes")),
        multi_turn_eval_cases=multi_turn,
    )
    assert len(found) == count
    assert [turn.user_text for one in found for turn in one.turns] == ["hi", "again"]


def test_traces_are_not_joined_if_each_is_a_case() -> None:
    spans = (
        call(1, [user("hi")], ASKED),
        call(2, [user("hi"), ASKED, ANSWERED], assistant("done")),
    )
    first, second = join(*spans, group_by="trace")
    assert "ends with a tool call" in "".join(first.warnings)
    assert "starts with the result of a tool" in "".join(second.warnings)


def test_call_recorded_twice_side_by_side_counts_once() -> None:
    response = {"gen_ai.response.id": "r1", "gen_ai.usage.input_tokens": 5}
    sdk = chat("sdk", [user("hi")], [assistant("done")], response, at=(0, 100), under="root")
    other = chat("other", [], [], response, at=(10, 90), under="root")
    (found,) = join(span("root"), sdk, other)
    performance: Any = found.performance
    assert performance["counts"]["llm_calls"] == 1
    assert performance["tokens"]["total_prompt"] == 5


@pytest.mark.parametrize(
    ("at", "output"), [((200, 300), "done"), ((10, 90), "other")], ids=["later", "other answer"]
)
def test_test_server_with_one_response_id_makes_many_calls(at: Any, output: str) -> None:
    response = {"gen_ai.response.id": "r1"}
    first = chat("a", [user("hi")], [assistant("done")], response, at=(0, 100), under="root")
    second = chat("b", [user("hi")], [assistant(output)], response, at=at, under="root")
    (found,) = join(span("root"), first, second)
    performance: Any = found.performance
    assert performance["counts"]["llm_calls"] == 2
