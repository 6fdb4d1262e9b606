"""Datasets in JSON Lines: a row is an object with whatever columns its author gave it.

Rows may be flat, as pytest-agent-evals and Microsoft Foundry have them, or ``{"item", "sample"}``
as in OpenAI's evals.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci._util.text.suggest import quoted
from agentci.errors import InputError, RecordingError
from agentci.model.dataset import ANSWERS, CALLS, DEFINITIONS, Dataset, Row
from agentci.model.json import Json, JsonObject
from agentci.model.place import Place
from agentci.model.problem import Problem
from agentci.model.trace import ToolCall, Turn
from agentci.recordings.json_documents import Document, documents_of
from agentci.recordings.trace_format import ShapeError

ID, ITEM, SAMPLE = "id", "item", "sample"
EXAMPLE: Final = '{"id": "refund", "query": "Can I return it?", "response": "Yes, within 30 days."}'


def read_dataset(data: bytes, *, file: str, carries_runs: bool) -> Dataset:
    """Read the rows.

    Args:
        carries_runs: the rows say what the agent did; else recordings do, and what rows say of it
            is for graders alone.

    Raises:
        InputError: with every row that is wrong.
    """
    rows: dict[str, Row] = {}
    problems: list[Problem] = []
    for number, document in enumerate(_documents(data, file), start=1):
        place = Place(file=file, line=document.line)
        try:
            row = _row(document.value, place, number=number, carries_runs=carries_runs)
            if row.id in rows:
                line = rows[row.id].place.line
                raise ShapeError(f"the id {quoted(row.id)} is taken by the row on line {line}")
            rows[row.id] = row
        except ShapeError as error:
            problems.append(Problem(message=str(error), place=place))
    if problems:
        raise InputError(problems)
    return Dataset(rows=tuple(rows.values()), place=Place(file=file))


def _documents(data: bytes, file: str) -> Iterator[Document]:
    try:
        yield from documents_of(iter([data.removeprefix(BOM_UTF8)]), file=file)
    except RecordingError as error:
        message, place = error.problem.message, error.problem.place
        hint = f"a dataset has an object a line, such as {EXAMPLE}"
        raise InputError.of(message, place=place, hint=hint) from None


def _row(value: Json, place: Place, *, number: int, carries_runs: bool) -> Row:
    if not isinstance(value, Mapping):
        raise ShapeError("a row of a dataset is an object, with a column a member")
    sample = value.get(SAMPLE, {})
    if not isinstance(sample, Mapping):
        raise ShapeError("`sample` is no object")
    columns = _columns(value)
    told = {**columns, **sample}
    query = columns.get("query")
    return Row(
        id=_id(value.get(ID), number),
        query=query if isinstance(query, str) else "",
        columns=columns,
        place=place,
        tool_definitions=definitions_of(told),
        turn=turn_of(told, query) if carries_runs else None,
    )


def _columns(row: JsonObject) -> JsonObject:
    item = row.get(ITEM)
    if isinstance(item, Mapping) and row.keys() <= {ID, ITEM, SAMPLE}:
        return item
    return {name: value for name, value in row.items() if name != SAMPLE}


def _id(given: Json, number: int) -> str:
    if given is None:
        return f"row-{number}"
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise ShapeError("`id` is neither text nor a whole number")
    return str(given)


def turn_of(told: JsonObject, query: Json) -> Turn | None:
    """What an agent did; None where there is no answer.

    Args:
        told: a sample, or the columns of a row.
        query: what it was asked, where that is text.

    Raises:
        ShapeError: the answer is no text, or a call no call.
    """
    name = next((name for name in ANSWERS if told.get(name) is not None), None)
    if name is None:
        return None
    answer = told[name]
    if not isinstance(answer, str):
        raise ShapeError(f"`{name}` is no text; tool calls have a column of their own")
    calls = next((told[name] for name in CALLS if told.get(name) is not None), [])
    return Turn(
        id="",
        user_text=query if isinstance(query, str) else "",
        answer_parts=(answer,) if answer else (),
        tool_calls=tuple(map(_call, _list(calls, "tool_calls"))),
    )


def definitions_of(told: JsonObject) -> tuple[Json, ...]:
    """The tools that an agent had; as ``turn_of``."""
    return tuple(_list(told.get(DEFINITIONS) or [], DEFINITIONS))


def _call(given: Json) -> ToolCall:
    """A call: flat, or as in Chat Completions."""
    call = given if isinstance(given, Mapping) else {}
    function = call.get("function")
    named = function if isinstance(function, Mapping) else call
    name, call_id = named.get("name"), call.get("tool_call_id", call.get("id"))
    if not isinstance(name, str):
        raise ShapeError("a tool call has no `name`")
    return ToolCall(
        name=name,
        args=_arguments(named.get("arguments")),
        id=call_id if isinstance(call_id, str) else None,
    )


def _arguments(given: Json) -> Json:
    """As they are, or out of the JSON that they are written in."""
    if not isinstance(given, str):
        return given
    try:
        arguments: Json = json.loads(given)
    except (ValueError, RecursionError):
        return given
    return arguments if isinstance(arguments, dict) else given


def _list(given: Json, name: str) -> Sequence[Json]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ShapeError(f"`{name}` is no list")
    return given
