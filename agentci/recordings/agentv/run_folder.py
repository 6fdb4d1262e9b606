"""Reads the index of a folder that AgentV writes for a run: one row for each case."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from agentci.model.json import Json, JsonObject
from agentci.model.problem import Place
from agentci.model.trace import Transcript
from agentci.recordings.agentv.recorded_run import RecordedRun, find_case_id
from agentci.recordings.json_documents import Document

# Keys of paths to the recorded messages and to the answer, relative to the folder.
TRANSCRIPT_KEY: Final = "transcript_path"
ANSWER_KEYS: Final = ("answer_path", "output_path")
CHANGES_KEY: Final = "file_changes_path"
# The folder of the index since AgentV 5; paths are relative to the folder above it.
INDEX_FOLDER: Final = ".internal"


class IndexEntry(Struct, frozen=True, kw_only=True):
    """One case of a run.

    Attributes:
        suite: name of the eval file.
        transcript, answer, changes: paths relative to the folder; empty if the row has none.
        error: why the agent failed; empty if it did not.
        line: that of the row.
    """

    case_id: str
    suite: str
    target: str
    transcript: str
    answer: str
    changes: str
    error: str
    line: int


def is_index_row(row: Json) -> bool:
    """Return whether ``row`` belongs to the index of a run's folder."""
    return isinstance(row, dict) and "test_id" in row and isinstance(row.get(TRANSCRIPT_KEY), str)


def list_entries(documents: Sequence[Document], suites: Sequence[str]) -> tuple[IndexEntry, ...]:
    """List the cases of one eval file; of several rows for one case and target, the last one.

    Args:
        suites: possible names of the eval file; if no row has one of them, all rows count.
    """
    entries = [*_iterate_entries(documents)]
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


def _iterate_entries(documents: Sequence[Document]) -> Iterator[IndexEntry]:
    for document in documents:
        row = document.value
        case_id = find_case_id(row) if isinstance(row, dict) else None
        if isinstance(row, dict) and case_id is not None:
            failed = row.get("execution_status") == "execution_error"
            yield IndexEntry(
                case_id=case_id,
                suite=_read_text(row, "suite"),
                target=_read_text(row, "target"),
                transcript=_read_text(row, TRANSCRIPT_KEY),
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
