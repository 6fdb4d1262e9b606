"""Read cases in other formats: CSV files of AgentV 5, and `evals.json` of Agent Skills."""

import csv
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from agentci._util.text.suggest import join_with_or, quote_name
from agentci.config.discovery import CASE_KEYS, SKILL_CASES_KEY
from agentci.config.yaml_nodes import (
    MappingEntry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    change_items,
    find_text,
    find_value,
    make_mapping,
    make_mapping_from_entries,
    make_node,
    make_sequence,
)
from agentci.errors import InputError
from agentci.model.values import Json, JsonObject, Place

ASSERTION_COLUMN: Final = "__expected"
CONFIG_COLUMN: Final = "__config:"
METADATA_COLUMN: Final = "__metadata:"
VARIABLES_COLUMN: Final = "vars."
LIST_MARK: Final = "[]"
# Columns that become a key of the case.
CASE_COLUMNS: Final[Mapping[str, str]] = {
    "__description": "criteria",
    "__provider_output": "expected_output",
    "__providerOutput": "expected_output",
}
THRESHOLD_COLUMN: Final = "__threshold"
# Columns that are read together with others.
OTHER_COLUMNS: Final = ("id", "input", "__prefix", "__suffix", "__metric", THRESHOLD_COLUMN)
KNOWN_COLUMNS: Final = (ASSERTION_COLUMN, *CASE_COLUMNS, *OTHER_COLUMNS)
RUBRIC_PREFIXES: Final = ("grade:", "llm-rubric:")
JAVASCRIPT_PREFIXES: Final = ("javascript:", "fn:", "eval:")
PYTHON_PREFIX: Final = "python:"
FILE_PREFIX: Final = "file://"
CODE_PREFIXES: Final = (*RUBRIC_PREFIXES, *JAVASCRIPT_PREFIXES, PYTHON_PREFIX, FILE_PREFIX)
NOT_PREFIX: Final = "not-"
PYTHON_ENDING: Final = ".py"
ASSERTION: Final = re.compile(
    r"((?:not-)?[a-z][a-z0-9-]*)(?:\(([0-9]+(?:\.[0-9]+)?)\))?(?::([\s\S]*))?"
)
LIST_TYPES: Final = ("contains-any", "contains-all", "icontains-any", "icontains-all")
# The key for the number in brackets; of other types, it is the passing score.
LIMIT_KEYS: Final[Mapping[str, str]] = {"latency": "threshold", "cost": "budget"}
ASSERTION_TYPES: Final = (
    *("contains", "icontains", "starts-with", "ends-with", "regex", "is-json", "equals"),
    *(*LIST_TYPES, *LIMIT_KEYS),
)
# Words that are a type without anything after them.
PLAIN_TYPES: Final = tuple(f"{no}{name}" for no in ("", NOT_PREFIX) for name in ASSERTION_TYPES)
LINE_END: Final = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
SEPARATOR: Final = re.compile(r"(?<!\\),")


def parse_csv_cases(data: bytes, *, file: str, path: str, folder: str) -> SequenceNode:
    """Read the cases of a CSV file.

    Args:
        path: absolute path of the file, for programs that its rows name.
        folder: absolute path of the folder of the eval file, in which programs run.

    Raises:
        InputError: it is not CSV, has no rows, or a cell is invalid.
    """
    beside = posixpath.relpath(str(PurePath(path).parent), folder)
    rows = _read_rows(data, file)
    place, header = next(rows, (Place(file=file), []))
    columns = [each.strip() for each in header]
    _check_columns(columns, place)
    cases = [
        make_node(_make_case(_pair_cells(columns, cells, place), number, place, beside), place)
        for number, (place, cells) in enumerate(rows, start=1)
    ]
    if not cases:
        raise InputError.from_message(
            "the file has no cases", place=place, hint="the first line names the columns"
        )
    return make_sequence(cases, Place(file=file))


def _read_rows(data: bytes, file: str) -> Iterator[tuple[Place, list[str]]]:
    """The rows that are not blank, with the lines on which they start."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        message, hint = "the file is not UTF-8", "save it as UTF-8"
        raise InputError.from_message(message, place=Place(file=file), hint=hint) from None
    reader = csv.reader(LINE_END.split(text), strict=True)
    while True:
        place = Place(file=file, line=reader.line_num + 1)
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            hint = 'quote cells that hold commas or line ends, and write " as "" in them'
            raise InputError.from_message(f"invalid CSV: {error}", place=place, hint=hint) from None
        if cells:
            yield place, cells


def _check_columns(columns: list[str], place: Place) -> None:
    for name in columns:
        if name and columns.count(name) > 1:
            hint = f"further assertions go into {ASSERTION_COLUMN}2, {ASSERTION_COLUMN}3 ..."
            message = f"column {quote_name(name)} is there twice"
            raise InputError.from_message(
                message, place=place, hint=hint if name == ASSERTION_COLUMN else "rename one"
            )
        own = name.startswith((ASSERTION_COLUMN, CONFIG_COLUMN, METADATA_COLUMN))
        if name.startswith("__") and not own and name not in KNOWN_COLUMNS:
            known = [each for each in KNOWN_COLUMNS if each.startswith("__")]
            raise InputError.from_message(
                f"unknown column {quote_name(name)}",
                place=place,
                hint=f"use {join_with_or([*known, CONFIG_COLUMN, METADATA_COLUMN])}",
            )


def _pair_cells(columns: list[str], cells: list[str], place: Place) -> dict[str, str]:
    """The cells of a row by column; missing ones are empty."""
    if any(each.strip() for each in cells[len(columns) :]):
        raise InputError.from_message(
            f"the row has {len(cells)} cells, but the header names {len(columns)} columns",
            place=place,
            hint="quote cells that hold commas",
        )
    padded = [*cells, *[""] * len(columns)]
    return {name: cell for name, cell in zip(columns, padded, strict=False) if name}


def _make_case(row: Mapping[str, str], number: int, place: Place, beside: str) -> JsonObject:
    case: dict[str, Any] = {"id": row.get("id", "").strip() or f"row-{number}"}
    if "input" in row:
        case["input"] = f"{row.get('__prefix', '')}{row['input']}{row.get('__suffix', '')}"
    if row.get(THRESHOLD_COLUMN, "").strip():
        case["threshold"] = _read_number(row[THRESHOLD_COLUMN], THRESHOLD_COLUMN, place)
    parts: JsonObject = {
        **{key: row[name] for name, key in CASE_COLUMNS.items() if name in row},
        "assert": _read_assertions(row, place, beside),
        "vars": _read_variables(row),
        "metadata": _read_metadata(row),
    }
    return {**case, **{key: value for key, value in parts.items() if value}}


def _read_variables(row: Mapping[str, str]) -> JsonObject:
    """The columns that have no other meaning; ``vars.a.b`` is part of ``a``."""
    variables: dict[str, Any] = {}
    for name, cell in row.items():
        if name in KNOWN_COLUMNS or name.startswith("__"):
            continue
        path = name.removeprefix(VARIABLES_COLUMN) if name.startswith(VARIABLES_COLUMN) else ""
        *outer, last = [each.strip() for each in path.split(".") if each.strip()] or [name]
        part = variables
        for step in outer:
            if not isinstance(part.get(step), dict):
                part[step] = {}
            part = part[step]
        part[last] = cell
    return variables


def _read_metadata(row: Mapping[str, str]) -> JsonObject:
    found: dict[str, Json] = {}
    for name, cell in row.items():
        if name.startswith(METADATA_COLUMN) and cell.strip():
            key = name.removeprefix(METADATA_COLUMN)
            value = _split_list(cell) if key.endswith(LIST_MARK) else cell
            found[key.removesuffix(LIST_MARK)] = value
    return found


def _read_assertions(row: Mapping[str, str], place: Place, beside: str) -> list[Json]:
    cells = [cell for name, cell in row.items() if name.startswith(ASSERTION_COLUMN)]
    assertions = [_parse_assertion(each.strip(), place, beside) for each in cells if each.strip()]
    _complete_assertions(assertions, row, place)
    return [*assertions]


def _complete_assertions(
    assertions: list[dict[str, Json]], row: Mapping[str, str], place: Place
) -> None:
    """Set the names and the passing scores of assertions that other columns hold."""
    metric = row.get("__metric", "").strip()
    for number, assertion in enumerate(assertions, start=1):
        if metric:
            assertion["name"] = metric if len(assertions) == 1 else f"{metric}-{number}"
    for name, cell in row.items():
        if not name.startswith(CONFIG_COLUMN) or not cell.strip():
            continue
        named, _, key = name.removeprefix(CONFIG_COLUMN).partition(":")
        ending = named.removeprefix(ASSERTION_COLUMN) or "1"
        if key != "threshold" or not named.startswith(ASSERTION_COLUMN) or not ending.isdecimal():
            raise InputError.from_message(
                f"unknown column {quote_name(name)}",
                place=place,
                hint=f"use {CONFIG_COLUMN}{ASSERTION_COLUMN}:threshold",
            )
        score = _read_number(cell, name, place)
        if 0 < int(ending) <= len(assertions):
            assertions[int(ending) - 1]["min_score"] = score


def _read_number(cell: str, name: str, place: Place) -> float:
    try:
        return float(cell)
    except ValueError:
        message = f"{name} must be a number, not {quote_name(cell)}"
        raise InputError.from_message(message, place=place) from None


def _split_list(cell: str) -> list[Json]:
    """The parts of a cell between commas that follow no backslash."""
    parts = (each.strip().replace("\\,", ",") for each in SEPARATOR.split(cell))
    return [each for each in parts if each]


def _parse_assertion(text: str, place: Place, beside: str) -> dict[str, Json]:
    """Read a cell such as ``icontains:hello``; other text has to equal the answer."""
    prefix = next((each for each in CODE_PREFIXES if text.startswith(each)), None)
    if prefix is not None:
        return _make_code_assertion(prefix, text.removeprefix(prefix).strip(), place, beside)
    found = ASSERTION.fullmatch(text)
    kind, number, value = (None, None, None) if found is None else found.groups()
    if kind is None or (number is None and value is None and kind not in PLAIN_TYPES):
        return {"type": "equals", "value": text}
    return _make_typed_assertion(kind, number, value, place)


def _make_code_assertion(prefix: str, value: str, place: Place, beside: str) -> dict[str, Json]:
    if prefix in RUBRIC_PREFIXES:
        return {"type": "llm-rubric", "value": [value]}
    if prefix in JAVASCRIPT_PREFIXES:
        return {"type": "javascript", "value": value}
    if not value.endswith(PYTHON_ENDING) and prefix == FILE_PREFIX:
        message = f"{ASSERTION_COLUMN} names {quote_name(value)}, which is not a .py file"
        hint = "write programs in other languages as `type: script` in the eval file"
        raise InputError.from_message(message, place=place, hint=hint)
    if not value.endswith(PYTHON_ENDING):
        return {"type": "python", "value": value}
    path = posixpath.join(beside, value) if prefix == FILE_PREFIX else value
    return {"type": "script", "command": ["python3", path]}


def _make_typed_assertion(
    kind: str, number: str | None, value: str | None, place: Place
) -> dict[str, Json]:
    """The assertion of a type, with the number in brackets and the text after the colon."""
    name = kind.removeprefix(NOT_PREFIX)
    if name not in ASSERTION_TYPES:
        message = f"{ASSERTION_COLUMN} has the unknown type {quote_name(name)}"
        hint = f"use {join_with_or(ASSERTION_TYPES)}; text with a colon is `equals:TEXT`"
        raise InputError.from_message(message, place=place, hint=hint)
    if name in LIMIT_KEYS and number is None:
        message = f"{ASSERTION_COLUMN} has no limit for `{name}`"
        raise InputError.from_message(message, place=place, hint=f"for example {name}(1)")
    entry: dict[str, Json] = {"type": name, "negate": kind != name}
    if value is not None or name in LIST_TYPES:
        text = (value or "").strip()
        entry["value"] = [each.strip() for each in text.split(",")] if name in LIST_TYPES else text
    if number is not None:
        entry[LIMIT_KEYS.get(name, "min_score")] = float(number)
    return entry


SKILL_NAME_KEY: Final = "skill_name"
FILES_KEY: Final = "files"
SKILL_CASE_KEYS: Final = ("id", "prompt", "expected_output", "assertions", FILES_KEY)


def is_skill_file(root: MappingNode) -> bool:
    """Whether a file is `evals.json` of Agent Skills."""
    return SKILL_CASES_KEY in root.fields and root.fields.keys().isdisjoint(CASE_KEYS)


def rewrite_skill_file(root: MappingNode) -> MappingNode:
    """Rewrite `evals.json` as AgentV 4 reads it: each assertion is a judge's prompt of its own."""
    cases = root.fields[SKILL_CASES_KEY]
    skill = find_value(root, SKILL_NAME_KEY)
    metadata = {} if skill is None else {SKILL_NAME_KEY: skill}
    value = cases.value
    if isinstance(value, SequenceNode):
        value = change_items(value, lambda case: _rewrite_skill_case(case, metadata))
    fields = {key: each for key, each in root.fields.items() if key != SKILL_NAME_KEY}
    del fields[SKILL_CASES_KEY]
    fields["tests"] = MappingEntry(place=cases.place, value=value)
    return make_mapping_from_entries(fields, root.place)


def _rewrite_skill_case(case: Node, metadata: Mapping[str, Node]) -> Node:
    if not isinstance(case, MappingNode):
        return case
    given = {key: each.value for key, each in case.fields.items()}
    expected, files = given.get("expected_output"), given.get(FILES_KEY)
    own = {**metadata, **({} if files is None else {"agent_skills_files": files})}
    parts: dict[str, Node | None] = {
        "id": make_node(find_text(case, "id"), case.place) if "id" in given else None,
        "input": given.get("prompt"),
        "expected_output": expected,
        "criteria": expected,
        "metadata": make_mapping(own, case.place) if own else None,
    }
    assertions = given.get("assertions")
    if isinstance(assertions, SequenceNode) and assertions.items:
        judges = (_make_judge(each, at) for at, each in enumerate(assertions.items, start=1))
        parts["assertions"] = make_sequence(judges, assertions.place)
    others = {key: each for key, each in given.items() if key not in SKILL_CASE_KEYS}
    filled = {key: each for key, each in parts.items() if each is not None}
    return make_mapping({**others, **filled}, case.place)


def _make_judge(text: Node, number: int) -> Node:
    """The judge of one assertion; an entry that is not a text stays, and is reported."""
    if not isinstance(text, ScalarNode) or not isinstance(text.value, str):
        return text
    place = text.place
    name, kind = make_node(f"assertion-{number}", place), make_node("llm-grader", place)
    return make_mapping({"name": name, "type": kind, "prompt": text}, place)
