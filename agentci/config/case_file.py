"""Reads and writes eval cases in agentci's own format: YAML, with calls and checks at each case."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath
from typing import Annotated, Final, TypeAlias

from msgspec import Struct
from pydantic import Field, JsonValue

from agentci._util.text.format import format_criterion
from agentci._util.text.suggest import quote_name
from agentci.config.check_entries import (
    build_check_evaluator,
    find_zero_thresholds,
    read_check_entry,
)
from agentci.config.checks import CHECKS_KEY, find_check_item_problems, list_check_items
from agentci.config.discovery import CASE_SOURCE_KEYS, CONFIG_KEYS, OWN_CASES_KEY
from agentci.config.entries import EVERY_SCORE_REACHES_ZERO
from agentci.config.schema import (
    JSON_SCHEMA_DIALECT,
    Schema,
    make_check_schema,
    simplify_schema,
)
from agentci.config.validate import read_part, sort_problems
from agentci.config.yaml_document import YamlDocument, read_yaml
from agentci.config.yaml_nodes import KeyPath
from agentci.config.yaml_parse import BOOLEAN_WORDS
from agentci.errors import InputError
from agentci.evaluators.checks.check import (
    CaseCheckEvaluator,
    CheckContext,
    CheckEvaluator,
)
from agentci.evaluators.checks.names import CALLS_CHECK, CASE_PREFIX
from agentci.evaluators.checks.registry import CHECK_TYPE, read_expected_calls
from agentci.evaluators.checks.trajectory import CaseCalls
from agentci.evaluators.evaluator_type import TextFile
from agentci.evaluators.fields import Name, StrictModel, Text, TokenPriceSpec, optional
from agentci.evaluators.trajectory.expectation import (
    ALIASES,
    ANY_OF,
    GROUPS,
    RESERVED,
    ExpectedTrajectory,
)
from agentci.evaluators.trajectory.matchers import PREFIX
from agentci.model.case import EvalCase, EvalSet
from agentci.model.requests import EvaluatorIdentity
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import Json, JsonObject, Place, Problem, replace
from agentci.recordings.registry import EVAL_SET_KEYS


def read_plain_calls(written: Json) -> tuple[ToolCall, ...] | None:
    """Return the calls of a list in which each has a name and exact arguments; else None."""
    if not isinstance(written, Sequence) or isinstance(written, str):
        return None
    calls = [_read_plain_call(each) for each in written]
    plain = tuple(call for call in calls if call is not None)
    return plain if len(plain) == len(calls) else None


def _read_plain_call(written: Json) -> ToolCall | None:
    if not isinstance(written, Mapping):
        return None  # a name: the arguments are not compared
    call = _expand(written)
    name, args = call.get("tool"), call.get("args")
    if call.keys() != {"tool", "args"} or not isinstance(name, str):
        return None
    if {"*", "?"} & set(name) or not isinstance(args, Mapping) or _has_matcher(args):
        return None
    return ToolCall(name=name, args=args)


def _expand(written: JsonObject) -> JsonObject:
    [(first, value), *others] = written.items()
    if not others and first not in RESERVED:
        return {"tool": first, "args": value}
    return {ALIASES.get(key, key): each for key, each in written.items()}


def _has_matcher(value: Json) -> bool:
    if isinstance(value, Mapping):
        return any(key.startswith(PREFIX) or _has_matcher(each) for key, each in value.items())
    return (
        isinstance(value, Sequence) and not isinstance(value, str) and any(map(_has_matcher, value))
    )


def list_named_calls(written: Json) -> tuple[ToolCall, ...]:
    """Return the calls that are written, with matchers as arguments; of paths, the first one."""
    items = written.get("calls", []) if isinstance(written, Mapping) else written
    return tuple(_list_calls(items))


def _list_calls(items: Json) -> Iterator[ToolCall]:
    for item in items if isinstance(items, list | tuple) else ():
        group = next((key for key in GROUPS if isinstance(item, Mapping) and key in item), None)
        if isinstance(item, str):
            yield ToolCall(name=item)
        elif isinstance(item, list | tuple):
            yield from _list_calls(item)
        elif isinstance(item, Mapping) and group is not None:
            inner = item[group]
            is_path = group == ANY_OF and isinstance(inner, list | tuple)
            yield from _list_calls(inner[:1] if is_path else inner)
        elif isinstance(item, Mapping) and item:
            call = _expand(item)
            tool = call.get("tool")
            names = [tool] if isinstance(tool, str) else tool
            if isinstance(names, list | tuple):
                yield ToolCall(name=" | ".join(map(str, names)), args=call.get("args"))


SCHEMA_ID: Final = "cases.schema.json"

Calls: TypeAlias = list[JsonValue] | dict[str, JsonValue]


CALLS: Final = (
    "The expected tool calls, as in the check `trajectory`; `[]` for none. Left out: they are not "
    "compared."
)
ANSWER: Final = "The expected answer, for evaluators that compare answers."


class ExpectedTurn(StrictModel):
    """What the user writes, and what the agent should do."""

    input: Text | None = optional("What the user writes.")
    calls: Calls | None = optional(CALLS)
    answer: Text | None = optional(ANSWER)


class CaseEntry(ExpectedTurn):
    """An eval case: one turn, or a list of `turns`."""

    id: Name = Field(description="Id of the case; unique in the file.")
    turns: Annotated[list[ExpectedTurn], Field(min_length=1)] = optional(
        "The turns of a conversation, instead of `input`, `calls` and `answer`.", default=[]
    )
    checks: Annotated[list[JsonValue], Field(min_length=1)] = optional(
        "Checks of this case only, like `checks` of a config.", default=[]
    )


class CaseFile(StrictModel):
    """Eval cases of agentci."""

    eval_cases: list[CaseEntry] = Field(min_length=1, description="The eval cases.")


def make_cases_schema() -> Schema:
    """Make the schema of a file of eval cases, for editors."""
    schema = CaseFile.model_json_schema()
    definitions = schema.setdefault("$defs", {})
    case = definitions["CaseEntry"]
    case["properties"]["checks"]["items"] = make_check_schema(definitions)
    case["oneOf"] = [{"required": ["input"]}, {"required": ["turns"]}]
    definitions["ExpectedTurn"]["required"] = ["input"]
    return {"$schema": JSON_SCHEMA_DIALECT, "$id": SCHEMA_ID, **simplify_schema(schema)}


CONTENT_HINT: Final = f"write the cases as a list below `{OWN_CASES_KEY}:`"
# What to write instead of a key without a value, which is ambiguous.
NULL_HINTS: Final = {
    "calls": "write `calls: []` if no tool is called, or remove `calls` to compare none",
    "answer": "write the expected answer, or remove `answer`",
}
# A check of a case has no `required: false`, so that it would only inform.
RAISE_HINT: Final = "raise it, or remove the check"
# Options that belong to a check of the config, which is for many cases.
SHARED_OPTIONS: Final = ("required", "cases")
# Options of a trajectory that say nothing about the calls of one turn.
RUN_OPTIONS: Final = ("scope",)


class CheckedEvalSet(Struct, frozen=True, kw_only=True):
    """An eval set and the checks of its cases.

    Attributes:
        checks: by their names, and by the ids of the cases.
    """

    eval_set: EvalSet
    checks: Mapping[str, Mapping[str, CheckEvaluator]]


def read_case_file(
    data: bytes, *, file: str, prices: Mapping[str, TokenPriceSpec] | None = None
) -> CheckedEvalSet:
    """Read an eval set.

    Args:
        data: the file's content, YAML in UTF-8.
        file: its path, for places.
        prices: of the config, by patterns of models.

    Raises:
        InputError: it is invalid; with every problem and its line.
    """
    document = read_yaml(data, file=file, content_hint=CONTENT_HINT)
    _check_kind(document)
    read, problems = read_part(document, CaseFile, at=(), noun="eval set")
    found = [*document.problems, *problems]
    cases: list[EvalCase] = []
    checks: dict[str, dict[str, CheckEvaluator]] = {}
    if read is not None:
        reader = _CaseReader(document, prices or {}, found)
        first: dict[str, Place] = {}
        for index, entry in enumerate(read.eval_cases):
            place = document.place_of((OWN_CASES_KEY, index, "id"))
            if entry.id in first:
                message = f"the id {quote_name(entry.id)} is already used on line "
                found.append(Problem(message=f"{message}{first[entry.id].line}", place=place))
            first.setdefault(entry.id, place)
            case, own = reader.read(entry, (OWN_CASES_KEY, index))
            cases.append(case)
            for name, check in own.items():
                checks.setdefault(name, {})[case.id] = check
    if any(problem.severity == "error" for problem in found):
        raise InputError(sort_problems(found))
    eval_set = EvalSet(id=PurePosixPath(file).stem, cases=tuple(cases), place=document.place_of(()))
    return CheckedEvalSet(eval_set=eval_set, checks=checks)


def _check_kind(document: YamlDocument) -> None:
    """Check that a file is not of another kind.

    Raises:
        InputError: it is a config, an eval file of AgentV, or an eval set of ADK.
    """
    keys = document.data.keys()
    place = document.place_of(())
    if not keys.isdisjoint(EVAL_SET_KEYS):
        hint = "save it as JSON, in a file whose name ends with .json"
        raise InputError.from_message("the file is an eval set of ADK", place=place, hint=hint)
    if OWN_CASES_KEY in keys:
        return
    if not keys.isdisjoint((*CONFIG_KEYS, "traces")):
        message = "the file is a config, not an eval set"
        hint = f"name a file with `{OWN_CASES_KEY}:`"
        raise InputError.from_message(message, place=place, hint=hint)
    if own := [key for key in CASE_SOURCE_KEYS if key in keys]:
        message = f"the file has `{own[0]}` instead of `{OWN_CASES_KEY}`"
        hint = "rename the key; if it is an eval file of AgentV, pass it as a config"
        place = document.place_of((own[0],), key=True)
        raise InputError.from_message(message, place=place, hint=hint)


def make_case_evaluators(
    checks: Mapping[str, Mapping[str, CheckEvaluator]],
) -> tuple[CaseCheckEvaluator, ...]:
    """Make an evaluator of all checks with the same name.

    Args:
        checks: as of ``CheckedEvalSet``, of one or several eval sets.
    """
    return tuple(_make_evaluator(name, by_case) for name, by_case in checks.items())


def _make_evaluator(name: str, by_case: Mapping[str, CheckEvaluator]) -> CaseCheckEvaluator:
    """Make the evaluator of all checks with a name, which may have different thresholds."""
    identities = [each.identity for each in by_case.values()]
    thresholds = {each.threshold for each in identities}
    return CaseCheckEvaluator(
        identity=_make_identity(
            name, thresholds, identities[0].place, without="as its eval case says"
        ),
        by_case=by_case,
    )


def _make_identity(
    name: str, thresholds: AbstractSet[float | None], place: Place, *, without: str = ""
) -> EvaluatorIdentity:
    """Make the identity of a check.

    Args:
        without: the criterion, unless there is one threshold.
    """
    threshold = next(iter(thresholds)) if len(thresholds) == 1 else None
    return EvaluatorIdentity(
        name=name,
        type=CHECK_TYPE,
        criterion=without if threshold is None else format_criterion(threshold),
        threshold=threshold,
        required=True,
        place=place,
    )


class _CaseReader:
    """Reads the cases of one file, and collects the problems."""

    def __init__(
        self,
        document: YamlDocument,
        prices: Mapping[str, TokenPriceSpec],
        problems: list[Problem],
    ) -> None:
        self._document = document
        self._prices = prices
        self._problems = problems

    def read(
        self, entry: CaseEntry, path: KeyPath
    ) -> tuple[EvalCase, Mapping[str, CheckEvaluator]]:
        """Read a case, and the checks of its own by their names."""
        written: dict[str, Json] = {}
        checks: dict[str, CheckEvaluator] = {}
        self._check_turns(entry, path)
        places = [(*path, "turns", index) for index in range(len(entry.turns))] or [path]
        turns: Sequence[ExpectedTurn] = entry.turns or [entry]
        trajectories = [
            self._read_calls(turn.calls, (*place, "calls"))
            for turn, place in zip(turns, places, strict=True)
        ]
        if any(turn.calls is not None for turn in turns):
            written[CALLS_CHECK] = [turn.calls for turn in turns]
            checks[CALLS_CHECK] = _make_calls_check(
                trajectories, self._document.place_of(path), written[CALLS_CHECK]
            )
        for name, item, check in self._read_checks((*path, CHECKS_KEY)):
            written[name], checks[name] = item, check
        plain = [read_plain_calls(turn.calls or []) for turn in turns]
        case = EvalCase(
            id=entry.id,
            turns=tuple(
                Turn(
                    id="",
                    user_text=turn.input or "",
                    answer_parts=() if turn.answer is None else (turn.answer,),
                    tool_calls=list_named_calls(turn.calls or []) if calls is None else calls,
                )
                for turn, calls in zip(turns, plain, strict=True)
            ),
            place=self._document.place_of(path),
            own_checks=written,
            has_plain_calls=None not in plain and all(turn.calls is not None for turn in turns),
        )
        return case, checks

    def _check_turns(self, entry: CaseEntry, path: KeyPath) -> None:
        if entry.turns:
            for key in ("input", "calls", "answer"):
                if key in entry.model_fields_set:
                    self._add(
                        (*path, key),
                        f"`{key}` and `turns` exclude each other",
                        f"move `{key}` into the list of turns",
                        key=True,
                    )
        elif entry.input is None:
            self._add(path, "the case has no `input`", "add what the user writes, or `turns`")
        self._check_values(entry, path)
        for index, turn in enumerate(entry.turns):
            place = (*path, "turns", index)
            self._check_values(turn, place)
            if turn.input is None:
                self._add(place, "the turn has no `input`", "add what the user writes")

    def _check_values(self, turn: ExpectedTurn, path: KeyPath) -> None:
        for key, hint in NULL_HINTS.items():
            if key in turn.model_fields_set and getattr(turn, key) is None:
                self._add((*path, key), f"`{key}` has no value", hint, key=True)

    def _add(self, path: KeyPath, message: str, hint: str, *, key: bool = False) -> None:
        place = self._document.place_of(path, key=key)
        self._problems.append(Problem(message=message, place=place, hint=hint))

    def _read_calls(
        self, written: Sequence[Json] | JsonObject | None, path: KeyPath
    ) -> ExpectedTrajectory | None:
        if written is None:
            return None
        for key in RUN_OPTIONS:
            if key in written:
                hint = "use `checks: [{trajectory: ...}]` for the calls of the whole run"
                self._add((*path, key), f"`{key}` has no meaning for one turn", hint, key=True)
        try:
            expected = read_expected_calls(written, self._make_context(CALLS_CHECK, path))
        except InputError as error:
            self._problems += error.problems
            return None
        if expected.threshold == 0:
            self._add((*path, "threshold"), EVERY_SCORE_REACHES_ZERO, RAISE_HINT)
        return expected

    def _make_context(self, name: str, path: KeyPath) -> CheckContext:
        place = self._document.place_of(path)

        def find_place(path: KeyPath = (), *, key: bool = False, of: KeyPath = path) -> Place:
            return self._document.place_of((*of, *path), key=key)

        return CheckContext(
            name=name,
            place=place,
            find_place=find_place,
            read=lambda _: _refuse_file(place),
            read_variable=lambda _: _refuse_variable(place),
            prices=self._prices,
        )

    def _read_checks(self, at: KeyPath) -> Iterator[tuple[str, Json, CheckEvaluator]]:
        document = self._document
        if not document.has(at):
            return
        self._problems += [
            problem
            for problem in find_check_item_problems(document, at)
            if problem not in self._problems
        ]
        for item in list_check_items(document, at):
            entry, problems = read_check_entry(item, document, read_part)
            self._problems += problems
            if entry is None:
                continue
            for key in SHARED_OPTIONS:
                if key in entry.model_fields_set:
                    hint = "remove it, or move the check to the config"
                    self._add(
                        (*item.path, key), f"a check of a case has no `{key}`", hint, key=True
                    )
            try:
                check = build_check_evaluator(
                    item,
                    entry,
                    document,
                    lambda _, place: _refuse_file(place),
                    lambda _, place: _refuse_variable(place),
                    self._prices,
                )
            except InputError as error:
                self._problems += error.problems
                continue
            self._problems += (
                replace(each, hint=RAISE_HINT, severity="error")
                for each in find_zero_thresholds(item, check, document)
            )
            yield f"{CASE_PREFIX}{item.name}", document.value(item.path), check


def _refuse_file(place: Place) -> TextFile:
    message = "a check of a case cannot name a file"
    hint = "write the schema itself, or move the check to the config"
    raise InputError.from_message(message, place=place, hint=hint)


def _refuse_variable(place: Place) -> str:
    message = "a check of a case cannot name environment variables"
    raise InputError.from_message(message, place=place, hint="move the check to the config")


def _make_calls_check(
    expected: Sequence[ExpectedTrajectory | None], place: Place, written: Json
) -> CheckEvaluator:
    thresholds = {each.threshold for each in expected if each is not None}
    return CheckEvaluator(
        identity=_make_identity(CALLS_CHECK, thresholds, place),
        compiled=CaseCalls(expected=tuple(expected)),
        entry={"type": CHECK_TYPE, "check": CALLS_CHECK, "value": written},
    )


INDENT: Final = "  "
MAX_SHORT_ESCAPE: Final = 0xFFFF
# YAML takes text for a key only if the colon is within 1,024 characters, unless a `?` marks it.
MAX_PLAIN_KEY: Final = 1000
FORM_HINT: Final = "write each case as `- id: NAME` on lines of its own"
_PLAIN: Final = re.compile(
    r"[^\W\d_](?:[^\n\r\t:#{}\[\]&*!|>%@`\"'\\,?]*[^\s:#{}\[\]&*!|>%@`\"'\\,?])?"
)
_BLOCK_PLAIN: Final = re.compile(
    r"[^\W\d_](?:[^\n\r\t:#{}\[\]&*!|>%@`\"\\]*[^\s:#{}\[\]&*!|>%@`\"\\])?"
)
_WORDS: Final = frozenset(
    {*BOOLEAN_WORDS, "null", "true", "false", "yes", "no", "on", "off", "y", "n"}
)
_DASH: Final = re.compile(r"( *)- ")


def list_written_cases(text: str, *, file: str) -> list[JsonObject]:
    """Return the cases of a file as written; none of an empty one.

    Raises:
        InputError: it is not YAML.
    """
    if not text.strip():
        return []
    cases = read_yaml(text.encode(), file=file).data.get(OWN_CASES_KEY)
    return [each for each in cases if isinstance(each, Mapping)] if isinstance(cases, list) else []


def add_case(text: str, case: JsonObject, *, file: str) -> str:
    """Return the text of a file with one more case at its end.

    Raises:
        InputError: its cases are not on lines of their own.
    """
    if not text.strip():
        return "\n".join((f"{OWN_CASES_KEY}:", *_format_case(case, INDENT), ""))
    indent = find_case_lines(text, 0, file=file)[2]
    return "\n".join((text.rstrip("\n"), *_format_case(case, indent), ""))


def replace_case(text: str, index: int, case: JsonObject, *, file: str) -> str:
    """Return the text of a file in which a case is replaced; comments in it are lost.

    Raises:
        InputError: its cases are not on lines of their own.
    """
    first, last, indent = find_case_lines(text, index, file=file)
    lines = text.split("\n")
    return "\n".join((*lines[:first], *_format_case(case, indent), *lines[last:]))


def find_case_lines(text: str, index: int, *, file: str) -> tuple[int, int, str]:
    """Return the first line of a case, the line after its last, and its indentation.

    Raises:
        InputError: its cases are not on lines of their own.
    """
    place = read_yaml(text.encode(), file=file).place_of((OWN_CASES_KEY, index))
    lines = text.split("\n")
    first = place.line - 1
    dash = _DASH.match(lines[first])
    if dash is None:
        message = "the cases are written in a form that cannot be edited"
        raise InputError.from_message(message, place=place, hint=FORM_HINT)
    depth, last = len(dash[1]), first + 1
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if line.strip() and len(line) - len(line.lstrip(" ")) <= depth:
            break
        if line.strip():
            last = number + 1
    return first, last, dash[1]


def _format_case(case: JsonObject, indent: str) -> Iterator[str]:
    yield from _format_mapping(case, indent, mark="- ")


def _format_mapping(value: JsonObject, indent: str, *, mark: str = "") -> Iterator[str]:
    """Yield the lines of a mapping; the first one starts with ``mark``."""
    inner = indent + " " * len(mark)
    separator = f"\n{inner}"
    for index, (key, each) in enumerate(value.items()):
        start = f"{inner if index else indent + mark}{_format_key(key, separator)}"
        if isinstance(each, Mapping) and each and key == "calls":
            yield start
            yield from _format_mapping(each, f"{inner}{INDENT}")
        elif isinstance(each, Sequence) and not isinstance(each, str) and each:
            yield start
            yield from _format_items(each, f"{inner}{INDENT}", are_turns=key == "turns")
        elif isinstance(each, str):
            yield from _format_text(each, start, inner)
        else:
            yield f"{start} {_format_flow(each)}"


def _format_items(items: Sequence[Json], indent: str, *, are_turns: bool) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping) and item and (are_turns or len(item) == 1):
            if are_turns:
                yield from _format_mapping(item, indent, mark="- ")
            else:
                [(key, value)] = item.items()
                start = _format_key(key, f"\n{indent}{INDENT}")
                yield f"{indent}- {start} {_format_flow(value)}"
        else:
            yield f"{indent}- {_format_flow(item)}"


def _format_text(text: str, start: str, indent: str) -> Iterator[str]:
    lines = text.split("\n")
    is_literal = (
        len(lines) > 1
        and all(line.isprintable() and line == line.rstrip() for line in lines)
        and lines[0]
        and lines[-1]
        and not lines[0].startswith(" ")
    )
    if is_literal:
        yield f"{start} |-"
        yield from (f"{indent}{INDENT}{line}" if line else "" for line in lines)
    elif _BLOCK_PLAIN.fullmatch(text) and text.isprintable() and text.lower() not in _WORDS:
        yield f"{start} {text}"
    else:
        yield f"{start} {_quote(text)}"


def _format_flow(value: Json) -> str:
    match value:
        case str():
            return _format_scalar(value)
        case Mapping():
            written = (
                f"{_format_key(key, ' ')} {_format_flow(each)}" for key, each in value.items()
            )
            return f"{{{', '.join(written)}}}"
        case list() | tuple():
            return f"[{', '.join(map(_format_flow, value))}]"
        case _:
            return json.dumps(value)


def _format_key(key: str, separator: str) -> str:
    """Format a key with its colon; ``separator`` stands between a long key and the colon."""
    written = _format_scalar(key)
    return f"{written}:" if len(written) <= MAX_PLAIN_KEY else f"? {written}{separator}:"


def _format_scalar(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text.lstrip("$")) and text.isprintable()
    return text if is_plain and text.lower() not in _WORDS else _quote(text)


def _quote(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else _escape(char) for char in written)


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= MAX_SHORT_ESCAPE else f"\\U{ord(char):08x}"
