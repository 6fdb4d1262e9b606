"""Which model call a tool call came from, and what is known of tokens, costs, times and status."""

import json
from typing import Any

import pytest

from agentci.model.trace import ModelStep, TokenUsage
from tests.recordings.telemetry.recorder import (
    DONE,
    HI,
    agent,
    answers,
    asking,
    calls,
    chat,
    shown,
    span,
    tool,
    trace,
    turn,
)

COUNTED = {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 2}


def test_parallel_calls_come_from_one_model_call() -> None:
    found = turn(
        agent("a", at=(1, 1000)),
        chat("c", [HI], [calls("f", {}, "1"), calls("g", {}, "2")], under="a", at=(1, 100)),
        chat("d", [HI], [calls("h", {}, "3")], under="a", at=(200, 300)),
        chat("e", [HI], [DONE], under="a", at=(400, 500)),
        tool("t", "g", call="2", under="a", at=(110, 130)),
    )
    assert [(call.name, call.step) for call in found.tool_calls] == [("f", 0), ("g", 0), ("h", 1)]
    assert len(found.model_steps) == 3


def test_tool_span_without_a_request_has_no_step() -> None:
    found = turn(agent("a"), asking(DONE), tool("t", "f", under="a"))
    assert [call.step for call in found.tool_calls] == [None]


def test_tool_status_is_unknown_without_a_span() -> None:
    found = turn(agent("a"), asking(calls("f", {}, "1")), shown(answers("7", "1")))
    assert [call.failed for call in found.tool_calls] == [None]


@pytest.mark.parametrize("failed", [True, False])
def test_tool_status_is_that_of_its_span(failed: bool) -> None:
    found = turn(
        agent("a", at=(1, 1000)),
        asking(DONE),
        tool("t", "f", under="a", at=(110, 130), failed=failed),
    )
    [call] = found.tool_calls
    assert (call.failed, call.start, call.duration_ms) == (failed, 110_000_000, 20.0)


@pytest.mark.parametrize(
    ("status", "failed"),
    [({"is_error": True}, True), ({"status": "success"}, False), ({"status": "other"}, None)],
)
def test_tool_status_of_a_message_is_read(status: dict[str, Any], failed: bool | None) -> None:
    request = {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "args": {}}]}
    response = {"role": "tool", "tool_call_id": "1", "content": "x", **status}
    found = turn(
        span(
            "c",
            {
                "openinference.span.kind": "LLM",
                "llm.model_name": "m",
                "input.value": json.dumps([{"role": "user", "content": "hi"}]),
                "output.value": json.dumps([request]),
            },
            at=(1, 2),
        ),
        span(
            "d",
            {
                "openinference.span.kind": "LLM",
                "llm.model_name": "m",
                "input.value": json.dumps([{"role": "user", "content": "hi"}, request, response]),
                "output.value": json.dumps([{"role": "assistant", "content": "done"}]),
            },
            at=(3, 4),
        ),
    )
    assert [call.failed for call in found.tool_calls] == [failed]


def test_step_has_model_tokens_cost_and_times() -> None:
    counted = {**COUNTED, "gen_ai.usage.cache_read.input_tokens": 1, "gen_ai.usage.cost": 0.25}
    found = trace(chat("c", [HI], [DONE], counted, at=(10, 30)))
    [only] = found.turns
    step = ModelStep(
        model="m",
        input_tokens=3,
        output_tokens=2,
        cached_tokens=1,
        cost_usd=0.25,
        start=10_000_000,
        duration_ms=20.0,
        span="c",
    )
    assert only.model_steps == (step,)
    assert (only.start, only.duration_ms) == (10_000_000, 20.0)
    assert found.usage == TokenUsage(input=3, output=2, cached=1)
    assert found.cost_usd == 0.25
    assert found.performance is not None
    assert found.performance["cost_usd"] == 0.25


def test_tokens_of_one_call_are_not_those_of_the_run() -> None:
    found = trace(
        agent("a"),
        chat("c", [HI], [DONE], {**COUNTED, "gen_ai.usage.cost": 1}, under="a"),
        chat("d", [HI], [DONE], under="a"),
    )
    assert (found.usage, found.cost_usd) == (None, None)
    assert [step.input_tokens for step in found.turns[0].model_steps] == [3, None]
    assert found.performance is not None
    assert "cost_usd" not in found.performance


def test_times_that_cannot_be_read_are_unknown() -> None:
    found = turn(chat("c", [HI], [DONE], at=(0, 0)))
    assert (found.start, found.duration_ms) == (None, None)
    [step] = found.model_steps
    assert (step.start, step.duration_ms) == (None, None)


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param({"gen_ai.usage.cost_usd": "0.5"}, id="gen_ai.usage.cost_usd"),
        pytest.param({"operation.cost": 0.5}, id="Logfire"),
        pytest.param({"openinference.span.kind": "LLM", "llm.cost.total": 0.5}, id="OpenInference"),
        pytest.param(
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.cost_details": '{"input": 0.2, "total": 0.5}',
            },
            id="Langfuse",
        ),
        pytest.param(
            {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.llm.cost": '{"total_cost": 0.5}'},
            id="MLflow",
        ),
        pytest.param(
            {
                "langsmith.span.kind": "llm",
                "langsmith.metadata.usage_metadata": '{"total_cost": 0.5}',
            },
            id="LangSmith",
        ),
    ],
)
def test_cost_is_read(recorded: dict[str, Any]) -> None:
    assert trace(chat("c", [HI], [DONE], recorded)).cost_usd == 0.5


@pytest.mark.parametrize("cost", [-1, "free", None])
def test_invalid_cost_is_unknown(cost: Any) -> None:
    assert trace(chat("c", [HI], [DONE], {"gen_ai.usage.cost": cost})).cost_usd is None
