"""Which reply a tool call came from, and what is known of tokens, costs and status, by format."""

from collections.abc import Sequence
from typing import Any

import pytest

from agentci.model.trace import ModelStep, TokenUsage, Turn
from tests.recordings.transcripts.test_formats import ASK, only_turn, read_one, tool_call
from tests.recordings.transcripts.transcript_files import READ, read_sample


def steps_of(turn: Turn) -> list[int | None]:
    return [call.step for call in turn.tool_calls]


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "x"}


def item(kind: str, call_id: str, **more: Any) -> dict[str, Any]:
    named = {"name": "f", "arguments": "{}"} if kind == "function_call" else {"output": "x"}
    return {"type": kind, "call_id": call_id, **named, **more}


def test_calls_of_one_message_are_parallel() -> None:
    both = [tool_call(call_id="a"), tool_call(call_id="b")]
    turn = only_turn(
        ASK,
        {"role": "assistant", "content": None, "tool_calls": both},
        result("a"),
        result("b"),
        {"role": "assistant", "content": None, "tool_calls": [tool_call(call_id="c")]},
    )
    assert steps_of(turn) == [0, 0, 1]
    assert turn.model_steps == (ModelStep(), ModelStep())
    assert [call.failed for call in turn.tool_calls] == [None, None, None]


def test_items_of_responses_are_parallel_until_a_result() -> None:
    turn = only_turn(
        {"role": "user", "content": "Hi"},
        item("function_call", "a"),
        item("function_call", "b"),
        item("function_call_output", "a"),
        item("function_call_output", "b"),
        item("function_call", "c"),
    )
    assert steps_of(turn) == [0, 0, 1]


def test_stored_response_is_one_step() -> None:
    trace = read_one(
        {
            "object": "response",
            "model": "m",
            "output": [
                item("function_call", "a"),
                {"type": "web_search_call", "id": "w", "status": "failed", "results": []},
            ],
            "usage": {"input_tokens": 3, "output_tokens": 2},
        }
    )
    [turn] = trace.turns
    assert steps_of(turn) == [0, 0]
    assert turn.model_steps == (ModelStep(model="m", input_tokens=3, output_tokens=2),)
    assert [call.failed for call in turn.tool_calls] == [None, True]


def anthropic(message_id: str, *blocks: Any, **usage: Any) -> dict[str, Any]:
    return {
        "id": message_id,
        "role": "assistant",
        "model": "m",
        "content": list(blocks),
        "usage": usage,
    }


def test_records_of_one_message_are_one_step() -> None:
    used = {"input_tokens": 3, "output_tokens": 2}
    turn = only_turn(
        ASK,
        anthropic("m1", {"type": "tool_use", "id": "a", "name": "f", "input": {}}, **used),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
        anthropic("m1", {"type": "tool_use", "id": "b", "name": "f", "input": {}}, **used),
        anthropic("m2", {"type": "text", "text": "done"}),
    )
    assert steps_of(turn) == [0, 0]
    assert [step.input_tokens for step in turn.model_steps] == [3, None]
    assert [call.failed for call in turn.tool_calls] == [False, None]


def test_input_of_anthropic_messages_includes_tokens_of_a_cache() -> None:
    used = {"cache_read_input_tokens": 20, "cache_creation_input_tokens": 100, "output_tokens": 2}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    turn = only_turn(ASK, anthropic("m1", use, input_tokens=300, **used))
    assert turn.model_steps == (
        ModelStep(
            model="m", input_tokens=420, output_tokens=2, cached_tokens=20, cache_write_tokens=100
        ),
    )


@pytest.mark.parametrize("counted", [{"llm_call_count": 0}, {"llm_call_count": 2}])
def test_step_of_no_single_model_call_is_unknown(counted: dict[str, Any]) -> None:
    call = {"tool_call_id": "a", "function_name": "f", "arguments": {}}
    turn = only_turn(
        {
            "schema_version": "ATIF-v1.7",
            "agent": {"name": "x", "version": "1"},
            "steps": [
                {"source": "user", "message": "Hi"},
                {"source": "agent", "message": "", "tool_calls": [call], **counted},
            ],
        }
    )
    assert (steps_of(turn), turn.model_steps) == ([None], ())


def part(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind.replace("-", "_"), "sessionID": "s", "part": {"type": kind, **more}}


def test_tokens_of_a_step_are_known_at_its_end() -> None:
    state = {"status": "completed", "input": {}, "output": "x", "time": {"start": 5, "end": 9}}
    trace = read_one(
        part("step-start"),
        part("tool", tool="f", callID="a", state=state),
        part("step-finish", tokens={"input": 3, "output": 2}, cost=0.5),
        part("step-start"),
        part("text", text="done"),
    )
    [turn] = trace.turns
    assert turn.model_steps == (
        ModelStep(input_tokens=3, output_tokens=2, cost_usd=0.5),
        ModelStep(),
    )
    [call] = turn.tool_calls
    assert (call.step, call.start, call.duration_ms) == (0, 5_000_000, 4)


FINISH = part("step-finish", tokens={"input": 3, "output": 2})


@pytest.mark.parametrize(
    ("records", "steps"),
    [
        pytest.param(
            [part("step-start"), FINISH, part("text", text="Ho")],
            (ModelStep(input_tokens=3, output_tokens=2),),
            id="before its first part",
        ),
        pytest.param([part("text", text="Ho"), FINISH], (), id="of a step without a start"),
    ],
)
def test_tokens_of_a_step_that_holds_no_part(
    records: Sequence[Any], steps: tuple[ModelStep, ...]
) -> None:
    trace = read_one(*records)
    assert trace.turns[0].model_steps == steps
    assert trace.usage == TokenUsage(input=3, output=2)


def test_tokens_of_one_reply_are_not_those_of_the_run() -> None:
    known = {"input_tokens": 3, "output_tokens": 2}
    first = {"type": "ai", "id": "1", "content": "a", "usage_metadata": known}
    messages: Sequence[Any] = [{"type": "human", "content": "Hi"}, first]
    assert read_one(list(messages)).usage is not None
    unknown = {"type": "ai", "id": "2", "content": "b"}
    assert read_one([*messages, unknown]).usage is None


def test_results_end_a_streamed_reply() -> None:
    def call(number: int) -> dict[str, Any]:
        return {"type": "tool_use", "tool_name": "f", "tool_id": f"{number}", "parameters": {}}

    def answer(text: str) -> dict[str, Any]:
        return {"type": "message", "role": "assistant", "content": text, "delta": True}

    results = [{"type": "tool_result", "tool_id": f"{n}", "status": "success"} for n in range(3)]
    turn = only_turn(
        {"type": "init", "session_id": "s", "model": "m"},
        {"type": "message", "role": "user", "content": "Hi"},
        *(answer("I "), answer("look."), call(0), call(1), results[1], results[0]),
        *(call(2), results[2], answer("do"), answer("ne")),
    )
    assert (steps_of(turn), len(turn.model_steps)) == ([0, 0, 1], 3)
    assert turn.final_text == "done"


@pytest.mark.parametrize("sample", READ)
def test_steps_of_recorded_calls_exist_and_are_in_order(sample: str) -> None:
    for trace in read_sample(sample):
        for turn in trace.turns:
            steps = [step for step in steps_of(turn) if step is not None]
            assert steps == sorted(steps)
            assert all(0 <= step < len(turn.model_steps) for step in steps)
            # Steps of ATIF may be made without a model.
            if turn.model_steps and not sample.startswith("atif/"):
                assert None not in steps_of(turn)
