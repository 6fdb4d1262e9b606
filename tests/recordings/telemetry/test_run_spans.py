"""The spans of a run that reports show as a timeline."""

from typing import Any

import pytest
from msgspec import to_builtins

from agentci.recordings.telemetry.conversion import convert_to_trace
from agentci.recordings.telemetry.grouping import group_traces
from tests.recordings.telemetry.recorder import (
    DONE,
    HI,
    SPOOL,
    agent,
    chat,
    read,
    span,
    tool,
    turn,
)


def _spans(*recorded: Any) -> list[dict[str, Any]]:
    [group] = group_traces(read(*recorded), SPOOL, group_by="auto", multi_turn_eval_cases=False)
    return [to_builtins(each) for each in convert_to_trace(group, SPOOL).spans]


def test_spans_are_sorted_and_start_with_the_run() -> None:
    found = _spans(
        tool("t", "f", under="a", at=(30, 45), name="execute_tool f", failed=True),
        agent("a", at=(10, 110), name="invoke_agent"),
        span("x", at=(50, 60), under="unknown", name="GET"),
    )
    assert found == [
        {"id": "a", "name": "invoke_agent", "kind": "agent", "start_ms": 0.0, "ms": 100.0},
        {
            "id": "t",
            "name": "execute_tool f",
            "kind": "tool",
            "start_ms": 20.0,
            "ms": 15.0,
            "parent": "a",
            "error": True,
        },
        {"id": "x", "name": "GET", "kind": "other", "start_ms": 40.0, "ms": 10.0},
    ]


@pytest.mark.parametrize(
    ("attributes", "tokens"),
    [
        ({}, None),
        ({"gen_ai.usage.input_tokens": 3}, {"input": 3, "output": 0}),
        ({"gen_ai.usage.output_tokens": 2}, {"input": 0, "output": 2}),
    ],
)
def test_model_call_has_its_model_and_tokens(
    attributes: dict[str, int], tokens: dict[str, int] | None
) -> None:
    recorded = chat("c", [HI], [DONE], attributes, under="a", at=(2, 8))
    _, found = _spans(agent("a", at=(1, 9)), recorded)
    assert (found["kind"], found["model"], found.get("tokens")) == ("model", "m", tokens)


@pytest.mark.parametrize(
    ("attributes", "first"),
    [
        ({}, None),
        ({"gen_ai.response.time_to_first_chunk": 0.25}, 250.0),
        ({"gen_ai.latency.time_to_first_token": "0.25"}, 250.0),
        ({"ai.response.msToFirstChunk": 250.5}, 250.5),
        ({"ai.stream.msToFirstChunk": 0}, 0.0),
        ({"gen_ai.response.time_to_first_chunk": -1}, None),
        ({"gen_ai.response.time_to_first_chunk": "soon"}, None),
    ],
)
def test_model_call_has_the_time_to_its_first_token(
    attributes: dict[str, Any], first: float | None
) -> None:
    call = chat("c", [HI], [DONE], attributes, under="a", at=(2, 8))
    outer, found = _spans(agent("a", at=(1, 9)), call)
    assert (outer.get("first_token_ms"), found.get("first_token_ms")) == (None, first)


def test_unreadable_start_does_not_move_the_others() -> None:
    found = _spans(agent("a", at=(0, 0)), chat("c", [HI], [DONE], under="a", at=(1000, 1100)))
    assert [each["start_ms"] for each in found] == [0.0, 0.0]


def test_tool_call_names_its_span() -> None:
    found = turn(agent("a"), tool("t", "f", under="a"))
    assert [call.span_id for call in found.tool_calls] == ["t"]
