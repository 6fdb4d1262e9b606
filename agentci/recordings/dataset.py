"""Reads JSON Lines datasets: one object per line, with any columns.

Rows may be flat, as in pytest-agent-evals and Microsoft Foundry, or ``{"item", "sample"}`` as in
OpenAI's evals.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentci._util.text.json_document import JSON_TYPE_NAMES
from agentci._util.text.json_text import is_shallow
from agentci._util.text.suggest import quote_name
from agentci.errors import InputError, RecordingError
from agentci.model.case import (
    ANSWER_COLUMNS,
    TOOL_CALL_COLUMNS,
    TOOL_DEFINITIONS_COLUMN,
    Dataset,
    DatasetRow,
)
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import Json, JsonObject, Place, Problem
from agentci.recordings.json_documents import Document, DocumentFormatError, read_documents
from agentci.recordings.telemetry.json_input import MAX_DEPTH, parse_nested_json

ID_COLUMN, ITEM_COLUMN, SAMPLE_COLUMN = "id", "item", "sample"
EXAMPLE_ROW: Final = (
    '{"id": "refund", "query": "Can I return it?", "response": "Yes, within 30 days."}'
)


def read_dataset(data: bytes, *, file: str, carries_runs: bool) -> Dataset:
    """Read the rows of a dataset.

    Args:
        carries_runs: whether the rows record what the agent did. If not, traces do, and only
            graders read what the rows record about the agent.

    Raises:
        InputError: with a problem for each invalid row.
    """
    rows: dict[str, DatasetRow] = {}
    problems: list[Problem] = []
    for number, document in enumerate(_read_row_documents(data, file), start=1):
        place = Place(file=file, line=document.line)
        try:
            row = _read_row(document.value, place, number=number, carries_runs=carries_runs)
            if row.id in rows:
                line = rows[row.id].place.line
                raise DocumentFormatError(
                    f"duplicate id {quote_name(row.id)}; line {line} has the same id"
                )
            rows[row.id] = row
        except DocumentFormatError as error:
            problems.append(Problem(message=str(error), place=place))
    if problems:
        raise InputError(problems)
    return Dataset(rows=tuple(rows.values()), place=Place(file=file))


def _read_row_documents(data: bytes, file: str) -> Iterator[Document]:
    try:
        yield from read_documents(iter([data.removeprefix(BOM_UTF8)]), file=file)
    except RecordingError as error:
        message, place = error.problem.message, error.problem.place
        hint = f"a dataset has one JSON object per line, such as {EXAMPLE_ROW}"
        raise InputError.from_message(message, place=place, hint=hint) from None


def _read_row(value: Json, place: Place, *, number: int, carries_runs: bool) -> DatasetRow:
    if not is_shallow(value, MAX_DEPTH):
        raise DocumentFormatError(f"the row is nested more than {MAX_DEPTH} levels deep")
    if not isinstance(value, Mapping):
        kind = _describe_type(value)
        raise DocumentFormatError(f"the row is {kind}, not an object with one key per column")
    sample = value.get(SAMPLE_COLUMN, {})
    if not isinstance(sample, Mapping):
        raise DocumentFormatError(f"`sample` is {_describe_type(sample)}, not an object")
    columns = _find_columns(value)
    output = {**columns, **sample}
    query = columns.get("query")
    return DatasetRow(
        id=_read_row_id(value.get(ID_COLUMN), number),
        query=query if isinstance(query, str) else "",
        columns=columns,
        place=place,
        tool_definitions=extract_tool_definitions(output),
        turn=extract_turn(output, query) if carries_runs else None,
    )


def _find_columns(row: JsonObject) -> JsonObject:
    item = row.get(ITEM_COLUMN)
    if isinstance(item, Mapping) and row.keys() <= {ID_COLUMN, ITEM_COLUMN, SAMPLE_COLUMN}:
        return item
    return {name: value for name, value in row.items() if name != SAMPLE_COLUMN}


def _read_row_id(given: Json, number: int) -> str:
    if given is None:
        return f"row-{number}"
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise DocumentFormatError("`id` is not text or a whole number")
    return str(given)


def extract_turn(fields: JsonObject, query: Json) -> Turn | None:
    """Build the agent's turn from a row; None if it has no response.

    Args:
        fields: a sample, or the columns of a row.
        query: the user's question, used if it is text.

    Raises:
        DocumentFormatError: if the response is not text or a tool call is invalid.
    """
    name = next((name for name in ANSWER_COLUMNS if fields.get(name) is not None), None)
    if name is None:
        return None
    answer = fields[name]
    if not isinstance(answer, str):
        raise DocumentFormatError(
            f"`{name}` is {_describe_type(answer)}, not text; put tool calls in"
            f" `{TOOL_CALL_COLUMNS[0]}`"
        )
    calls = next((fields[name] for name in TOOL_CALL_COLUMNS if fields.get(name) is not None), None)
    return Turn(
        id="",
        user_text=query if isinstance(query, str) else "",
        answer_parts=(answer,) if answer else (),
        tool_calls=tuple(
            map(_read_tool_call, _require_list([] if calls is None else calls, "tool_calls"))
        ),
        tool_calls_recorded=calls is not None,
    )


def extract_tool_definitions(fields: JsonObject) -> tuple[Json, ...]:
    """Return the definitions of the agent's tools.

    Raises:
        DocumentFormatError: if they are not a list.
    """
    return tuple(_require_list(fields.get(TOOL_DEFINITIONS_COLUMN) or [], TOOL_DEFINITIONS_COLUMN))


def _read_tool_call(given: Json) -> ToolCall:
    """Read a tool call, either flat or in the Chat Completions format."""
    call = given if isinstance(given, Mapping) else {}
    function = call.get("function")
    named = function if isinstance(function, Mapping) else call
    name, call_id = named.get("name"), call.get("tool_call_id", call.get("id"))
    if not isinstance(name, str):
        raise DocumentFormatError("a tool call has no `name`")
    return ToolCall(
        name=name,
        args=_decode_arguments(named.get("arguments")),
        id=call_id if isinstance(call_id, str) else None,
    )


def _decode_arguments(given: Json) -> Json:
    """Return the arguments, decoded if they are the text of a JSON object."""
    if not isinstance(given, str):
        return given
    try:
        arguments = parse_nested_json(given)
    except ValueError:
        return given
    return arguments if isinstance(arguments, dict) else given


def _require_list(given: Json, name: str) -> Sequence[Json]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise DocumentFormatError(f"`{name}` is {_describe_type(given)}, not a list")
    return given


def _describe_type(value: Json) -> str:
    return JSON_TYPE_NAMES[type(value)]
