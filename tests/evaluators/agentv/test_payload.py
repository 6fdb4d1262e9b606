"""The input of code judges in the format of each AgentV generation, and derived values."""

import json
import re
from typing import Any, Final, get_args

import pytest

from agentci._util.text.javascript import format_js_number, stringify_json
from agentci.evaluators.agentv.code_judge import CodeJudge
from agentci.evaluators.agentv.findings import (
    extract_candidate_answer,
    extract_question,
    extract_reference_answer,
)
from agentci.evaluators.agentv.payload import PayloadFormat, make_judge_input, make_trace_summary
from agentci.model.trace import Message, TokenUsage, ToolUse, Transcript
from tests.evaluators.agentv.agentv_cases import make_agentv_case, run_with_answer, suite_of

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


def _payload(wire: PayloadFormat, **fields: Any) -> Any:
    return json.loads(make_judge_input(make_agentv_case(**fields), RUN, {"maxItems": 5}, wire))


class TestPayload:
    def test_payload_is_indented_by_two_spaces(self) -> None:
        assert make_judge_input(make_agentv_case(), RUN, None, "snake").startswith(
            '{\n  "question": "Say it",\n'
        )

    def test_camel_case_payload_has_first_generation_keys(self) -> None:
        assert [*_payload("camel")] == [
            *("question", "expectedOutcome", "expectedMessages", "referenceAnswer"),
            *("candidateAnswer", "outputMessages", "guidelineFiles", "inputFiles"),
            *("inputMessages", "traceSummary"),
        ]

    def test_union_payload_has_keys_of_all_generations(self) -> None:
        union = _payload("union", metadata={"myKey": 1})
        keys = {key for wire in WIRES for key in _payload(wire, metadata={"myKey": 1})}
        assert keys - union.keys() == set()
        summary = union["trace_summary"]
        assert summary == union["traceSummary"]
        assert {"tool_calls", "tool_names", "toolNames", "eventCount"} <= summary.keys()

    @pytest.mark.parametrize("wire", WIRES)
    def test_keys_in_user_data_are_not_renamed(self, wire: PayloadFormat) -> None:
        written = json.dumps(
            _payload(wire, expected_messages=({"role": "user", "content": {"aB": 1}},))
        )
        assert '"maxResults"' in written
        assert '"aB"' in written
        assert '"max_results"' not in written

    def test_null_appears_only_in_nullable_members(self) -> None:
        def nulls(value: Any) -> set[str]:
            if isinstance(value, dict):
                own = {key for key, each in value.items() if each is None}
                return own.union(*map(nulls, value.values()))
            return set().union(*map(nulls, value)) if isinstance(value, list) else set()

        assert nulls(_payload("union")) == {"file_changes", "workspace_path"}

    def test_resolved_path_follows_key_style(self) -> None:
        part = {"type": "file", "path": "a", "text": "t", "resolved_path": "/w/a"}
        expected = ({"role": "assistant", "content": [part, {"type": "text", "value": "x"}]},)
        payload = _payload("union", expected_messages=expected)
        assert payload["expected_messages"][0]["content"][0]["resolved_path"] == "/w/a"
        assert payload["expectedMessages"][0]["content"][0]["resolvedPath"] == "/w/a"

    def test_fourth_generation_messages_begin_with_input(self) -> None:
        alone = json.loads(make_judge_input(make_agentv_case(), run_with_answer("x"), None, "v4"))[
            "messages"
        ]
        assert [message["role"] for message in alone] == ["user", "assistant"]
        assert [message["role"] for message in _payload("v4")["messages"]][:1] == ["user"]

    def test_fourth_generation_trace_lists_events(self) -> None:
        trace = _payload("v4")["trace"]
        assert [event["event_id"] for event in trace["events"]] == [
            *("message-0", "message-1", "message-1-tool-0", "message-1-tool-0-result"),
            *("message-1-tool-1", "message-2", "message-3", "final-response"),
        ]
        assert trace["tool_calls"] == {"readFile": 1, "search": 1}

    def test_trace_of_a_run_without_messages_is_the_prompt(self) -> None:
        payload = json.loads(
            make_judge_input(make_agentv_case(), Transcript(messages=()), None, "v4")
        )
        events = [event["event_id"] for event in payload["trace"]["events"]]
        assert (events, payload["output"]) == (["message-0"], "")

    def test_fourth_generation_input_has_files(self) -> None:
        part = {"type": "file", "value": "notes.md"}
        payload = _payload(
            "v4",
            input_messages=({"role": "user", "content": [part, {"type": "text", "value": "x"}]},),
            input_texts={"notes.md": "some notes"},
            input_paths={"notes.md": "/w/notes.md"},
        )
        read = {"path": "notes.md", "text": "some notes", "resolved_path": "/w/notes.md"}
        assert payload["input"][0]["content"][0] == {**part, **read}

    def test_prompt_names_files_by_their_paths(self) -> None:
        parts = [{"type": "file", "value": "notes.md"}, {"type": "text", "value": ""}]
        messages = (
            {"role": "user", "content": parts},
            {"role": "user", "content": []},
            {"role": "assistant", "content": "x"},
        )
        files = {"input_texts": {"notes.md": "x"}, "input_paths": {"notes.md": "/w/notes.md"}}
        case = make_agentv_case(input_messages=messages, **files)
        given = make_judge_input(case, run_with_answer("y"), None, "v4")
        assert [message["content"] for message in json.loads(given)["messages"]] == [
            '<file: path="/w/notes.md">', "x", "y",
        ]  # fmt: skip

    def test_fourth_generation_trace_names_the_target(self) -> None:
        payload = _payload("v4", target="fast", provider="cli")
        assert payload["trace"]["metadata"] == {
            "provider": "cli",
            "target": "fast",
            "eval_case_id": payload["trace"]["metadata"]["eval_case_id"],
        }

    def test_fourth_generation_events_have_names_and_metadata(self) -> None:
        message = Message(role="assistant", name="bot", content="x", metadata={"aB": 1})
        given = make_judge_input(make_agentv_case(), Transcript(messages=(message,)), None, "v4")
        events = json.loads(given)["trace"]["events"]
        spoken = {"role": "assistant", "name": "bot", "content": "x", "metadata": {"aB": 1}}
        assert [each["message"] for each in events[1:]] == [spoken, spoken]

    def test_prompt_of_several_roles_keeps_them(self) -> None:
        messages = tuple(
            {"role": role, "content": role} for role in ("system", "user", "tool", "system")
        )
        run = run_with_answer("x")
        given = make_judge_input(make_agentv_case(input_messages=messages), run, None, "v4")
        assert [(m["role"], m["content"]) for m in json.loads(given)["messages"]] == [
            ("system", "system"), ("user", "user"), ("assistant", "@[Tool]:\ntool"),
            ("assistant", "@[System]:\nsystem"), ("assistant", "x"),
        ]  # fmt: skip

    def test_combined_snake_case_has_no_key_in_camel_case(self) -> None:
        given = make_judge_input(make_agentv_case(), run_with_answer("x"), None, "snake+v4")
        assert re.findall(r'"[a-z]+[A-Z]\w*":', given) == []
        assert {"candidate_answer", "output"} <= json.loads(given).keys()

    @pytest.mark.parametrize(
        ("key", "wire"), [("evalcases", "union"), ("cases", "union"), ("tests", "snake+v4")]
    )
    def test_list_of_cases_decides_the_format(self, key: str, wire: str) -> None:
        entry = {"name": "e", "type": "code_judge", "script": ["true"]}
        [evaluator] = suite_of(entry, key=key).evaluators
        assert isinstance(evaluator, CodeJudge)
        assert evaluator.wire == wire


class TestTraceSummary:
    def test_summary_has_counts_durations_and_usage(self) -> None:
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

    def test_unknown_metrics_are_omitted(self) -> None:
        assert [*make_trace_summary(run_with_answer("x"))] == [
            "event_count", "tool_names", "tool_calls_by_name", "error_count", "llm_call_count",
        ]  # fmt: skip

    def test_time_without_zone_is_utc(self) -> None:
        run = Transcript(messages=(Message(role="user", start_time="2026-01-01T00:00:00"),))
        assert make_trace_summary(run)["start_time"] == "2026-01-01T00:00:00.000Z"


class TestDerivedTexts:
    def test_question_joins_all_user_messages(self) -> None:
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
    def test_reference_answer_is_last_expected_message(self, last: Any, answer: str) -> None:
        messages = ({"role": "assistant", "content": "first"}, {"role": "assistant", **last})
        assert extract_reference_answer(make_agentv_case(expected_messages=messages)) == answer

    def test_candidate_answer_is_last_assistant_content(self) -> None:
        assert extract_candidate_answer(RUN) == "final"
        data = Transcript(messages=(Message(role="assistant", content={"k": [1, "é"]}),))
        assert extract_candidate_answer(data) == '{"k":[1,"é"]}'
        assert extract_candidate_answer(Transcript(messages=())) == ""


def test_numbers_are_formatted_like_javascript() -> None:
    assert [format_js_number(value) for value in (3500, 3500.0, 0.5)] == ["3500", "3500", "0.5"]
    assert stringify_json({"a": [1.0, (2.5,)]}) == '{"a":[1,[2.5]]}'
