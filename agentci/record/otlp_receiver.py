"""Receives the spans and log records of agents that export telemetry, as OTLP over HTTP.

A program finds it by the variables of ``make_export_variables``; code that is injected into Python
programs (``injected/``) sends to it, too. The address contains token and case. Injected code of
Node programs writes spans to files, as Node cannot send them synchronously.
"""

import json
import os
import stat
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final

from msgspec.json import encode

from agentci._util.files import SpooledChunks
from agentci._util.text.json_text import dumps_compact
from agentci.model.values import Json, JsonObject
from agentci.record.apis.model_api import get_object, get_objects, get_text, parse_body
from agentci.record.http_server import ServerRequest, ServerResponse
from agentci.record.write_spans import CaseStamp, stamp_resources
from agentci.recordings.otlp_protobuf import ProtobufError, decode_logs, decode_traces

ROUTE: Final = "otlp"
INJECTED_ROUTE: Final = "injected"
MAX_BYTES: Final = 20 * 1024**2
PROTOBUF: Final = "application/x-protobuf"
JSON_TYPE: Final = "application/json"
# CrewAI's telemetry for its maker, about itself and, once per process, about a run. Both have
# providers of their own, so only injected code receives them, in addition to the instrumentors'.
NOISE_SCOPES: Final = frozenset({"crewai.telemetry", "crewai"})
_GZIP_BITS: Final = 31
_INVALID_ARGUMENT, _RESOURCE_EXHAUSTED, _OUT_OF_RANGE, _UNIMPLEMENTED = 3, 8, 11, 12
_DECODERS: Final[Mapping[str, Callable[[bytes], JsonObject]]] = {
    "/v1/traces": decode_traces,
    "/v1/logs": decode_logs,
}
_METRICS: Final = "/v1/metrics"
_ERRORS: Final = "/errors"
_MODULES: Final = "/modules"
MAX_ERRORS: Final = 20
# For all cases together: the identifiers of spans stay in memory.
MAX_SPANS: Final = 500_000
TOO_MANY_SPANS: Final = f"more than {MAX_SPANS:,} spans were exported"
# Settings of exporters, which replace those of the user; other addresses are removed.
_EXPORTERS: Final = {
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_LOGS_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_BSP_SCHEDULE_DELAY": "200",
    "OTEL_BLRP_SCHEDULE_DELAY": "200",
}
SIGNAL_VARIABLES: Final = frozenset(
    f"OTEL_EXPORTER_OTLP_{signal}_{name}"
    for signal in ("TRACES", "LOGS", "METRICS")
    for name in ("ENDPOINT", "PROTOCOL", "HEADERS")
)
# Switches that record content, unless the user sets them.
CONTENT_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CONTENT: Final = {
    CONTENT_VARIABLE: "SPAN_ONLY",
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "TRACELOOP_TRACE_CONTENT": "true",
    "ENABLE_INSTRUMENTATION": "true",
    "ENABLE_SENSITIVE_DATA": "true",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS": "true",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE": "true",
    "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE": "content",
    "OTEL_NODE_RESOURCE_DETECTORS": "env",
}


class RefusedExportError(Exception):
    """An export that is refused, with the HTTP status and the code of ``google.rpc``."""

    def __init__(self, status: HTTPStatus, code: int, message: str) -> None:
        self.status = status
        self.code = code
        super().__init__(message)


class OtlpReceiver:
    """Stores exports by case; thread-safe."""

    def __init__(self, max_spans: int = MAX_SPANS) -> None:
        self._lock = threading.Lock()
        self._spool = SpooledChunks()
        self._chunks: dict[str, list[int]] = {}
        self._max_spans = max_spans
        self._spans = 0
        self._seen: dict[str, set[str]] = {}
        self._refused: set[str] = set()
        self._errors: dict[str, list[str]] = {}
        self._modules: set[tuple[str, str]] = set()

    def respond(self, request: ServerRequest) -> ServerResponse:
        """Store an export, and respond in the content type of the request."""
        kind = request.get_header("content-type").partition(";")[0].strip().lower()
        try:
            rejected = self._receive(request, kind)
        except RefusedExportError as error:
            return _make_response(kind, error.status, _make_status(kind, error))
        return _make_response(kind, HTTPStatus.OK, _make_success(kind, request.path, rejected))

    def list_cases(self) -> list[str]:
        """Return the cases that exports named."""
        with self._lock:
            return list(self._chunks)

    def has_refused_spans(self, case: str) -> bool:
        """Whether spans of a case were refused because there were too many."""
        with self._lock:
            return case in self._refused

    def list_errors(self, case: str) -> list[str]:
        """Return the errors of a case that injected code reported."""
        with self._lock:
            return list(self._errors.get(case, ()))

    def list_modules(self, case: str) -> list[str]:
        """Return the modules whose import injected code reported for a case."""
        with self._lock:
            return [name for owner, name in self._modules if owner == case]

    def list_lines(self, stamp: CaseStamp, redact: Callable[[JsonObject], JsonObject]) -> list[str]:
        """Return the exports of a case as lines of OTLP JSON, stamped.

        Args:
            redact: removes keys.
        """
        with self._lock:
            chunks = [self._spool.read(number) for number in self._chunks.get(stamp.id, ())]
        documents = (document for chunk in chunks if (document := parse_body(chunk)) is not None)
        return [dumps_compact(redact(stamp_resources(one, stamp.attributes))) for one in documents]

    def _receive(self, request: ServerRequest, kind: str) -> int:
        """Store an export; return the number of spans without ids."""
        if kind.startswith("application/grpc"):
            message = "gRPC is not supported; set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"
            raise RefusedExportError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, _UNIMPLEMENTED, message)
        if request.path == _METRICS:
            return 0
        if request.path == _ERRORS:
            self._add_error(request.case, request.body.decode("utf-8", "replace"))
            return 0
        if request.path == _MODULES:
            with self._lock:
                self._modules.add((request.case, get_text(parse_body(request.body) or {}, "name")))
            return 0
        decoder = _DECODERS.get(request.path)
        if decoder is None or request.method != "POST":
            message = "POST to /v1/traces, /v1/logs or /v1/metrics"
            raise RefusedExportError(HTTPStatus.NOT_FOUND, _UNIMPLEMENTED, message)
        return self._keep(request.case, _decode(_unpack(request), kind, decoder))

    def _keep(self, case: str, document: JsonObject) -> int:
        """Store what is new in a document; return the number of spans without ids.

        Raises:
            RefusedExportError: there are too many spans.
        """
        with self._lock:
            seen = self._seen.setdefault(case, set())
            if "resourceSpans" in document and self._spans >= self._max_spans:
                self._refused.add(case)
                raise RefusedExportError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _RESOURCE_EXHAUSTED, TOO_MANY_SPANS
                )
            self._spans -= len(seen)
            fresh, rejected = _select(document, seen)
            self._spans += len(seen)
            if fresh:
                number = self._spool.append(_encode(fresh))
                self._chunks.setdefault(case, []).append(number)
        return rejected

    def add_files(self, case: str, folder: Path) -> None:
        """Store what processes of a case wrote to files: OTLP JSON or ``{"error": ...}`` per line.

        A line that is incomplete because the process was killed is ignored, as are other files.
        """
        for path in sorted(folder.glob("*.jsonl")):
            with suppress(OSError, RefusedExportError):
                for line in _read_lines(path):
                    document = parse_body(line) or {}
                    if error := get_text(document, "error"):
                        self._add_error(case, error)
                    self._keep(case, document)

    def _add_error(self, case: str, text: str) -> None:
        with self._lock:
            errors = self._errors.setdefault(case, [])
            if text not in errors and len(errors) < MAX_ERRORS:
                errors.append(text)


def _read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a regular file, except those that are longer than an export may be.

    Raises:
        OSError: the file is of another kind, or cannot be read.
    """
    # The agent could have made a link, or a pipe that is never written to.
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return
        is_whole = True
        while line := file.readline(MAX_BYTES):
            if is_whole and line.endswith(b"\n"):
                yield line
            is_whole = line.endswith(b"\n")


def make_export_variables(environ: Mapping[str, str], url: str) -> dict[str, str]:
    """Make the variables with which a program exports to the receiver.

    Args:
        url: base URL of the receiver, to which ``/v1/traces`` is appended.
    """
    content = {name: value for name, value in _CONTENT.items() if not environ.get(name)}
    return {**content, **_EXPORTERS, "OTEL_EXPORTER_OTLP_ENDPOINT": url}


def _unpack(request: ServerRequest) -> bytes:
    body, encoding = request.body, request.get_header("content-encoding").strip().lower()
    if encoding == "gzip":
        archive = zlib.decompressobj(_GZIP_BITS)
        try:
            body = archive.decompress(body, MAX_BYTES + 1)
        except zlib.error as error:
            message = f"invalid gzip: {error}"
            raise RefusedExportError(HTTPStatus.BAD_REQUEST, _INVALID_ARGUMENT, message) from None
        if not archive.eof and len(body) <= MAX_BYTES:
            message = "invalid gzip: it is cut off"
            raise RefusedExportError(HTTPStatus.BAD_REQUEST, _INVALID_ARGUMENT, message)
    elif encoding not in ("", "identity"):
        message = "the encoding must be gzip or none"
        raise RefusedExportError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, _INVALID_ARGUMENT, message)
    if len(body) > MAX_BYTES:
        message = f"the export is larger than {MAX_BYTES // 1024**2} MiB"
        raise RefusedExportError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _OUT_OF_RANGE, message)
    return body


def _decode(body: bytes, kind: str, decoder: Callable[[bytes], JsonObject]) -> JsonObject:
    if kind == PROTOBUF:
        try:
            return decoder(body)
        except ProtobufError as error:
            message = f"invalid protobuf: {error}"
            raise RefusedExportError(HTTPStatus.BAD_REQUEST, _INVALID_ARGUMENT, message) from None
    if kind != JSON_TYPE:
        message = f"the content type must be {PROTOBUF} or {JSON_TYPE}"
        raise RefusedExportError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, _INVALID_ARGUMENT, message)
    document = parse_body(body)
    if document is None:
        message = "invalid JSON: the export is not an object"
        raise RefusedExportError(HTTPStatus.BAD_REQUEST, _INVALID_ARGUMENT, message)
    return document


def _encode(document: JsonObject) -> bytes:
    try:
        # Faster than `dumps_compact`: the depth was checked when the document was parsed.
        return encode(document)
    except (TypeError, ValueError):  # an unpaired surrogate
        return dumps_compact(document).encode()


def _select(document: JsonObject, seen: set[str]) -> tuple[JsonObject, int]:
    """Drop spans that were exported before, noise, and spans without ids, which are counted."""
    rejected = 0
    batches: list[Json] = []
    for batch in get_objects(document, "resourceSpans"):
        groups: list[Json] = []
        for group in get_objects(batch, "scopeSpans"):
            spans = get_objects(group, "spans")
            usable = [span for span in spans if _get_id(span)]
            rejected += len(spans) - len(usable)
            by_id = {_get_id(span): span for span in usable}
            fresh: list[Json] = [span for id_, span in by_id.items() if id_ not in seen]
            seen.update(by_id)
            if fresh and get_text(get_object(group, "scope"), "name") not in NOISE_SCOPES:
                groups.append({**group, "spans": fresh})
        if groups:
            batches.append({**batch, "scopeSpans": groups})
    found: dict[str, Json] = {"resourceSpans": batches} if batches else {}
    if logs := document.get("resourceLogs"):
        found["resourceLogs"] = logs
    return found, rejected


def _get_id(span: JsonObject) -> str:
    """Return the identifiers of trace and span as one text, which takes less memory than two."""
    trace, own = get_text(span, "traceId"), get_text(span, "spanId")
    return f"{trace}:{own}".lower() if trace and own else ""


def _make_response(kind: str, status: HTTPStatus, content: bytes) -> ServerResponse:
    headers = {"Content-Type": PROTOBUF if kind == PROTOBUF else JSON_TYPE}
    return ServerResponse(status=status, headers=headers, chunks=[content], length=len(content))


def _make_success(kind: str, path: str, rejected: int) -> bytes:
    """Make the response to an export; ``partial_success`` is unset if all spans were stored."""
    message = "spans without trace id or span id were rejected"
    if not rejected or path not in _DECODERS:
        return b"" if kind == PROTOBUF else b"{}"
    if kind == PROTOBUF:
        partial = b"\x08" + _make_varint(rejected) + _make_field(2, message.encode())
        return _make_field(1, partial)
    success = {"rejectedSpans": str(rejected), "errorMessage": message}
    return json.dumps({"partialSuccess": success}).encode()


def _make_status(kind: str, error: RefusedExportError) -> bytes:
    """Make a ``google.rpc.Status``: the code is field 1, the message field 2."""
    if kind == PROTOBUF:
        return b"\x08" + _make_varint(error.code) + _make_field(2, str(error).encode())
    return json.dumps({"code": error.code, "message": str(error)}).encode()


def _make_field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _make_varint(len(content)) + content


def _make_varint(number: int) -> bytes:
    return bytes(_iterate_varint(number))


def _iterate_varint(number: int) -> Iterator[int]:
    while number > 0x7F:  # noqa: PLR2004 (seven bits a byte)
        yield number & 0x7F | 0x80
        number >>= 7
    yield number


def drop_signal_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the addresses of single signals."""
    return {name: value for name, value in environ.items() if name not in SIGNAL_VARIABLES}
