"""Latency, tokens and counts of a conversation."""

from typing import Any

import pytest

from tests.recordings.telemetry.recorder import (
    agent,
    assistant,
    calls,
    chat,
    span,
    tool,
    trace,
    user,
)

ZERO = {"min": 0.0, "median": 0.0, "max": 0.0, "count": 0, "p50": 0.0, "p95": 0.0, "p99": 0.0}


def usage(**counts: Any) -> dict[str, Any]:
    return {f"gen_ai.usage.{name.replace('__', '.')}": count for name, count in counts.items()}


def measured(*spans: Any) -> Any:
    return trace(*spans).performance


def test_trace_without_turns_measures_root_spans() -> None:
    assert measured(span("a", at=(0, 10)), span("b", under="a"), span("c", at=(0, 30))) == {
        "latency": {
            "overall": {
                "min": 10.0,
                "median": 20.0,
                "max": 30.0,
                "count": 2,
                "p50": 20.0,
                "p95": 30.0,
                "p99": 30.0,
            },
            "llm_calls": ZERO,
            "tool_executions": ZERO,
        },
        "tokens": {
            "total_prompt": 0,
            "total_output": 0,
            "total": 0,
            "per_llm_call": ZERO,
            "cache_creation_tokens": 0,
            "cache_read_tokens": 0,
        },
        "counts": {"llm_calls": 0, "tool_calls": 0, "invocations": 0},
        "models": [],
        "tool_names": [],
    }


def test_models_and_tools_are_counted_and_timed() -> None:
    found = measured(
        agent("a", at=(0, 1000)),
        chat("c", [user("hi")], [calls("g")], under="a", at=(0, 100)),
        tool("t", "f", under="a", at=(200, 250)),
        chat("d", [user("hi")], [assistant("done")], under="a", at=(300, 600)),
    )
    assert found["counts"] == {"llm_calls": 2, "tool_calls": 2, "invocations": 1}
    assert found["tool_names"] == ["f", "g"]
    assert found["models"] == ["m"]
    assert found["latency"]["overall"]["max"] == 1000.0
    assert found["latency"]["llm_calls"]["median"] == 200.0
    assert (
        found["latency"]["tool_executions"]["count"],
        found["latency"]["tool_executions"]["max"],
    ) == (1, 50.0)


def test_negative_duration_is_zero() -> None:
    assert measured(chat("c", at=(50, 10)))["latency"]["llm_calls"]["max"] == 0.0


class TestTokens:
    @pytest.mark.parametrize(
        ("attributes", "prompt", "output"),
        [
            pytest.param(usage(input_tokens=3, output_tokens=4), 3, 4, id="current names"),
            pytest.param(usage(prompt_tokens=3, completion_tokens=4), 3, 4, id="old names"),
            pytest.param(usage(input_tokens="3", output_tokens=4.0), 3, 4, id="text and floats"),
            pytest.param(usage(input_tokens=-3, output_tokens=4), 0, 4, id="negative"),
            pytest.param(usage(input_tokens=3), 3, 0, id="one side"),
            pytest.param(usage(input_tokens=10**30, output_tokens=4), 0, 4, id="too large"),
            pytest.param(usage(input_tokens=True, output_tokens=4), 0, 4, id="not a number"),
        ],
    )
    def test_token_usage_of_model_call_is_read(
        self, attributes: Any, prompt: int, output: int
    ) -> None:
        tokens = measured(chat("c", attributes=attributes))["tokens"]
        assert (tokens["total_prompt"], tokens["total_output"]) == (prompt, output)
        assert tokens["total"] == prompt + output

    def test_call_without_usage_is_not_counted_for_tokens(self) -> None:
        found = measured(chat("c"), chat("d", attributes=usage(input_tokens=3)))
        assert found["tokens"]["per_llm_call"]["count"] == 1

    def test_cache_tokens_are_summed(self) -> None:
        counted = usage(input_tokens=1, cache_creation__input_tokens=2, cache_read__input_tokens=5)
        tokens = measured(chat("c", attributes=counted), chat("d", attributes=counted))["tokens"]
        assert (tokens["cache_creation_tokens"], tokens["cache_read_tokens"]) == (4, 10)


class TestWrappedCalls:
    def test_wrapper_and_wrapped_call_count_once(self) -> None:
        found = measured(
            agent("a"),
            chat(
                "c",
                [user("hi")],
                [assistant("hello")],
                usage(input_tokens=100),
                under="a",
                at=(0, 300),
            ),
            span("between", under="c"),
            chat(
                "d",
                attributes={**usage(input_tokens=90), "gen_ai.request.model": "inner"},
                under="between",
                at=(20, 220),
            ),
        )
        assert found["counts"]["llm_calls"] == 1
        assert found["tokens"]["total_prompt"] == 90
        assert found["models"] == ["inner"]
        assert found["latency"]["llm_calls"]["max"] == 300.0

    def test_wrapper_of_several_calls_is_not_counted(self) -> None:
        found = measured(
            chat("outer", attributes=usage(input_tokens=1000)),
            chat("c", attributes=usage(input_tokens=1), under="outer"),
            chat("d", attributes=usage(input_tokens=10), under="outer"),
            chat("e", attributes=usage(input_tokens=100), under="d"),
        )
        assert found["counts"]["llm_calls"] == 2
        assert found["tokens"]["total_prompt"] == 101

    def test_calls_inside_and_outside_nested_agent_count_separately(self) -> None:
        found = measured(chat("c"), agent("a", under="c"), chat("d", under="a"))
        assert found["counts"]["llm_calls"] == 2


def test_percentile_is_value_at_rank() -> None:
    found = measured(agent("a"), *(chat(str(n), under="a", at=(0, n)) for n in range(1, 21)))
    calls_took = found["latency"]["llm_calls"]
    assert (calls_took["p50"], calls_took["p95"], calls_took["p99"]) == (10.5, 20.0, 20.0)
