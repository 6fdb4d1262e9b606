"""Datasets with flat rows, and in the format of OpenAI's evals."""

import json
from typing import Any

import pytest

from agentci.errors import InputError
from agentci.model.case import DatasetRow
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import Place
from agentci.recordings.dataset import read_dataset


def _rows(*rows: Any, carries_runs: bool = True) -> tuple[DatasetRow, ...]:
    text = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in rows)
    return read_dataset(text.encode(), file="data.jsonl", carries_runs=carries_runs).rows


def _problems(*rows: Any, carries_runs: bool = True) -> list[str]:
    with pytest.raises(InputError) as caught:
        _rows(*rows, carries_runs=carries_runs)
    return [str(each) for each in caught.value.problems]


def _turn(**row: Any) -> Turn | None:
    [read] = _rows({"query": "q", **row})
    return read.turn


def _nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_row_has_columns_and_line() -> None:
    first, second = _rows({"query": "q", "context": ["c"]}, "", {"id": 7, "query": None})
    assert first == DatasetRow(
        id="row-1",
        query="q",
        columns={"query": "q", "context": ["c"]},
        place=Place(file="data.jsonl", line=1),
    )
    assert (second.id, second.query, second.place.line) == ("7", "", 3)


def test_response_and_tool_calls_become_a_turn() -> None:
    call = {"name": "find", "arguments": {"order": 1}, "tool_call_id": "c1"}
    assert _turn(response="Yes.", tool_calls=[call]) == Turn(
        id="",
        user_text="q",
        answer_parts=("Yes.",),
        tool_calls=(ToolCall(name="find", args={"order": 1}, id="c1"),),
    )


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"response": "r"}, "r"),
        ({"output_text": "o"}, "o"),
        ({"sample": {"output_text": "s"}}, "s"),
        ({"response": "r", "output_text": "o"}, "r"),
        ({"response": None, "output_text": "o"}, "o"),
        ({"response": ""}, None),
    ],
)
def test_answer_is_read_from_several_columns(row: dict[str, Any], answer: str | None) -> None:
    turn = _turn(**row)
    assert turn is not None
    assert turn.final_text == answer


def test_row_without_answer_has_no_turn() -> None:
    assert _turn(tool_calls=[{"name": "find"}]) is None


@pytest.mark.parametrize(
    ("call", "args", "call_id"),
    [
        ({"name": "f"}, None, None),
        ({"name": "f", "arguments": '{"a": 1}', "id": "c"}, {"a": 1}, "c"),
        ({"id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}}, {"a": 1}, "c"),
        ({"name": "f", "arguments": "{a"}, "{a", None),
        ({"name": "f", "arguments": "1", "id": 3}, "1", None),
    ],
)
def test_flat_and_chat_completions_tool_calls_are_read(
    call: dict[str, Any], args: object, call_id: str | None
) -> None:
    turn = _turn(sample={"output_text": "x", "output_tools": [call]})
    assert turn is not None
    assert turn.tool_calls == (ToolCall(name="f", args=args, id=call_id),)  # type: ignore[arg-type]  # (JSON)


def test_openai_row_columns_come_from_item() -> None:
    [row] = _rows({"item": {"query": "q", "id": "no"}, "sample": {"output_text": "s"}})
    assert (row.id, row.query, row.columns) == ("row-1", "q", {"query": "q", "id": "no"})
    [other] = _rows({"item": {"a": 1}, "query": "q"})
    assert other.columns == {"item": {"a": 1}, "query": "q"}


def test_agent_output_is_not_a_column() -> None:
    tools = [{"name": "find"}]
    [row] = _rows({"query": "q", "sample": {"output_text": "s", "tool_definitions": tools}})
    assert (row.columns, row.tool_definitions) == ({"query": "q"}, ({"name": "find"},))
    [flat] = _rows({"query": "q", "tool_definitions": None})
    assert flat.tool_definitions == ()


def test_response_is_a_plain_column_beside_traces() -> None:
    [row] = _rows({"response": [{"role": "assistant"}]}, carries_runs=False)
    assert (row.turn, row.columns) == (None, {"response": [{"role": "assistant"}]})


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ([], "1: the row is a list, not an object with one key per column"),
        (
            "x y",
            "1:1: invalid JSON: expecting value (a dataset has one JSON object per line, such as",
        ),
        ({"id": True}, "1: `id` is not text or a whole number"),
        ({"id": " "}, "1: `id` is not text or a whole number"),
        ({"sample": "s"}, "1: `sample` is a string, not an object"),
        ({"tool_definitions": "f"}, "1: `tool_definitions` is a string, not a list"),
        ({"response": ["x"]}, "1: `response` is a list, not text; put tool calls in `tool_calls`"),
        (
            {"response": "r", "tool_calls": {"name": "f"}},
            "1: `tool_calls` is an object, not a list",
        ),
        ({"response": "r", "deep": _nest(70)}, "1: the row is nested more than 64 levels deep"),
        ({"response": "r", "tool_calls": ["f"]}, "1: a tool call has no `name`"),
    ],
)
def test_invalid_row_error_names_line(row: Any, problem: str) -> None:
    [error] = _problems(row)
    assert error.startswith(f"data.jsonl:{problem}")


def test_every_invalid_row_is_reported() -> None:
    assert _problems({"id": "a"}, {"id": "a"}, {"id": []}) == [
        "data.jsonl:2: duplicate id 'a'; line 1 has the same id",
        "data.jsonl:3: `id` is not text or a whole number",
    ]


def test_byte_order_mark_and_crlf_are_accepted() -> None:
    data = b'\xef\xbb\xbf{"query": "a"}\r\n{"query": "b"}\r\n'
    rows = read_dataset(data, file="data.jsonl", carries_runs=True).rows
    assert [row.query for row in rows] == ["a", "b"]


def test_empty_dataset_is_rejected() -> None:
    [error] = _problems("")
    assert error.startswith("data.jsonl:1: the file is empty")
