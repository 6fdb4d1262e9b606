"""Google's Agent Development Kit (sessions, events, results of eval sets) and GenAI contents."""

from collections.abc import Iterable, Iterator
from typing import Final

from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import Document, DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects, parse_json_or_text
from agentci.recordings.transcripts.provider_messages import describe_role
from agentci.recordings.transcripts.reader import (
    TranscriptReader,
    TranscriptRun,
    UsageSum,
    as_object,
    as_text,
    find_text,
    iterate_first_objects,
    looks_like_call,
    make_step,
)
from agentci.recordings.transcripts.turn_builder import MessageListBuilder, TurnBuilder

_TOKEN_COUNTS: Final = (
    "prompt_token_count",
    "candidates_token_count",
    "cached_content_token_count",
)


def _get(fields: JsonObject, snake: str) -> Json:
    """Return a field, whose name is in snake_case or camelCase."""
    if snake in fields:
        return fields[snake]
    first, *rest = snake.split("_")
    return fields.get(first + "".join(word.capitalize() for word in rest))


def _is_event(record: JsonObject) -> bool:
    return isinstance(record.get("author"), str) and isinstance(_get(record, "invocation_id"), str)


def _is_session(record: JsonObject) -> bool:
    return isinstance(record.get("events"), list) and isinstance(_get(record, "app_name"), str)


def _recognises_session(document: Json) -> bool:
    return any(
        _is_session(record) or _is_event(record) for record in iterate_first_objects(document)
    )


def _read_session(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    events: list[JsonObject] = []
    first_line = 0
    for document in documents:
        values = document.value if isinstance(document.value, list) else [document.value]
        for record in iterate_objects(values):
            if _is_session(record):
                own = list(iterate_objects(record.get("events")))
                yield _read_events(own, document.line, as_text(record.get("id")))
            elif _is_event(record):
                events.append(record)
                first_line = first_line or document.line
            else:
                raise DocumentFormatError("not a session or an event of ADK", line=document.line)
    if events:
        yield _read_events(events, first_line, None)


def _read_events(events: Iterable[JsonObject], line: int, session_id: str | None) -> TranscriptRun:
    turns, usage, models, failures = TurnBuilder(), UsageSum(), dict[str, None](), list[str]()
    invocation: Json = None
    for event in events:
        if event.get("partial") is True:
            continue
        is_user = event.get("author") == "user"
        content = as_object(event.get("content"))
        parts = list(iterate_objects(content.get("parts")))
        if _get(event, "invocation_id") != invocation:
            invocation = _get(event, "invocation_id")
            turns.end_turn()
        tokens = as_object(_get(event, "usage_metadata"))
        counts = tuple(_get(tokens, name) for name in _TOKEN_COUNTS)
        if not is_user and not any(_get(part, "function_response") for part in parts):
            turns.start_step(make_step(_get(event, "model_version"), *counts))
            usage.add(None, *counts)
        try:
            add_parts(turns, parts, is_user=is_user)
        except DocumentFormatError as error:
            raise DocumentFormatError(str(error), line=line) from None
        if model := as_text(_get(event, "model_version")):
            models[model] = None
        if code := as_text(_get(event, "error_code")):
            failures.append(f"ADK reported an error: {code[:100]}")
    return TranscriptRun(
        id=session_id,
        line=line,
        turns=turns.build(),
        usage=usage.total,
        models=tuple(sorted(models)),
        failures=tuple(failures),
        lost=tuple(turns.lost),
    )


def add_parts(turns: TurnBuilder, parts: list[JsonObject], *, is_user: bool) -> None:
    """Add the parts of a content: texts, calls and their results; thoughts are left out.

    Raises:
        DocumentFormatError: a part may be a call in a form that is not read.
    """
    texts: list[str] = []
    is_question = is_user and bool(parts)
    for part in parts:
        if part.get("thought") is True:
            continue
        call, response = _find_call(part), _find_response(part)
        if call:
            turns.add_text("\n".join(texts))
            texts.clear()
            turns.add_call(call.get("name"), call.get("args"), call.get("id"))
        elif response:
            is_question = False
            _add_response(turns, response)
        elif text := as_text(part.get("text")):
            texts.append(text)
        elif unknown := [key for key in part if looks_like_call(key)]:
            raise DocumentFormatError(f"a part with `{unknown[0][:40]}` is not read")
    if is_question or (is_user and texts):
        turns.start_turn("\n".join(texts))
    else:
        turns.add_text("\n".join(texts))


def _find_call(part: JsonObject) -> JsonObject:
    """Return the call of a function, or the code that the model runs; empty if there is none."""
    code = as_object(_get(part, "executable_code"))
    if code:
        return {"name": CODE_TOOL, "args": code, "id": code.get("id")}
    call = as_object(_get(part, "function_call"))
    # Google leaves out the arguments of functions without parameters.
    return {**call, "args": {}} if call and call.get("args") is None else call


def _find_response(part: JsonObject) -> JsonObject:
    result = as_object(_get(part, "code_execution_result"))
    if result:
        return {"name": CODE_TOOL, "response": result.get("output"), "id": result.get("id")}
    return as_object(_get(part, "function_response"))


def _add_response(turns: TurnBuilder, response: JsonObject) -> None:
    output = response.get("response")
    failed = ("error" in as_object(output) and "result" not in as_object(output)) or None
    name = as_text(response.get("name"))
    turns.add_result(response.get("id"), output, failed=failed, name=name)


CODE_TOOL: Final = "code_execution"
_CONTENT_ROLES: Final = ("user", "model", "function", "tool")


def is_content(message: JsonObject) -> bool:
    """Return whether a message can only be a content of the Google GenAI SDK."""
    parts = message.get("parts")
    return (
        message.get("role") in _CONTENT_ROLES
        and isinstance(parts, list)
        and bool(parts)
        and all("type" not in part and "part_kind" not in part for part in iterate_objects(parts))
    )


def add_content(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one content of the Google GenAI SDK."""
    role = message.get("role")
    if role not in _CONTENT_ROLES:
        raise DocumentFormatError(f"a message has {describe_role(role)}")
    parts = list(iterate_objects(message.get("parts")))
    if role == "model":
        run.turns.start_step()
    add_parts(run.turns, parts, is_user=role == "user")


SESSION: Final = TranscriptReader(recognises=_recognises_session, read=_read_session)


def _unpack_result(document: Json) -> Json:
    """Return the eval set's result, which older versions wrote as JSON in a string."""
    return parse_json_or_text(document) if isinstance(document, str) else document


def _recognises_result(document: Json) -> bool:
    return isinstance(_get(as_object(_unpack_result(document)), "eval_case_results"), list)


def _read_result(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    for document in documents:
        result = as_object(_unpack_result(document.value))
        if not _recognises_result(document.value):
            message = "not the result of an eval set: no `eval_case_results`"
            raise DocumentFormatError(message, line=document.line)
        for case in iterate_objects(_get(result, "eval_case_results")):
            try:
                yield _read_case(case, document.line)
            except DocumentFormatError as error:
                raise DocumentFormatError(str(error), line=document.line) from None


def _read_case(case: JsonObject, line: int) -> TranscriptRun:
    turns = TurnBuilder()
    for judged in iterate_objects(_get(case, "eval_metric_result_per_invocation")):
        invocation = as_object(_get(judged, "actual_invocation"))
        if not invocation:
            continue
        turns.start_turn(_join_parts(_get(invocation, "user_content")))
        _add_trajectory(turns, as_object(_get(invocation, "intermediate_data")))
        turns.add_text(_join_parts(_get(invocation, "final_response")))
    case_id = as_text(_get(case, "eval_id"))
    return TranscriptRun(
        id=case_id,
        eval_case_id=case_id,
        line=line,
        turns=turns.build(),
        lost=tuple(turns.lost),
    )


def _add_trajectory(turns: TurnBuilder, data: JsonObject) -> None:
    for call in iterate_objects(_get(data, "tool_uses")):
        turns.add_call(call.get("name"), call.get("args"), call.get("id"))
    for response in iterate_objects(_get(data, "tool_responses")):
        _add_response(turns, response)
    for event in iterate_objects(_get(data, "invocation_events")):
        parts = iterate_objects(as_object(event.get("content")).get("parts"))
        add_parts(turns, list(parts), is_user=False)


def _join_parts(content: Json) -> str:
    parts = iterate_objects(as_object(content).get("parts"))
    written = (part for part in parts if part.get("thought") is not True)
    return "\n".join(text for part in written if (text := find_text(part, "text")))


EVAL_SET_RESULT: Final = TranscriptReader(recognises=_recognises_result, read=_read_result)
