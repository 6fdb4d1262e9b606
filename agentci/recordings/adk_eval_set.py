"""Reads eval sets and test files of Google's ADK, and writes their eval cases."""

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, Final, TypeGuard

from msgspec import Struct

from agentci._util.text.json_document import (
    JSON_TYPE_NAMES,
    JsonDocument,
    JsonFieldProblem,
    JsonFields,
    Step,
    read_json,
)
from agentci.errors import InputError
from agentci.model.case import EvalCase, EvalSet, Rubric
from agentci.model.trace import ToolCall, ToolResponse, Turn
from agentci.model.values import Json, Place, Problem, replace

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
            turns = tuple(map(_read_test_turn, fields.objects("data", noun="a turn")))
            place = document.find_place((index,))
            yield EvalCase(id=fields.text("name") or "", turns=turns, place=place)
        return
    turns = tuple(
        _read_test_turn(_make_fields(item, "a turn", (index,), problems))
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


def _read_test_turn(fields: JsonFields) -> Turn:
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


SET_HINT: Final = 'expected {"eval_set_id": "...", "eval_cases": [...]}'
FORMAT_HINT: Final = (
    "an eval set is one JSON document of ADK, or YAML with `eval_cases:`, see agentci's "
    "docs/eval-cases.md"
)
# Blank lines before the second line of JSON Lines.
MAX_BLANK_LINES: Final = 10
CONTENT_HINT: Final = 'write {"parts": [{"text": "..."}]}'

# Allowed keys of a part besides text, a function call and a function response.
IGNORED_PART_KEYS: Final = (
    *("thought", "thought_signature", "inline_data", "file_data", "video_metadata"),
    *("executable_code", "code_execution_result", "media_resolution", "media_processing"),
    *("tool_call", "tool_response", "part_metadata", "audio_transcription", "speech_metadata"),
)


def read_eval_set(data: bytes, *, file: str) -> EvalSet:
    """Read an eval set.

    Args:
        data: the file's content, JSON in UTF-8.
        file: its path, for places.

    Raises:
        InputError: if it is invalid; with every problem and its line.
    """
    try:
        document = read_json(data, file=file)
    except InputError as error:
        if _is_json_lines(data):
            message = "the file is JSON Lines, not an eval set"
            place = Place(file=file)
            raise InputError.from_message(message, place=place, hint=FORMAT_HINT) from None
        hints = (each.hint or FORMAT_HINT for each in error.problems)
        raise InputError(
            [replace(each, hint=hint) for each, hint in zip(error.problems, hints, strict=True)]
        ) from None
    if is_test_file(document.value):
        return _read_test_file(document.value, document)
    if not isinstance(document.value, dict):
        message = f"the file is not an eval set: found {JSON_TYPE_NAMES[type(document.value)]}"
        raise InputError([Problem(message=message, place=Place(file=file), hint=SET_HINT)])
    complaints: list[JsonFieldProblem] = []
    top = JsonFields(document.value, noun="an eval set", path=(), complaints=complaints)
    top.require("eval_set_id", "eval_cases")
    top.text("name")
    top.text("description")
    top.number("creation_timestamp")
    eval_set = EvalSet(
        id=top.text("eval_set_id") or "",
        cases=tuple(_read_cases(top, document)),
        place=document.find_place(()),
    )
    _check_problems(complaints, document)
    return eval_set


def _is_json_lines(data: bytes) -> bool:
    """Whether the first of several lines is a JSON object of its own."""
    lines = [line for line in data.split(b"\n", MAX_BLANK_LINES) if line.strip()]
    if len(lines) < 2:  # noqa: PLR2004
        return False
    with suppress(InputError):
        return isinstance(read_json(lines[0], file="").value, dict)
    return False


def _read_test_file(items: Sequence[Json], document: JsonDocument) -> EvalSet:
    problems: list[JsonFieldProblem] = []
    cases = tuple(read_test_cases(items, document, problems))
    names = [case.id for case in cases]
    problems += [
        JsonFieldProblem(path=(index, "name"), message=f"duplicate name {name!r}")
        for index, name in enumerate(names)
        if name in names[:index]
    ]
    _check_problems(problems, document)
    place = document.find_place(())
    return EvalSet(id=PurePosixPath(place.file).stem, cases=cases, place=place)


def _check_problems(found: Sequence[JsonFieldProblem], document: JsonDocument) -> None:
    if found:
        problems = [_make_problem(each, document) for each in found]
        raise InputError(sorted(problems, key=_line_and_column))


def _read_cases(fields: JsonFields, document: JsonDocument) -> Iterator[EvalCase]:
    ids: set[str] = set()
    for case in fields.objects("eval_cases", noun="a case"):
        eval_case = _read_eval_case(case, document.find_place(case.path))
        if eval_case.id in ids:
            case.add_problem(f"duplicate eval_id {eval_case.id!r}", "eval_id")
        ids.add(eval_case.id)
        yield eval_case


def _read_eval_case(fields: JsonFields, place: Place) -> EvalCase:
    fields.require("eval_id")
    fields.number("creation_timestamp")
    fields.object("session_input", noun="a session")
    fields.object("final_session_state", noun="a state")
    fields.object("conversation_scenario", noun="a scenario")
    if fields.has("conversation") == fields.has("conversation_scenario"):
        fields.add_problem("a case needs either 'conversation' or 'conversation_scenario'")
    shared = _read_rubrics(fields)
    invocations = fields.objects("conversation", noun="an invocation")
    read = [(_read_turn(each), _read_rubrics(each)) for each in invocations]
    return EvalCase(
        id=fields.text("eval_id") or "",
        turns=tuple(turn for turn, _ in read),
        rubrics=tuple((*shared, *own) for _, own in read),
        place=place,
    )


def _read_turn(fields: JsonFields) -> Turn:
    fields.require("user_content")
    for name in ("creation_timestamp", "duration", "model_duration", "tool_duration"):
        fields.number(name)
    trajectory = _read_trajectory(fields)
    turn = Turn(
        id=fields.text("invocation_id") or "",
        user_text="".join(_read_content(fields, "user_content").texts),
        answer_parts=_read_content(fields, "final_response").texts,
        tool_calls=trajectory.calls,
        tool_responses=tuple(_match_responses_to_calls(trajectory)),
    )
    fields.check_unknown_keys("app_details", "rubrics")
    return turn


class _EvalSetContent(Struct, frozen=True, kw_only=True):
    """The texts, tool calls and tool responses of one or more contents."""

    texts: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    responses: tuple[ToolResponse, ...] = ()


def _read_trajectory(fields: JsonFields) -> _EvalSetContent:
    """Read a turn's tool calls from either form of ``intermediate_data``."""
    data = fields.object("intermediate_data", noun="intermediate data")
    if data is None:
        return _EvalSetContent()
    if data.has("invocation_events") and (data.has("tool_uses") or data.has("tool_responses")):
        data.add_problem(
            "'invocation_events' cannot be combined with 'tool_uses' or 'tool_responses'"
        )
    events = [_read_event(event) for event in data.objects("invocation_events", noun="an event")]
    uses = map(_read_function_call, data.objects("tool_uses", noun="a tool use"))
    responses = map(_read_function_response, data.objects("tool_responses", noun="a tool response"))
    trajectory = _EvalSetContent(
        calls=(*uses, *(call for event in events for call in event.calls)),
        responses=(*responses, *(answer for event in events for answer in event.responses)),
    )
    data.check_unknown_keys("intermediate_responses")
    return trajectory


def _read_event(fields: JsonFields) -> _EvalSetContent:
    fields.require("author")
    fields.text("author")
    return _read_content(fields, "content")


def _read_content(fields: JsonFields, name: str) -> _EvalSetContent:
    content = fields.object(name, noun="a content", hint=CONTENT_HINT)
    if content is None:
        return _EvalSetContent()
    texts: list[str] = []
    calls: list[ToolCall] = []
    responses: list[ToolResponse] = []
    for part in content.objects("parts", noun="a part"):
        if text := part.text("text"):
            texts.append(text)
        if call := part.object("function_call", noun="a function call"):
            calls.append(_read_function_call(call))
        if response := part.object("function_response", noun="a function response"):
            responses.append(_read_function_response(response))
        part.check_unknown_keys(*IGNORED_PART_KEYS)
    content.text("role")
    content.check_unknown_keys()
    return _EvalSetContent(texts=tuple(texts), calls=tuple(calls), responses=tuple(responses))


def _read_function_call(fields: JsonFields) -> ToolCall:
    call = ToolCall(
        name=fields.text("name") or "", args=fields.mapping("args"), id=fields.text("id")
    )
    fields.check_unknown_keys("partial_args", "will_continue")
    return call


def _read_function_response(fields: JsonFields) -> ToolResponse:
    response = ToolResponse(
        name=fields.text("name") or "", output=fields.mapping("response"), id=fields.text("id")
    )
    fields.check_unknown_keys("parts", "scheduling", "will_continue")
    return response


def _match_responses_to_calls(trajectory: _EvalSetContent) -> Iterator[ToolResponse]:
    """Match each response to a call: by id, else to the next call of the same name."""
    numbered = list(enumerate(trajectory.calls))
    by_id = {call.id: index for index, call in reversed(numbered) if call.id}
    matched = {by_id[it.id] for it in trajectory.responses if it.id in by_id}
    by_name: defaultdict[str, deque[int]] = defaultdict(deque)
    for index, call in numbered:
        if index not in matched:
            by_name[call.name].append(index)
    for it in trajectory.responses:
        call_index = by_id.get(it.id) if it.id else None
        if call_index is None and by_name[it.name]:
            call_index = by_name[it.name].popleft()
        yield ToolResponse(name=it.name, output=it.output, id=it.id, call_index=call_index)


def _read_rubrics(fields: JsonFields) -> tuple[Rubric, ...]:
    return tuple(map(_read_rubric, fields.objects("rubrics", noun="a rubric")))


def _read_rubric(fields: JsonFields) -> Rubric:
    fields.require("rubric_id", "rubric_content")
    fields.text("description")
    content = fields.object("rubric_content", noun="a rubric's content")
    rubric = Rubric(
        id=fields.text("rubric_id") or "",
        text="" if content is None else content.text("text_property") or "",
        type=fields.text("type") or "",
    )
    if content is not None:
        content.check_unknown_keys()
    fields.check_unknown_keys()
    return rubric


def _make_problem(found: JsonFieldProblem, document: JsonDocument) -> Problem:
    return Problem(message=found.message, place=document.find_place(found.path), hint=found.hint)


def _line_and_column(problem: Problem) -> tuple[int, int]:
    place = problem.place
    return (0, 0) if place is None else (place.line, place.column or 0)


_INDENTATION: Final = re.compile(r"\n( +|\t+)\S")


def add_case(text: str, case_id: str, turns: Sequence[Turn], *, set_id: str) -> str:
    """Return the text of an eval set with one more case.

    Args:
        text: the eval set; empty for a new one.
        set_id: the id of a new one.
    """
    document: Any = json.loads(text) if text.strip() else {"eval_set_id": set_id, "eval_cases": []}
    cases = document[_find_key(document, "eval_cases")]
    cases.append({"eval_id": case_id, "conversation": [_make_turn({}, turn) for turn in turns]})
    return _dump(document, text)


def replace_case(text: str, index: int, turns: Sequence[Turn]) -> str:
    """Return the text of an eval set in which a case expects other calls and answers."""
    document: Any = json.loads(text)
    case = document[_find_key(document, "eval_cases")][index]
    former = case.get("conversation") or []
    case["conversation"] = [
        _make_turn(former[number] if number < len(former) else {}, turn)
        for number, turn in enumerate(turns)
    ]
    return _dump(document, text)


def _find_key(value: Mapping[str, Any], name: str) -> str:
    first, *others = name.split("_")
    camel = first + "".join(word.capitalize() for word in others)
    return camel if camel in value else name


def _make_turn(former: dict[str, Any], turn: Turn) -> dict[str, Any]:
    """Return a turn that keeps what does not change."""
    made = dict(former)
    made.setdefault(
        _find_key(made, "user_content"), {"role": "user", "parts": [{"text": turn.user_text}]}
    )
    answer = _find_key(made, "final_response")
    if turn.final_text is None:
        made.pop(answer, None)
    elif _join_text(made.get(answer)) != turn.final_text:
        made[answer] = {"role": "model", "parts": [{"text": turn.final_text}]}
    data = _find_key(made, "intermediate_data")
    uses = _find_key(made.get(data) or {}, "tool_uses")
    written = (made.get(data) or {}).get(uses)
    calls = [_make_call(call) for call in turn.tool_calls]
    if [(each.get("name"), each.get("args")) for each in written or []] != [
        (each["name"], each["args"]) for each in calls
    ]:
        made[data] = {uses: calls}
    return made


def _join_text(content: Any) -> str:
    parts = content.get("parts") or [] if isinstance(content, Mapping) else []
    return "".join(str(part.get("text") or "") for part in parts)


def _make_call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "args": call.named_args}


def _dump(document: Any, text: str) -> str:
    found = _INDENTATION.search(text)
    is_ascii = text.isascii() and bool(text.strip()) and "\\u" in text
    written = json.dumps(document, indent=found[1] if found else 2, ensure_ascii=is_ascii)
    return f"{written}\n"
