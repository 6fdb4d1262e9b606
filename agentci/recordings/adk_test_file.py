"""Reads ADK's test files in their old form: lists of queries with expected tool uses.

A file is one case, a list of turns; or a list of named cases with their turns in ``data``.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, TypeGuard

from agentci._util.text.json_document import JsonDocument, JsonFieldProblem, JsonFields, Step
from agentci.model.case import EvalCase
from agentci.model.json import Json
from agentci.model.trace import ToolCall, Turn

CASE_KEYS: Final = frozenset({"name", "data"})


def is_test_file(value: Json) -> TypeGuard[list[Json]]:
    """Whether a file's value is such a list."""
    return isinstance(value, list) and any(
        isinstance(each, Mapping) and ("query" in each or each.keys() >= CASE_KEYS)
        for each in value
    )


def read_test_cases(
    items: Sequence[Json], document: JsonDocument, problems: list[JsonFieldProblem]
) -> Iterator[EvalCase]:
    """Yield the cases of a test file, and add its problems."""
    if any(isinstance(each, Mapping) and each.keys() >= CASE_KEYS for each in items):
        for index, item in enumerate(items):
            fields = _make_fields(item, "a case", (index,), problems)
            fields.require("name", "data")
            fields.object("initial_session", noun="a session")
            turns = tuple(map(_read_turn, fields.objects("data", noun="a turn")))
            place = document.find_place((index,))
            yield EvalCase(id=fields.text("name") or "", turns=turns, place=place)
        return
    turns = tuple(
        _read_turn(_make_fields(item, "a turn", (index,), problems))
        for index, item in enumerate(items)
    )
    place = document.find_place(())
    stem = PurePosixPath(place.file).name.removesuffix(".json").removesuffix(".test")
    yield EvalCase(id=stem, turns=turns, place=place)


def _make_fields(
    item: Json, noun: str, path: tuple[Step, ...], problems: list[JsonFieldProblem]
) -> JsonFields:
    if not isinstance(item, Mapping):
        problems.append(JsonFieldProblem(path=path, message=f"{noun} must be an object"))
        item = {}
    return JsonFields(item, noun=noun, path=path, complaints=problems)


def _read_turn(fields: JsonFields) -> Turn:
    fields.require("query")
    answer = fields.text("reference")
    return Turn(
        id="",
        user_text=fields.text("query") or "",
        answer_parts=(answer,) if answer else (),
        tool_calls=tuple(map(_read_call, fields.objects("expected_tool_use", noun="a tool use"))),
    )


def _read_call(fields: JsonFields) -> ToolCall:
    fields.require("tool_name")
    return ToolCall(name=fields.text("tool_name") or "", args=fields.mapping("tool_input"))
