"""Kinds of files that are not read: how to recognise them, and what to do instead."""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from agentci.model.values import Json, JsonObject

_NAME_TRACES: Final = "name the files of the agent's traces"
_SAVE_MESSAGES: Final = "save the agent's message list as JSON (agentci's docs/transcripts.md)"
_USE_OTLP: Final = "export the spans with OTLP"


class ForeignKind(Struct, frozen=True, kw_only=True):
    """A kind of file that is not read.

    Attributes:
        title: what it is, with an article.
        hint: what to do.
    """

    title: str
    hint: str


class _Row(Struct, frozen=True, kw_only=True):
    kind: ForeignKind
    matches: Callable[[JsonObject], bool]


def _has(*names: str) -> Callable[[JsonObject], bool]:
    """Return a rule: an object has all of these keys."""
    return lambda fields: all(name in fields for name in names)


def _row(title: str, hint: str, matches: Callable[[JsonObject], bool]) -> _Row:
    return _Row(kind=ForeignKind(title=title, hint=hint), matches=matches)


def _is_page_of(rows: Json, matches: Callable[[JsonObject], bool]) -> bool:
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict) and matches(rows[0])


def _is_sarif(fields: JsonObject) -> bool:
    return "runs" in fields and "sarif" in str(fields.get("$schema", "")).lower()


def _is_gemini_output(fields: JsonObject) -> bool:
    return {"response", "stats"} <= fields.keys() and isinstance(fields.get("stats"), dict)


def _is_cline(fields: JsonObject) -> bool:
    content = fields.get("content")
    first = content[0] if isinstance(content, list) and content else None
    text = first.get("text") if isinstance(first, dict) else None
    return fields.get("role") == "user" and str(text).startswith("<task>")


def _is_langfuse_summary(fields: JsonObject) -> bool:
    named = {"id", "timestamp", "input", "output"} <= fields.keys()
    inner = fields.get("observations")
    return (
        named
        and not {"projectId", "sessionId", "userId"}.isdisjoint(fields)
        and not (isinstance(inner, list) and inner and isinstance(inner[0], dict))
    )


_ROWS: Final = (
    _row(
        "Langfuse traces without their observations, and so without tool calls",
        "export the observations",
        _is_langfuse_summary,
    ),
    _row(
        "a DataFrame of Phoenix spans without its index, the ids of the spans",
        "write it with `df.reset_index().to_json(...)`",
        lambda fields: (
            "context.trace_id" in fields
            and "context.span_id" not in fields
            and "span_kind" in fields
        ),
    ),
    _row(
        "a DataFrame of MLflow traces",
        f"its inner objects are no longer JSON; {_USE_OTLP}, or {_SAVE_MESSAGES}",
        lambda fields: (
            "trace_id" in fields and ("request_preview" in fields or "trace_metadata" in fields)
        ),
    ),
    _row(
        "an export of Weave calls",
        f"{_USE_OTLP}, or {_SAVE_MESSAGES}",
        _has("op_name", "trace_id", "started_at"),
    ),
    _row(
        "Zipkin JSON",
        _USE_OTLP,
        lambda fields: (
            {"traceId", "id"} <= fields.keys()
            and ("localEndpoint" in fields or "remoteEndpoint" in fields)
        ),
    ),
    _row(
        "the output of Gemini CLI's `--output-format json`, which has no tool calls",
        "record with `--output-format stream-json`, or use the session file",
        _is_gemini_output,
    ),
    _row(
        "messages of an OpenAI Assistants thread, which have no tool calls",
        "record the run with OTLP, or with the Responses API",
        lambda fields: str(fields.get("object", "")).startswith("thread."),
    ),
    _row(
        "a conversation of Cline or Roo Code, whose tool calls are text",
        _USE_OTLP,
        _is_cline,
    ),
    _row(
        "a session of Goose",
        "export it as ATIF, or record the run with OTLP",
        lambda fields: (
            "working_dir" in fields
            and not {"message_count", "conversation", "description"}.isdisjoint(fields)
        ),
    ),
    _row(
        "the context of a LlamaIndex workflow without its chat history",
        "save the messages of the memory as JSON (agentci's docs/transcripts.md)",
        lambda fields: (
            "is_running" in fields
            and not {"workers", "queues", "globals"}.isdisjoint(fields)
            and "chat_store" not in str(fields.get("state", fields.get("globals")))
        ),
    ),
    _row(
        "an output of a LlamaIndex agent, which does not hold the user's message",
        "save the messages of the memory as JSON (agentci's docs/transcripts.md)",
        lambda fields: (
            "current_agent_name" in fields
            and not {"response", "input", "tool_calls", "delta"}.isdisjoint(fields)
        ),
    ),
    _row(
        "an ADK test file in its old form: expectations, not a recorded run",
        "name it as `eval_set:`",
        _has("query", "expected_tool_use"),
    ),
    _row(
        "an ADK test file in its old form: expectations, not a recorded run",
        "name it as `eval_set:`",
        _has("name", "data", "initial_session"),
    ),
    _row(
        "a Playwright report",
        _NAME_TRACES,
        lambda fields: {"config", "suites"} <= fields.keys() and "stats" in fields,
    ),
    _row(
        "a Jest or Vitest report",
        _NAME_TRACES,
        _has("numTotalTests", "testResults"),
    ),
    _row("a SARIF report", _NAME_TRACES, _is_sarif),
    _row(
        "results of agentci",
        _NAME_TRACES,
        _has("schema_version", "decision", "totals"),
    ),
    _row(
        "an HTTP archive (HAR)",
        _NAME_TRACES,
        lambda fields: isinstance(log := fields.get("log"), dict) and "entries" in log,
    ),
    _row("a Chrome trace", _NAME_TRACES, _has("traceEvents")),
    _row(
        "an Inspect log",
        f"{_SAVE_MESSAGES} for each sample",
        lambda fields: {"eval", "samples"} <= fields.keys() and "status" in fields,
    ),
    _row(
        "a batch of OpenAI requests or responses",
        _SAVE_MESSAGES,
        lambda fields: "custom_id" in fields and ("body" in fields or "response" in fields),
    ),
)


METRICS: Final = ForeignKind(title="OpenTelemetry metrics", hint="name the file of the traces")


def is_metrics(document: Json) -> bool:
    """Return whether a document is metrics or profiles, which a file may hold besides traces."""
    return isinstance(document, dict) and not _METRIC_KEYS.isdisjoint(document)


_METRIC_KEYS: Final = frozenset(
    {"resourceMetrics", "resource_metrics", "resourceProfiles", "resource_profiles"}
)


def find_foreign_kind(document: Json) -> ForeignKind | None:
    """Return the kind of a document that is recognised, but not read."""
    if isinstance(document, list):
        document = document[0] if document else None
    if not isinstance(document, dict):
        return None
    for row in _ROWS:
        if row.matches(document) or _is_page_of(document.get("data"), row.matches):
            return row.kind
    return None


_PYTHON_REPR: Final = re.compile(
    rb"\s*[\[{]\s*(?:[\[{]\s*)*'|\s*\[?\s*(?:HumanMessage|AIMessage)\("
)
_TEXT_KINDS: Final = (
    (
        re.compile(rb"SQLite format 3\0"),
        ForeignKind(
            title="an SQLite database", hint="export the session (`opencode export`, for example)"
        ),
    ),
    (
        re.compile(rb"PAR1"),
        ForeignKind(title="a Parquet file", hint="export it as JSON Lines"),
    ),
    (
        re.compile(rb"PK\x03\x04"),
        ForeignKind(title="a ZIP archive", hint="extract it, and name the files in it"),
    ),
    (
        re.compile(rb"\x28\xb5\x2f\xfd"),
        ForeignKind(title="compressed with zstd", hint="decompress it with `zstd -d`, or use gzip"),
    ),
    (
        re.compile(rb"\s*(?:<!doctype html|<html)", re.IGNORECASE),
        ForeignKind(title="an HTML page", hint=_NAME_TRACES),
    ),
    (
        re.compile(rb"\s*(?:<\?xml\b|<testsuites?\b)"),
        ForeignKind(title="an XML file", hint=_NAME_TRACES),
    ),
    (
        _PYTHON_REPR,
        ForeignKind(
            title="Python values printed with `print` or `str`, not JSON",
            hint="write them with `json.dump`",
        ),
    ),
)


def find_text_kind(head: bytes) -> ForeignKind | None:
    """Return the kind of content that is not JSON, if its first bytes show it."""
    return next((kind for pattern, kind in _TEXT_KINDS if pattern.match(head)), None)
