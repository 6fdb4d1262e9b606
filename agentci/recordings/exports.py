"""The exports of platforms that are read; their readers are loaded only for such a file."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import DocumentFormatError
from agentci.recordings.telemetry.semconv import ReadAttributes
from agentci.recordings.telemetry.spans import TelemetryRecord


class ExportFormat(Struct, frozen=True, kw_only=True):
    """A platform's export, which is a ``TraceFormat``.

    Attributes:
        name: the name that users write, such as ``langsmith``.
        title: what writes it, in Markdown.
        row_name: what one row is, with an article.
        is_row: whether an object is a row of it.
        wrappers: keys under which a page of an API has the rows.
    """

    name: str
    title: str
    row_name: str
    is_row: Callable[[JsonObject], bool]
    wrappers: tuple[str, ...] = ("data",)

    def recognises(self, document: Json) -> bool:
        """Return whether a document is a row, a list of rows, or a page of an API."""
        if isinstance(document, dict) and not self.is_row(document):
            pages = (document.get(key) for key in self.wrappers)
            document = next((page for page in pages if isinstance(page, list)), None)
        if isinstance(document, list):
            document = document[0] if document else None
        return isinstance(document, dict) and self.is_row(document)

    def read(self, document: Json, names: ReadAttributes) -> Iterator[TelemetryRecord]:
        """Read the spans of one document.

        Raises:
            DocumentFormatError: if it has another form.
        """
        from agentci.recordings.export_rows import READERS  # noqa: PLC0415 (few files are exports)

        return READERS[self.name](self._iterate_rows(document), names)

    def _iterate_rows(self, document: Json) -> Iterator[JsonObject]:
        if isinstance(document, dict) and document and not self.is_row(document):
            pages = (document.get(key) for key in self.wrappers)
            document = next((page for page in pages if isinstance(page, list)), document)
        for row in document if isinstance(document, list) else [document]:
            if not isinstance(row, dict) or not self.is_row(row):
                hint = f"every row must be {self.row_name}; `trace_format` sets another format"
                raise DocumentFormatError(f"not {self.row_name}", hint=hint)
            yield row


def is_langsmith_run(row: JsonObject) -> bool:
    """Return whether a row is a run of LangSmith."""
    return "run_type" in row and (
        "dotted_order" in row or {"parent_run_id", "inputs"} <= row.keys()
    )


def is_langfuse_observation(row: JsonObject) -> bool:
    """Return whether a row is an observation of Langfuse."""
    return isinstance(row.get("type"), str) and (
        {"traceId", "startTime"} <= row.keys()
        or {"trace_id", "start_time", "parent_observation_id"} <= row.keys()
    )


def is_langfuse_trace(row: JsonObject) -> bool:
    """Return whether a row is a trace of Langfuse with its observations."""
    inner = row.get("observations")
    return (
        isinstance(inner, list)
        and all(isinstance(one, dict) for one in inner)
        and ("trace" in row or "projectId" in row)
    )


def is_mlflow_trace(row: JsonObject) -> bool:
    """Return whether a row is a trace of MLflow."""
    info, data = row.get("info"), row.get("data")
    return (
        isinstance(info, dict)
        and isinstance(data, dict)
        and ("trace_id" in info or "request_id" in info)
        and "spans" in data
    )


def is_phoenix_span(row: JsonObject) -> bool:
    """Return whether a row is a span of Phoenix."""
    if "context.span_id" in row:
        return True
    context = row.get("context")
    return isinstance(context, dict) and "span_kind" in row and "trace_id" in context


EXPORT_FORMATS: Final[Mapping[str, ExportFormat]] = {
    one.name: one
    for one in (
        ExportFormat(
            name="langsmith",
            title="LangSmith, runs (`Client.list_runs`, bulk export as JSON Lines)",
            row_name="a LangSmith run",
            is_row=is_langsmith_run,
            wrappers=("runs", "data"),
        ),
        ExportFormat(
            name="langfuse",
            title="Langfuse, observations (API, blob storage export) and traces with observations",
            row_name="a Langfuse observation",
            is_row=lambda row: is_langfuse_observation(row) or is_langfuse_trace(row),
            wrappers=("data", "observations"),
        ),
        ExportFormat(
            name="mlflow",
            title="MLflow 2 and 3, `Trace.to_json()`",
            row_name="an MLflow trace",
            is_row=is_mlflow_trace,
            wrappers=("traces", "data"),
        ),
        ExportFormat(
            name="phoenix",
            title="Phoenix, spans (API, DataFrame as JSON)",
            row_name="a Phoenix span",
            is_row=is_phoenix_span,
            wrappers=("data", "spans"),
        ),
    )
}
