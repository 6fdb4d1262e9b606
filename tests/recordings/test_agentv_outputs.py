"""Recorded runs in AgentV's formats, and errors in them."""

import json
from typing import Any

import pytest

from agentci.errors import RecordingError
from agentci.model.trace import Message, TokenUsage, ToolCall, ToolResponse, ToolUse, Trace, Turn
from agentci.model.values import Place, replace
from agentci.recordings.agentv_outputs import read_first_value, read_recorded_runs
from agentci.recordings.agentv_run import (
    RecordedRun,
    convert_trace_to_run,
    convert_transcript_to_turn,
)

ANSWER = {"role": "assistant", "content": "hello"}


def _read(*rows: Any, of_one_case: bool = False) -> tuple[RecordedRun, ...]:
    text = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in rows)
    return read_recorded_runs(text.encode(), file="o.jsonl", of_one_case=of_one_case)


class TestCliProviderOutput:
    def test_messages_and_metrics_are_read(self) -> None:
        use = {"tool": "search", "input": {"q": 1}, "output": None, "startTime": "t"}
        message = {**ANSWER, "name": "n", "toolCalls": [use], "metadata": {"k": 1}}
        usage = {"input": 1, "output": 2}
        [run] = _read(
            {
                "id": "a",
                "output_messages": [message],
                "token_usage": usage,
                "cost_usd": 0.1,
                "duration_ms": 7,
                "start_time": "s",
            }
        )
        assert (run.case_id, run.place) == ("a", Place(file="o.jsonl", line=1))
        assert run.transcript.messages == (
            Message(
                role="assistant",
                content="hello",
                name="n",
                tool_calls=(ToolUse(tool="search", input={"q": 1}, start_time="t"),),
                metadata={"k": 1},
            ),
        )
        assert run.transcript.token_usage == TokenUsage(input=1, output=2)
        assert (run.transcript.cost_usd, run.transcript.duration_ms) == (0.1, 7)
        assert run.transcript.start_time == "s"

    @pytest.mark.parametrize(
        ("row", "content"),
        [
            ({"text": "hello"}, "hello"),
            ({"text": {"k": [1]}}, '{"k":[1]}'),
            ({"output": "hello"}, "hello"),
            ({"output": [ANSWER]}, "hello"),
            ({"output": json.dumps([{"role": "user", "content": "q"}, ANSWER])}, "hello"),
            ({"output": '[{"role": "admin"}]'}, '[{"role": "admin"}]'),
            ({"output": '[{"role": "user"}]'}, '[{"role": "user"}]'),
            ({"output": '[{"role": ["assistant"]}]'}, '[{"role": ["assistant"]}]'),
            ({"output": "[1]"}, "[1]"),
            ({"output": "[x]"}, "[x]"),
        ],
    )
    def test_answer_without_messages_is_read(self, row: Any, content: str) -> None:
        [run] = _read({"test_id": "a", **row})
        assert run.transcript.messages[-1].content == content

    def test_json_array_of_runs_is_read(self) -> None:
        runs = read_recorded_runs(b'[{"id": "a", "text": "x"}]', file="o", of_one_case=False)
        assert [run.case_id for run in runs] == ["a"]

    def test_negative_cost_is_ignored_with_warning(self) -> None:
        [run] = _read({"id": "a", "text": "x", "cost_usd": -1})
        assert run.transcript.cost_usd is None
        assert run.warnings == ("`cost_usd` is negative (-1) and was ignored",)


class TestSingleCaseFile:
    @pytest.mark.parametrize("text", ["just text", '{"k": 1}', "[1, 2]"])
    def test_bare_answer_is_read(self, text: str) -> None:
        [run] = _read(text, of_one_case=True)
        assert (run.case_id, run.transcript.messages[0].content) == (None, text)

    def test_file_with_run_object_is_read(self) -> None:
        [run] = _read({"text": "x"}, of_one_case=True)
        assert run.transcript.messages[0].content == "x"


class TestTranscript:
    def _row(self, index: int, test: str = "a", **fields: Any) -> dict[str, Any]:
        return {
            "schema_version": "agentv.transcript.v1",
            "test_id": test,
            "message_index": index,
            "role": "assistant",
            "content": f"{test}{index}",
            **fields,
        }

    def test_transcript_rows_are_grouped_by_test_and_sorted(self) -> None:
        runs = _read(self._row(1), self._row(0, "b"), self._row(0, transcript_cost_usd=0.5))
        contents = {
            run.case_id: [message.content for message in run.transcript.messages] for run in runs
        }
        assert contents == {"a": ["a0", "a1"], "b": ["b0"]}
        assert [run.transcript.cost_usd for run in runs] == [0.5, None]

    @pytest.mark.parametrize("flaw", [{"role": 1}, {"transcript_cost_usd": "much"}])
    def test_invalid_transcript_row_error_names_line(self, flaw: Any) -> None:
        with pytest.raises(RecordingError, match=r":2: "):
            _read(self._row(0, "b"), self._row(0, **flaw))


def test_replay_fixture_is_read_with_attempt() -> None:
    row = {
        "schema_version": "agentv.replay_fixture.v1",
        "suite": "s",
        "test_id": "a",
        "source_target": "t",
        "output": [ANSWER],
    }
    runs = _read(row, {**row, "attempt": 1})
    assert [(run.case_id, run.attempt) for run in runs] == [("a", None), ("a", 1)]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"id": "a"}, "no output of the agent"),
        ({"id": "a", "text": None}, "no output of the agent"),
        (3, "no output of the agent"),
        ({"id": "a", "output_messages": [{"content": "x"}]}, "a message has no `role`"),
        ({"id": "a", "output_messages": ["x"]}, "an item of `output_messages` is not an object"),
        (
            {"id": "a", "output_messages": [{**ANSWER, "tool_calls": [{"input": 1}]}]},
            "a tool call has no `tool`",
        ),
        (
            {"id": "a", "output_messages": [{**ANSWER, "tool_calls": 1}]},
            "`tool_calls` is not a list",
        ),
        ({"id": "a", "output_messages": [{**ANSWER, "name": 1}]}, "`name` is not text"),
        ({"id": "a", "text": "x", "cost_usd": True}, "`cost_usd` is not a number"),
        ({"id": "a", "text": "x", "token_usage": 1}, "`token_usage` is not an object"),
        (
            {"id": "a", "text": "x", "token_usage": {"input": 1}},
            "`token_usage` needs `input` and `output`",
        ),
    ],
)
def test_invalid_run_row_error_names_line(row: Any, why: str) -> None:
    with pytest.raises(RecordingError, match=rf"^o\.jsonl:2: .*{why}"):
        _read({"id": "b", "text": "x"}, row)


def test_invalid_json_is_rejected() -> None:
    with pytest.raises(RecordingError, match="invalid JSON"):
        _read("nothing")
    assert read_first_value(iter([b"nothing"]), file="o") is None
    assert read_first_value(iter([b"[1] 2"]), file="o") == [1]


class TestTraceConversion:
    def _trace(self, *turns: Turn, **performance: Any) -> Trace:
        place = Place(file="t.json")
        return Trace(id="t", key="t", turns=turns, place=place, performance=performance or None)

    def test_trace_turn_becomes_messages(self) -> None:
        turn = Turn(
            id="1",
            user_text="q",
            answer_parts=("a",),
            intermediate_texts=("hm",),
            tool_calls=(ToolCall(name="x", args={"k": 1}, id="c"), ToolCall(name="y")),
            tool_responses=(ToolResponse(name="x", output="out", call_index=0),),
        )
        run = convert_trace_to_run(self._trace(turn))
        assert (run.case_id, run.question) == (None, "q")
        assert run.transcript.messages == (
            Message(role="user", content="q"),
            Message(role="assistant", content="hm"),
            Message(
                role="assistant",
                tool_calls=(
                    ToolUse(tool="x", input={"k": 1}, output="out", id="c"),
                    ToolUse(tool="y"),
                ),
            ),
            Message(role="assistant", content="a"),
        )

    def test_tokens_cost_and_duration_are_kept(self) -> None:
        trace = self._trace(
            Turn(id="1", user_text=""),
            tokens={"total_prompt": 3, "total_output": 0},
            latency={"overall": {"count": 1, "max": 12.5}},
        )
        assert convert_trace_to_run(trace).transcript.token_usage is None
        run = convert_trace_to_run(
            replace(trace, usage=TokenUsage(input=3, output=4), cost_usd=0.5)
        )
        assert run.transcript.messages == ()
        assert run.transcript.token_usage == TokenUsage(input=3, output=4)
        assert run.transcript.cost_usd == 0.5
        assert run.transcript.duration_ms == 12.5

    def test_durations_of_several_turns_are_not_added(self) -> None:
        run = convert_trace_to_run(self._trace(latency={"overall": {"count": 2, "max": 12.5}}))
        assert (run.transcript.duration_ms, run.transcript.token_usage) == (None, None)
        assert run.question is None


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"text": ""}, "The output holds no answer and no tool call of the agent"),
        ({"text": " "}, "The output holds no answer and no tool call of the agent"),
        ({"output_messages": []}, "The output holds no answer and no tool call of the agent"),
        (
            {"output_messages": [{"role": "user", "content": "Hi"}]},
            "The output holds no answer and no tool call of the agent",
        ),
        ({"error": "timeout"}, "The agent failed: timeout"),
        ({"text": "so far", "error": {"code": 1}}, 'The agent failed: {"code": 1}'),
        ({"text": "", "error": None}, "The output holds no answer and no tool call of the agent"),
        ({"text": "Yes", "error": None}, ""),
        ({"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "f"}]}]}, ""),
    ],
)
def test_run_without_output_is_not_evaluated(row: Any, reason: str) -> None:
    [run] = _read({"id": "a", **row})
    assert run.not_captured == reason


def test_empty_file_is_not_evaluated() -> None:
    [run] = read_recorded_runs(b"\n", file="a.txt", of_one_case=True)
    assert run.not_captured == "The output holds no answer and no tool call of the agent"


def test_transcript_becomes_one_turn() -> None:
    [run] = _read(
        {
            "id": "a",
            "output_messages": [{"role": "assistant", "tool_calls": [{"tool": "x", "output": 1}]}],
        }
    )
    turn = convert_transcript_to_turn(run.transcript, question="q", answer="")
    assert (turn.user_text, turn.final_text) == ("q", None)
    assert turn.tool_calls == (ToolCall(name="x"),)
    assert turn.tool_responses == (ToolResponse(name="x", output=1, call_index=0),)
