"""Reads the cases to record from JSON Lines, YAML or an ADK eval set."""

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_count
from agentci._util.text.json_document import JSON_TYPE_NAMES
from agentci._util.text.suggest import quote_name, suggest_name
from agentci.config.yaml_document import read_tree
from agentci.config.yaml_nodes import plain_data
from agentci.errors import InputError, RecordingError
from agentci.model.values import Json, Place, Problem
from agentci.recordings.adk_eval_set import read_eval_set
from agentci.recordings.json_documents import read_documents

YAML_SUFFIXES: Final = (".yaml", ".yml")
EXAMPLE: Final = '{"id": "refund", "input": "Can I return it?"}'
HINT: Final = f"a case is an object such as {EXAMPLE}"
MAX_ID: Final = 200
# Each case is a process of its own.
MAX_CASES: Final = 10_000
# Linux starts no process with an argument or a variable of 128 KiB.
MAX_INPUT_BYTES: Final = 100 * 1024


class RecordCase(Struct, frozen=True, kw_only=True):
    """A case to record.

    Attributes:
        id: unique in the file; of its position if the file gives none.
        input: what the agent is asked; None if the command itself knows.
        is_named: whether the file gives the id.
    """

    id: str
    input: str | None
    is_named: bool = True


def read_cases(data: bytes, *, file: str) -> tuple[RecordCase, ...]:
    """Read a file with cases; other keys than ``id`` and ``input`` are for other tools.

    Raises:
        InputError: with a problem for each invalid case, or if there are none or too many.
    """
    cases: dict[str, RecordCase] = {}
    problems: list[Problem] = []
    for number, (value, place) in enumerate(_read_items(data, file), start=1):
        if number > MAX_CASES:
            message, hint = f"more than {MAX_CASES:,} cases", "split the file"
            raise InputError.from_message(message, place=place, hint=hint)
        case = _read_case(value, number)
        if isinstance(case, RecordCase) and case.id in cases:
            case = f"duplicate id {quote_name(case.id)}"
        if isinstance(case, str):
            problems.append(Problem(message=case, place=place, hint=HINT))
        else:
            cases[case.id] = case
    if not problems and not cases:
        problems.append(Problem(message="no cases", place=Place(file=file), hint=HINT))
    if problems:
        raise InputError(problems)
    return tuple(cases.values())


def _read_items(data: bytes, file: str) -> Iterator[tuple[Json, Place]]:
    if PurePath(file).suffix.lower() in YAML_SUFFIXES:
        return _read_yaml_cases(data, file)
    return _read_eval_cases(data, file) if _is_eval_set(data) else _read_json_cases(data, file)


def choose_cases(
    cases: Sequence[RecordCase], names: Sequence[str], *, file: str
) -> tuple[RecordCase, ...]:
    """Return the cases with these ids; all without names.

    Raises:
        InputError: there is no case with one of the ids.
    """
    known = {case.id: case for case in cases}
    if unknown := [name for name in names if name not in known]:
        message = f"{file} has no case {quote_name(unknown[0])}"
        hint = suggest_name(unknown[0], [*known]) or f"its cases are {', '.join(known)}"
        raise InputError.from_message(message, hint=hint)
    return tuple(known[name] for name in dict.fromkeys(names)) if names else tuple(cases)


def _read_json_cases(data: bytes, file: str) -> Iterator[tuple[Json, Place]]:
    try:
        for document in read_documents(iter([data.removeprefix(BOM_UTF8)]), file=file):
            place = Place(file=file, line=document.line)
            listed = document.value if isinstance(document.value, list) else [document.value]
            yield from ((value, place) for value in listed)
    except RecordingError as error:
        message = error.problem.message
        raise InputError.from_message(message, place=error.problem.place, hint=HINT) from None


def _is_eval_set(data: bytes) -> bool:
    """Return whether JSON looks like an ADK eval set, or like the older file with queries."""
    start = data.removeprefix(BOM_UTF8).lstrip()[:1]
    return (start == b"{" and b'"eval_cases"' in data) or (start == b"[" and b'"query"' in data)


def _read_eval_cases(data: bytes, file: str) -> Iterator[tuple[Json, Place]]:
    for case in read_eval_set(data, file=file).cases:
        questions = [turn.user_text for turn in case.turns]
        text = questions[0] if len(questions) == 1 else questions
        yield {"id": case.id, "input": text}, case.place


def _read_yaml_cases(data: bytes, file: str) -> Iterator[tuple[Json, Place]]:
    root, problems = read_tree(data, file=file)
    if errors := [each for each in problems if each.severity == "error"]:
        raise InputError(errors)
    value = plain_data(root)
    if isinstance(value, Mapping):
        value = value.get("cases", value.get("eval_cases"))
    if not isinstance(value, list):
        message = "found no list of cases"
        raise InputError.from_message(message, place=root.place, hint=HINT)
    yield from ((each, root.place) for each in value)


def _read_case(value: Json, number: int) -> RecordCase | str:
    """Return the case, or what is wrong with it."""
    if not isinstance(value, Mapping):
        return f"case {number} is {JSON_TYPE_NAMES[type(value)]}, not an object"
    given, text = value.get("id"), value.get("input")
    name = "" if given is None else str(given).strip()
    problem = ""
    if isinstance(given, bool) or not isinstance(given, str | int | None):
        problem = f"`id` of case {number} is not text or a whole number"
    elif len(name) > MAX_ID or not name.isprintable():
        problem = f"`id` of case {number} is longer than {MAX_ID} characters or not printable"
    elif text is None and not name:
        problem = f"case {number} has neither `id` nor `input`"
    elif isinstance(text, str) and len(text.encode("utf-8", "replace")) > MAX_INPUT_BYTES:
        problem = (
            f"`input` of case {number} is larger than {MAX_INPUT_BYTES // 1024} KiB; give the name "
            "of a file, which the agent reads"
        )
    if isinstance(text, str | None) and not problem:
        return RecordCase(id=name or f"case-{number}", input=text, is_named=bool(name))
    if isinstance(text, list) and not problem:
        return (
            f"case {number} has {format_count(len(text), 'turn')}, but `input` is one text; leave "
            "it out in a file of its own, and let the command ask all turns"
        )
    return problem or f"`input` of case {number} is {JSON_TYPE_NAMES[type(text)]}, not text"
