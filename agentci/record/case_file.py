"""The cases to record, from JSON Lines, YAML or an ADK eval set."""

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from agentci._util.text.json_document import JSON_TYPE_NAMES
from agentci._util.text.suggest import find_nearest, quote_name, suggest_name
from agentci.config.yaml_document import read_tree
from agentci.config.yaml_nodes import MappingNode, SequenceNode, find_first, plain_data
from agentci.errors import InputError, RecordingError
from agentci.model.values import Json, JsonObject, Place, Problem
from agentci.recordings.adk_eval_set import read_eval_set
from agentci.recordings.json_documents import read_documents

YAML_SUFFIXES: Final = (".yaml", ".yml")
EXAMPLE: Final = '{"id": "refund", "input": "Can I return it?"}'
OWN_ID_HINT: Final = "give each case an id of its own"
HINT: Final = f"a case is an object such as {EXAMPLE}"
MAX_ID: Final = 200
# Each case is a process of its own.
MAX_CASES: Final = 10_000
# Linux starts no process with an argument or a variable of 128 KiB.
MAX_INPUT_BYTES: Final = 100 * 1024


class RecordCase(Struct, frozen=True, kw_only=True):
    """A case to record.

    Attributes:
        id: unique in the file; its position if the file gives none.
        input: what the agent is asked; None for a conversation, or if only the command knows.
        is_named: whether the file gives the id.
        turns: what the user writes in each turn of a conversation; else empty.
    """

    id: str
    input: str | None
    is_named: bool = True
    turns: tuple[str, ...] = ()

    @property
    def text(self) -> str | None:
        """The input, or a line for each turn; None without both."""
        lines = "".join(f"{' '.join(turn.splitlines())}\n" for turn in self.turns)
        return lines or self.input


NO_CASE: Final = RecordCase(id="", input=None, is_named=False)


def read_cases(data: bytes, *, file: str, needs_input: bool = False) -> tuple[RecordCase, ...]:
    """Read a file with cases; other keys than ``id`` and ``input`` are for other tools.

    Args:
        needs_input: whether the command asks for the input of each case.

    Raises:
        InputError: with a problem for each invalid case, or if there are none or too many.
    """
    cases: dict[str, RecordCase] = {}
    folded: dict[str, str] = {}
    problems: list[Problem] = []
    for number, (value, place) in enumerate(_read_items(data, file), start=1):
        if number > MAX_CASES:
            message, hint = f"more than {MAX_CASES:,} cases", "split the file"
            raise InputError.from_message(message, place=place, hint=hint)
        case = _read_case(value, number)
        if isinstance(case, RecordCase) and not (case.text or "").strip():
            case = _describe_missing_input(value, number, is_needed=needs_input) or case
        if isinstance(case, str):
            problems.append(Problem(message=case, place=place, hint=HINT))
        elif other := folded.get(fold_id(case.id)):
            message = describe_equal_ids(case.id, other)
            problems.append(Problem(message=message, place=place, hint=OWN_ID_HINT))
        else:
            cases[case.id] = case
            folded[fold_id(case.id)] = case.id
    if not problems and not cases:
        problems.append(Problem(message="no cases", place=Place(file=file), hint=HINT))
    if problems:
        raise InputError(problems)
    return tuple(cases.values())


def fold_id(case: str) -> str:
    """Return an id in the form that must be unique: some systems ignore the case of file names."""
    return case.casefold()


def describe_equal_ids(case: str, other: str) -> str:
    """Describe an id that equals another, perhaps except for upper and lower case."""
    if case == other:
        return f"duplicate id {quote_name(case)}"
    return (
        f"id {quote_name(case)} differs from {quote_name(other)} only in upper and lower case: "
        "their requests would be one file on some systems"
    )


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
    """Return whether JSON looks like an ADK eval set, or its older format with queries."""
    start = data.removeprefix(BOM_UTF8).lstrip()[:1]
    return (start == b"{" and b'"eval_cases"' in data) or (start == b"[" and b'"query"' in data)


def _read_eval_cases(data: bytes, file: str) -> Iterator[tuple[Json, Place]]:
    for case in read_eval_set(data, file=file).cases:
        yield (
            {"id": case.id, "turns": [{"input": turn.user_text} for turn in case.turns]},
            case.place,
        )


def _read_yaml_cases(data: bytes, file: str) -> Iterator[tuple[Json, Place]]:
    root, problems = read_tree(data, file=file, content_hint=HINT)
    if errors := [each for each in problems if each.severity == "error"]:
        raise InputError(errors)
    listed = find_first(root, ("cases", "eval_cases")) if isinstance(root, MappingNode) else root
    if not isinstance(listed, SequenceNode):
        message = "found no list of cases"
        raise InputError.from_message(message, place=root.place, hint=HINT)
    yield from ((plain_data(each), each.place) for each in listed.items)


def _describe_missing_input(value: Json, number: int, *, is_needed: bool) -> str:
    """Describe a case without an input, and suggest the key that was probably meant.

    Args:
        is_needed: whether the command has ``{input}``; else only a misspelled key is an error.
    """
    found = ""
    if isinstance(value, Mapping):
        if value.get("input") is not None:
            return f"`input` of case {number} is empty" if is_needed else ""
        if is_needed and value.get("turns"):
            return f"not every turn of case {number} has an `input`"
        others = (key for key, given in value.items() if key != "input" and isinstance(given, str))
        found = next((key for key in others if find_nearest(key, ["input"])), "")
    meant = f"; did you mean `input` instead of `{found}`?" if found else ""
    if not is_needed:
        return f"case {number} has no `input`{meant}" if found else ""
    return f"case {number} has no `input`, which the command asks for{meant}"


def _read_inputs(value: JsonObject) -> tuple[Json, tuple[str, ...]]:
    """Return the input, and the inputs of a conversation's turns: none if any has no text."""
    text, given = value.get("input"), value.get("turns")
    listed = given if text is None and isinstance(given, list) else []
    found = [each.get("input") for each in listed if isinstance(each, Mapping)]
    texts = tuple(each for each in found if isinstance(each, str) and each.strip())
    turns = texts if len(texts) == len(listed) else ()
    return (turns[0], ()) if len(turns) == 1 else (text, turns)


def _read_case(value: Json, number: int) -> RecordCase | str:
    """Return the case, or a message if it is invalid."""
    if not isinstance(value, Mapping):
        return f"case {number} is {JSON_TYPE_NAMES[type(value)]}, not an object"
    given = value.get("id")
    text, turns = _read_inputs(value)
    texts = [text] if isinstance(text, str) else turns
    name = "" if given is None else str(given).strip()
    problem = ""
    if isinstance(given, bool) or not isinstance(given, str | int | None):
        problem = f"`id` of case {number} is not text or a whole number"
    elif len(name) > MAX_ID or not name.isprintable():
        problem = f"`id` of case {number} is longer than {MAX_ID} characters or not printable"
    elif text is None and not name and not texts:
        problem = f"case {number} has neither `id` nor `input`"
    elif len("\n".join(texts).encode("utf-8", "replace")) > MAX_INPUT_BYTES:
        problem = (
            f"`input` of case {number} is larger than {MAX_INPUT_BYTES // 1024} KiB; give the name "
            "of a file, which the agent reads"
        )
    if isinstance(text, str | None) and not problem:
        return RecordCase(id=name or f"case-{number}", input=text, is_named=bool(name), turns=turns)
    if isinstance(text, list) and not problem:
        return (
            f"`input` of case {number} is an array, not text; write a conversation as "
            "`turns: [{input: TEXT}, ...]`"
        )
    return problem or f"`input` of case {number} is {JSON_TYPE_NAMES[type(text)]}, not text"
