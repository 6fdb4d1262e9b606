"""The input of code judges in the format of each AgentV generation, and derived values."""

import json
from typing import Any, Final, get_args

import pytest

from agentci._util.text.javascript import format_js_number, stringify_json
from agentci.evaluators.agentv.case_texts import (
    extract_candidate_answer,
    extract_question,
    extract_reference_answer,
)
from agentci.evaluators.agentv.payload import PayloadFormat, make_judge_input, make_trace_summary
from agentci.model.trace import Message, TokenUsage, ToolUse, Transcript
from tests.evaluators.agentv.agentv_cases import make_agentv_case, said

WIRES: Final[tuple[PayloadFormat, ...]] = get_args(PayloadFormat)
RUN = Transcript(
    messages=(
        Message(role="user", content="q"),
        Message(
            role="assistant",
            content="calling",
            tool_calls=(
                ToolUse(
                    tool="readFile",
                    input={"maxResults": 3},
                    output={"someHits": [1]},
                    id="c1",
                    start_time="2026-01-01T00:00:00Z",
                    end_time="2026-01-01T00:00:01Z",
                ),
                ToolUse(tool="search", duration_ms=250, start_time="not a time"),
            ),
            metadata={"someKey": 1},
        ),
        Message(role="assistant", content="final"),
        Message(role="tool", content="after"),
    ),
    token_usage=TokenUsage(input=10, output=5, cached=2),
    cost_usd=0.01,
    duration_ms=1234,
    start_time="2026-01-01T00:00:00.000Z",
)


def _told(wire: PayloadFormat, **fields: Any) -> Any:
    return json.loads(make_judge_input(make_agentv_case(**fields), RUN, {"maxItems": 5}, wire))


class TestThePayload:
    def test_is_printed_with_two_spaces_a_level(self) -> None:
        assert make_judge_input(make_agentv_case(), RUN, None, "snake").startswith(
            '{\n  "question": "Say it",\n'
        )

    def test_of_the_first_generation_has_these_keys(self) -> None:
        assert [*_told("camel")] == [
            *("question", "expectedOutcome", "expectedMessages", "referenceAnswer"),
            *("candidateAnswer", "outputMessages", "guidelineFiles", "inputFiles"),
            *("inputMessages", "traceSummary"),
        ]

    def test_of_all_generations_has_the_keys_of_each(self) -> None:
        union = _told("union", metadata={"myKey": 1})
        keys = {key for wire in WIRES for key in _told(wire, metadata={"myKey": 1})}
        assert keys - union.keys() == set()
        summary = union["trace_summary"]
        assert summary == union["traceSummary"]
        assert {"tool_calls", "tool_names", "toolNames", "eventCount"} <= summary.keys()

    @pytest.mark.parametrize("wire", WIRES)
    def test_leaves_the_keys_of_users_alone(self, wire: PayloadFormat) -> None:
        written = json.dumps(
            _told(wire, expected_messages=({"role": "user", "content": {"aB": 1}},))
        )
        assert '"maxResults"' in written
        assert '"aB"' in written
        assert '"max_results"' not in written

    def test_has_no_null_but_where_the_sdks_allow_it(self) -> None:
        def nulls(value: Any) -> set[str]:
            if isinstance(value, dict):
                own = {key for key, each in value.items() if each is None}
                return own.union(*map(nulls, value.values()))
            return set().union(*map(nulls, value)) if isinstance(value, list) else set()

        assert nulls(_told("union")) == {"file_changes", "workspace_path"}

    def test_spells_what_we_put_into_expected_messages(self) -> None:
        part = {"type": "file", "path": "a", "text": "t", "resolved_path": "/w/a"}
        expected = ({"role": "assistant", "content": [part, {"type": "text", "value": "x"}]},)
        told = _told("union", expected_messages=expected)
        assert told["expected_messages"][0]["content"][0]["resolved_path"] == "/w/a"
        assert told["expectedMessages"][0]["content"][0]["resolvedPath"] == "/w/a"

    def test_of_the_fourth_generation_begins_with_what_was_asked(self) -> None:
        alone = json.loads(make_judge_input(make_agentv_case(), said("x"), None, "v4"))["messages"]
        assert [message["role"] for message in alone] == ["user", "assistant"]
        assert [message["role"] for message in _told("v4")["messages"]][:1] == ["user"]

    def test_of_the_fourth_generation_has_a_trace_of_events(self) -> None:
        trace = _told("v4")["trace"]
        assert [event["event_id"] for event in trace["events"]] == [
            *("message-0", "message-1", "message-1-tool-0", "message-1-tool-0-result"),
            *("message-1-tool-1", "message-2", "message-3", "final-response"),
        ]
        assert trace["tool_calls"] == {"readFile": 1, "search": 1}

    def test_of_a_run_without_messages_has_no_events(self) -> None:
        told = json.loads(make_judge_input(make_agentv_case(), Transcript(messages=()), None, "v4"))
        assert (told["trace"]["events"], told["output"]) == ([], "")


class TestTheSummary:
    def test_counts_and_measures(self) -> None:
        assert make_trace_summary(RUN) == {
            "event_count": 2,
            "tool_names": ["readFile", "search"],
            "tool_calls_by_name": {"readFile": 1, "search": 1},
            "error_count": 0,
            "llm_call_count": 2,
            "tool_durations": {"readFile": [1000], "search": [250]},
            "start_time": "2026-01-01T00:00:00.000Z",
            "end_time": "2026-01-01T00:00:01.000Z",
            "token_usage": {"input": 10, "output": 5, "cached": 2},
            "cost_usd": 0.01,
            "duration_ms": 1234,
        }

    def test_leaves_out_what_is_not_known(self) -> None:
        assert [*make_trace_summary(said("x"))] == [
            "event_count", "tool_names", "tool_calls_by_name", "error_count", "llm_call_count",
        ]  # fmt: skip

    def test_takes_times_without_a_zone_for_utc(self) -> None:
        run = Transcript(messages=(Message(role="user", start_time="2026-01-01T00:00:00"),))
        assert make_trace_summary(run)["start_time"] == "2026-01-01T00:00:00.000Z"


class TestWhatIsDerived:
    def test_the_question_is_all_that_was_asked(self) -> None:
        parts = [{"type": "text", "value": " b "}, {"type": "file", "value": "f"}, {"value": 1}, 2]
        messages = (
            {"role": "system", "content": "a"},
            {"role": "user", "content": parts},
            {"role": "user", "content": {"k": 1.0}},
            {"role": "assistant", "tool_calls": [{"tool": "x"}]},
        )
        assert extract_question(make_agentv_case(input_messages=messages)) == 'a b {\n  "k": 1\n}'

    @pytest.mark.parametrize(
        ("last", "answer"),
        [
            ({"content": "text"}, "text"),
            ({"content": {"k": 1}}, '{\n  "k": 1\n}'),
            ({"tool_calls": []}, "[]"),
            ({}, ""),
        ],
    )
    def test_the_reference_is_the_last_expected_message(self, last: Any, answer: str) -> None:
        messages = ({"role": "assistant", "content": "first"}, {"role": "assistant", **last})
        assert extract_reference_answer(make_agentv_case(expected_messages=messages)) == answer

    def test_the_answer_is_the_last_of_the_assistant_that_has_content(self) -> None:
        assert extract_candidate_answer(RUN) == "final"
        data = Transcript(messages=(Message(role="assistant", content={"k": [1, "é"]}),))
        assert extract_candidate_answer(data) == '{"k":[1,"é"]}'
        assert extract_candidate_answer(Transcript(messages=())) == ""


def test_numbers_are_written_as_in_javascript() -> None:
    assert [format_js_number(value) for value in (3500, 3500.0, 0.5)] == ["3500", "3500", "0.5"]
    assert stringify_json({"a": [1.0, (2.5,)]}) == '{"a":[1,[2.5]]}'
