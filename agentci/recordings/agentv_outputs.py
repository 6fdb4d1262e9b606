"""Reads recorded runs: rows of AgentV's CLI provider, transcripts, replay fixtures, run folders."""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.json_text import decode_strict_json
from agentci.errors import RecordingError
from agentci.model.trace import Message, ToolUse, Transcript
from agentci.model.values import Json, JsonObject, Place, replace
from agentci.recordings.agentv_run import (
    RecordedRun,
    RunMetrics,
    find_case_id,
    make_prompt_case_id,
    read_attempt,
    read_number,
    read_objects,
    read_optional_text,
    read_run_metrics,
)
from agentci.recordings.json_documents import (
    Document,
    DocumentFormatError,
    make_recording_error,
    read_documents,
)


def read_messages(raw: Json, name: str) -> tuple[Message, ...]:
    """Read a list of messages.

    Args:
        name: name of the list, for error messages.

    Raises:
        DocumentFormatError: if a message has no role, or a tool call has no tool name.
    """
    return tuple(read_message(each) for each in read_objects(raw, name))


def read_message(raw: JsonObject) -> Message:
    """Read one message; raises as ``read_messages`` does."""
    role = raw.get("role")
    if not isinstance(role, str):
        raise DocumentFormatError("a message has no `role`")
    calls = _get_snake_or_camel(raw, "tool_calls", "toolCalls")
    metadata = raw.get("metadata")
    return Message(
        role=role,
        content=raw.get("content"),
        name=read_optional_text(raw.get("name"), "name"),
        tool_calls=()
        if calls is None
        else tuple(map(_read_tool_use, read_objects(calls, "tool_calls"))),
        **_read_times(raw),
        metadata=metadata if isinstance(metadata, dict) else None,
    )


def _read_tool_use(raw: JsonObject) -> ToolUse:
    tool = raw.get("tool")
    if not isinstance(tool, str):
        raise DocumentFormatError("a tool call has no `tool`")
    return ToolUse(
        tool=tool,
        input=raw.get("input"),
        output=raw.get("output"),
        id=read_optional_text(raw.get("id"), "id"),
        status=read_optional_text(raw.get("status"), "status"),
        **_read_times(raw),
    )


def _read_times(raw: JsonObject) -> dict[str, Any]:
    """Read the fields of a message or a tool call that say when it was and how long it took."""
    start = _get_snake_or_camel(raw, "start_time", "startTime")
    end = _get_snake_or_camel(raw, "end_time", "endTime")
    duration = _get_snake_or_camel(raw, "duration_ms", "durationMs")
    return {
        "timestamp": read_optional_text(raw.get("timestamp"), "timestamp"),
        "start_time": read_optional_text(start, "start_time"),
        "end_time": read_optional_text(end, "end_time"),
        "duration_ms": read_number(duration, "duration_ms"),
    }


def _get_snake_or_camel(raw: JsonObject, snake: str, camel: str) -> Json:
    return raw[snake] if snake in raw else raw.get(camel)


TRANSCRIPT_SCHEMA: Final = "agentv.transcript.v1"
# What a transcript was made from: a run of AgentV, or a session that it imported.
RUN_KIND: Final = "agentv_run"
SESSION_KIND: Final = "imported_transcript"
# Keys of a run's messages; the first one present is used.
MESSAGE_KEYS: Final = ("output_messages", "outputMessages", "output", "messages")
ANSWER_KEY: Final = "text"
# What went wrong, in the row of a run that failed.
ERROR_KEY: Final = "error"
MAX_ERROR_CHARACTERS: Final = 200
ASSISTANT: Final = "assistant"
ROLES: Final = ("system", "user", ASSISTANT, "tool")
NO_OUTPUT: Final = "no output of the agent: `output_messages` and `text` are missing"


def is_run_row(document: Json) -> bool:
    """Return whether ``document`` is a run or a message of a run, in any of the three forms."""
    return isinstance(document, dict) and (
        is_message_row(document)
        or any(key in document for key in (*MESSAGE_KEYS, ANSWER_KEY, ERROR_KEY))
    )


def read_runs(documents: Sequence[Document], file: str) -> Iterator[RecordedRun]:
    """Read the runs of one file, in its order; messages of one test make one run.

    Raises:
        DocumentFormatError: if a row is invalid, with its line.
    """
    tests: dict[str | None, list[tuple[JsonObject, int]]] = {}
    for document in documents:
        row, line = document.value, document.line
        if not isinstance(row, dict) or not is_run_row(row):
            raise DocumentFormatError(NO_OUTPUT, line=line)
        if is_message_row(row):
            tests.setdefault(find_case_id(row), []).append((row, line))
        else:
            yield _read_run(row, Place(file=file, line=line))
    for test, rows in tests.items():
        yield _join_message_rows(test, rows, file)


def is_message_row(row: Json) -> bool:
    """Return whether ``row`` is one message of a transcript."""
    return isinstance(row, dict) and (
        row.get("schema_version") == TRANSCRIPT_SCHEMA or ("message_index" in row and "role" in row)
    )


def _read_run(row: JsonObject, place: Place) -> RecordedRun:
    try:
        metrics = read_run_metrics(row)
        messages, is_answer_only = _read_row_messages(row)
        attempt = read_attempt(row)
        start, end = (read_optional_text(row.get(key), key) for key in ("start_time", "end_time"))
        diff = _get_snake_or_camel(row, "file_changes", "fileChanges")
        changes = read_optional_text(diff, "file_changes")
    except DocumentFormatError as error:
        raise DocumentFormatError(str(error), line=place.line) from None
    return RecordedRun(
        case_id=find_case_id(row),
        transcript=replace(
            _make_transcript(messages, metrics, start=start, end=end),
            tool_calls_recorded=not is_answer_only,
            file_changes=changes,
        ),
        place=place,
        attempt=attempt,
        warnings=metrics.warnings,
        not_captured=_explain_missing_output(messages, row.get(ERROR_KEY)),
    )


def _read_row_messages(row: JsonObject) -> tuple[tuple[Message, ...], bool]:
    """Read the messages of a row, and whether they are only the answer, without tool calls."""
    for key in MESSAGE_KEYS:
        raw = row.get(key)
        if isinstance(raw, list):
            return read_messages(raw, key), False
        if isinstance(raw, str):
            listed = _parse_message_list(raw)
            if listed is not None:
                return read_messages(listed, key), False
            return _make_answer_transcript(raw).messages, True
    answer = row.get(ANSWER_KEY)
    if answer is None and row.get(ERROR_KEY):
        return (), True
    if answer is None:
        raise DocumentFormatError(NO_OUTPUT)
    if not isinstance(answer, str):
        answer = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return _make_answer_transcript(answer).messages, True


def _parse_message_list(text: str) -> list[Json] | None:
    """The messages that a text holds as JSON; None for any other text."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found = decode_strict_json(text)
    except ValueError:
        return None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        return None
    roles = [each.get("role") for each in found if isinstance(each, dict)]
    return found if ASSISTANT in roles and all(role in ROLES for role in roles) else None


def _join_message_rows(
    test: str | None, rows: Sequence[tuple[JsonObject, int]], file: str
) -> RecordedRun:
    ordered = sorted(rows, key=_message_index)
    messages: list[Message] = []
    for row, line in ordered:
        try:
            messages.append(read_message(row))
        except DocumentFormatError as error:
            raise DocumentFormatError(str(error), line=line) from None
    first, line = ordered[0]
    try:
        metrics = read_run_metrics(first, prefix="transcript_")
    except DocumentFormatError as error:
        raise DocumentFormatError(str(error), line=line) from None
    source = first.get("source")
    kind, provider = (
        (source.get("kind"), source.get("provider")) if isinstance(source, dict) else (None, None)
    )
    own = [each for each in messages if each.role == ASSISTANT]
    # AgentV also writes the text that a command printed as a message; it may have called tools.
    only_text = kind == RUN_KIND and provider == "cli" and len(own) == 1
    return RecordedRun(
        case_id=test,
        transcript=replace(
            _make_transcript(tuple(messages), metrics),
            tool_calls_recorded=not only_text or bool(own[0].tool_calls),
        ),
        place=Place(file=file, line=line),
        question=None if kind == RUN_KIND else _find_question(messages),
        is_session=kind == SESSION_KIND,
        warnings=metrics.warnings,
        not_captured=_explain_missing_output(messages, first.get(ERROR_KEY)),
    )


def _find_question(messages: Sequence[Message]) -> str | None:
    """The text of the first message from the user."""
    given = next((each.content for each in messages if each.role == "user"), None)
    return given if isinstance(given, str) else None


def _explain_missing_output(messages: Sequence[Message], error: Json) -> str:
    """Say that the agent failed, or neither answered nor called a tool; empty if it did."""
    if error:
        text = error if isinstance(error, str) else json.dumps(error)
        return f"The agent failed: {truncate.characters(text, MAX_ERROR_CHARACTERS)}"
    own = [each for each in messages if each.role == ASSISTANT]
    if any(each.tool_calls or _has_content(each.content) for each in own):
        return ""
    return "The output holds no answer and no tool call of the agent"


def _has_content(content: Json) -> bool:
    return bool(content.strip() if isinstance(content, str) else content)


def _message_index(numbered: tuple[JsonObject, int]) -> float:
    index = numbered[0].get("message_index")
    return index if isinstance(index, int | float) else 0


def _make_transcript(
    messages: tuple[Message, ...],
    metrics: RunMetrics,
    *,
    start: str | None = None,
    end: str | None = None,
) -> Transcript:
    return Transcript(
        messages=messages,
        token_usage=metrics.token_usage,
        cost_usd=metrics.cost_usd,
        duration_ms=metrics.duration_ms,
        start_time=start,
        end_time=end,
    )


def _make_answer_transcript(text: str) -> Transcript:
    return Transcript(
        messages=(Message(role="assistant", content=text),), tool_calls_recorded=False
    )


RECORDED_RUN_HINT: Final = (
    'expected {"output_messages": [...]} or {"text": "..."} with the `id` of a case, one per line;'
    " agentv.transcript.v1; agentv.replay_fixture.v1; or traces as OTLP or Jaeger JSON"
)


def read_first_value(content: Iterator[bytes], *, file: str) -> Json:
    """Return the first JSON value of a file; None if there is none."""
    try:
        return next(read_documents(content, file=file)).value
    except (RecordingError, StopIteration):
        return None


def read_recorded_runs(content: bytes, *, file: str, of_one_case: bool) -> tuple[RecordedRun, ...]:
    """Read the runs of one file.

    Args:
        of_one_case: whether the file's name identifies its case, so that the file may hold only the
            response text.

    Raises:
        RecordingError: if nothing in the file can be used.
    """
    answer = _make_answer_transcript(content.decode("utf-8", "replace").strip())
    plain_run = RecordedRun(
        case_id=None,
        transcript=answer,
        place=Place(file=file),
        not_captured=_explain_missing_output(answer.messages, None),
    )
    try:
        documents = _flatten_rows(list(read_documents(iter([content]), file=file)))
        if of_one_case and not is_run_row(documents[0].value):
            return (plain_run,)
        return tuple(read_runs(documents, file))
    except DocumentFormatError as error:
        line = error.line or 1
        raise make_recording_error(file, str(error), hint=RECORDED_RUN_HINT, line=line) from None
    except RecordingError:
        if of_one_case:
            return (plain_run,)
        raise


def _flatten_rows(documents: list[Document]) -> list[Document]:
    """Return the rows of a file that is one list of runs, else the documents."""
    [first, *others] = documents
    rows = first.value
    if others or not isinstance(rows, list) or not all(map(is_run_row, rows)):
        return documents
    return [Document(value=row, line=first.line) for row in rows] or documents


# Keys of paths to the recorded messages and to the answer, relative to the folder. Since AgentV 5,
# the transcript has other names of tools, and the messages are in the raw one, unless the agent
# wrote that.
TRANSCRIPT_KEY: Final = "transcript_path"
RAW_TRANSCRIPT_KEY: Final = "transcript_raw_path"
ANSWER_KEYS: Final = ("answer_path", "output_path")
CHANGES_KEY: Final = "file_changes_path"
# The folder of the index since AgentV 5; paths are relative to the folder above it.
INDEX_FOLDER: Final = ".internal"


class IndexEntry(Struct, frozen=True, kw_only=True):
    """One case of a run.

    Attributes:
        suite: name of the eval file.
        transcripts: path of the transcript, and of the raw one.
        answer, changes: likewise; paths are relative to the folder, and empty if the row has none.
        error: why the agent failed; empty if it did not.
        line: that of the row.
    """

    case_id: str
    suite: str
    target: str
    transcripts: tuple[str, str]
    answer: str
    changes: str
    error: str
    line: int


def is_index_row(row: Json) -> bool:
    """Return whether ``row`` belongs to the index of a run's folder."""
    return isinstance(row, dict) and "test_id" in row and isinstance(row.get(TRANSCRIPT_KEY), str)


def list_entries(
    documents: Sequence[Document], suites: Sequence[str], case_ids: Collection[str]
) -> tuple[IndexEntry, ...]:
    """List the cases of one eval file; of several rows for one case and target, the last one.

    Args:
        suites: possible names of the eval file; if no row has one of them, all rows count.
        case_ids: the cases of the eval file; one per prompt if it has several prompts.
    """
    entries = [*_iterate_entries(documents, case_ids)]
    own = [each for each in entries if each.suite in suites]
    return tuple({(each.case_id, each.target): each for each in own or entries}.values())


def make_failed_run(entry: IndexEntry, file: str) -> RecordedRun:
    """The run of a case without output.

    Args:
        file: name of the index.
    """
    return RecordedRun(
        case_id=entry.case_id,
        transcript=Transcript(messages=(), tool_calls_recorded=False),
        place=Place(file=file, line=entry.line),
        not_captured=f"The agent failed: {entry.error}"
        if entry.error
        else "The row of the run names no output of the agent",
    )


def _iterate_entries(
    documents: Sequence[Document], case_ids: Collection[str]
) -> Iterator[IndexEntry]:
    for document in documents:
        row = document.value
        case_id = find_case_id(row) if isinstance(row, dict) else None
        if isinstance(row, dict) and case_id is not None:
            failed = row.get("execution_status") == "execution_error"
            of_prompt = make_prompt_case_id(case_id, _read_text(row, "prompt_id"))
            yield IndexEntry(
                case_id=of_prompt if of_prompt in case_ids else case_id,
                suite=_read_text(row, "suite"),
                target=_read_text(row, "target"),
                transcripts=(_read_text(row, TRANSCRIPT_KEY), _read_text(row, RAW_TRANSCRIPT_KEY)),
                answer=next(filter(None, (_read_text(row, key) for key in ANSWER_KEYS)), ""),
                changes=_read_text(row, CHANGES_KEY),
                error=_describe_error(row.get("error")) if failed else "",
                line=document.line,
            )


def _read_text(row: JsonObject, key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


def _describe_error(error: Json) -> str:
    return error if isinstance(error, str) and error else json.dumps(error)
