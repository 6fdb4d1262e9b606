"""The `sample` and `item` arguments of graders called as ``grade(sample, item)``."""

import json
from typing import Any

import pytest

from agentci._util.text.json_text import dumps_compact
from agentci.evaluators.grader_protocol import make_grade_arguments, make_item, make_sample
from agentci.model.case import Case, DatasetRow, EvalCase
from agentci.model.trace import ToolCall, ToolResponse, Trace, Turn
from agentci.model.values import Place, replace

PLACE = Place(file="data.jsonl", line=2)
FIRST = Turn(
    id="1",
    user_text="Where is it?",
    answer_parts=("Which order?",),
)
SECOND = Turn(
    id="2",
    user_text="4711",
    answer_parts=("It is ", "on its way."),
    tool_calls=(
        ToolCall(name="find", args={"order": "4711"}, id="call_1"),
        ToolCall(name="note", args="seen"),
    ),
    tool_responses=(
        ToolResponse(name="find", output={"status": "shipped"}, id="call_1", call_index=0),
        ToolResponse(name="note", output="ok", call_index=1),
        ToolResponse(name="stray"),
    ),
)
TRACE = Trace(id="t", key="t", turns=(FIRST, SECOND), place=PLACE)
CASE = Case(id="t", trace=TRACE)
ROW = DatasetRow(id="r", query="Where is it?", columns={"context": "parcels"}, place=PLACE)


def _answering(text: str) -> Case:
    turn = replace(SECOND, answer_parts=(text,))
    return replace(CASE, trace=replace(TRACE, turns=(turn,)))


class TestSample:
    def test_sample_has_last_answer_and_all_tool_calls(self) -> None:
        sample = make_sample(CASE)
        assert sample["output_text"] == "It is on its way."
        assert sample["tool_calls"] == [
            {
                "type": "tool_call",
                "name": "find",
                "arguments": {"order": "4711"},
                "tool_call_id": "call_1",
            },
            {
                "type": "tool_call",
                "name": "note",
                "arguments": {"value": "seen"},
                "tool_call_id": None,
            },
        ]

    def test_sample_has_chat_completions_choices(self) -> None:
        sample: Any = make_sample(CASE)
        function = {"name": "find", "arguments": '{"order":"4711"}'}
        first = {"id": "call_1", "type": "function", "function": function}
        assert sample["output_tools"][0] == first
        [choice] = sample["choices"]
        assert choice == {
            "index": 0,
            "finish_reason": "stop",
            "message": {
                "role": "assistant",
                "content": "It is on its way.",
                "tool_calls": sample["output_tools"],
            },
        }

    def test_sample_has_responses_api_output_items(self) -> None:
        assert make_sample(CASE)["output_items"] == [
            _message("Which order?"),
            {
                "type": "function_call",
                "call_id": "call_1",
                "name": "find",
                "arguments": '{"order":"4711"}',
            },
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": '{"status":"shipped"}',
            },
            {
                "type": "function_call",
                "call_id": None,
                "name": "note",
                "arguments": '{"value":"seen"}',
            },
            {"type": "function_call_output", "call_id": None, "output": "ok"},
            _message("It is on its way."),
        ]

    @pytest.mark.parametrize(
        ("answer", "parsed"),
        [('{"a": 1}', {"a": 1}), ("[1]", [1]), ("1", None), ("{a}", None), ("[" * 100_000, None)],
    )
    def test_json_answer_is_parsed_into_output_json(self, answer: str, parsed: object) -> None:
        assert make_sample(_answering(answer)).get("output_json") == parsed

    def test_sample_has_tool_definitions_of_dataset_row(self) -> None:
        tools = ({"name": "find"},)
        assert make_sample(CASE)["tool_definitions"] == []
        with_row = replace(CASE, dataset_row=replace(ROW, tool_definitions=tools))
        assert make_sample(with_row)["tool_definitions"] == [*tools]

    @pytest.mark.parametrize("turns", [(), (replace(FIRST, answer_parts=()),)])
    def test_sample_without_answer_has_empty_output_text(self, turns: tuple[Turn, ...]) -> None:
        sample = make_sample(replace(CASE, trace=replace(TRACE, turns=turns)))
        assert (sample["output_text"], sample["output_items"]) == ("", [])


class TestItem:
    def test_item_is_dataset_row_with_query(self) -> None:
        case = replace(CASE, dataset_row=ROW)
        assert make_item(case) == {"query": "Where is it?", "context": "parcels"}

    def test_missing_row_query_falls_back_to_user_text(self) -> None:
        assert make_item(replace(CASE, dataset_row=replace(ROW, query="")))["query"] == "4711"

    def test_item_without_row_has_only_the_query(self) -> None:
        assert make_item(CASE) == {"query": "4711"}
        assert make_item(replace(CASE, trace=replace(TRACE, turns=()))) == {"query": ""}

    @pytest.mark.parametrize(
        ("turns", "item"),
        [
            ((FIRST, SECOND), {"query": "4711", "ground_truth": "It is on its way."}),
            ((FIRST, replace(SECOND, answer_parts=())), {"query": "4711"}),
            ((), {"query": "4711"}),
        ],
    )
    def test_expected_answer_becomes_ground_truth(
        self, turns: tuple[Turn, ...], item: object
    ) -> None:
        assert make_item(replace(CASE, expected=EvalCase(id="g", turns=turns, place=PLACE))) == item


def test_item_argument_contains_the_sample() -> None:
    asked = make_grade_arguments(replace(CASE, dataset_row=ROW))
    assert asked["item"] == {**make_item(replace(CASE, dataset_row=ROW)), "sample": asked["sample"]}
    assert json.loads(dumps_compact(asked)) == asked


def _message(text: str) -> object:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}
