"""AgentV's target proxy: a local HTTP server through which one program can call a model.

Responses use the member names of all AgentV versions at once: ``outputMessages`` and ``output``,
``target`` and ``provider``.
"""

import hmac
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException, parse_headers
from io import BytesIO
from typing import Final

from msgspec import Struct

from agentci._util.text.json_text import describe_json_error
from agentci.errors import EvaluatorError, SkippedError
from agentci.execution.executor_api import ProgramJob
from agentci.judges.judge import Judge
from agentci.model.judges import JudgePrompt, ModelAccess, ModelResponse
from agentci.model.values import Json, JsonObject, replace

NO_QUESTION: Final = "Missing required field: question"
NO_REQUESTS: Final = "Missing required field: requests (array)"
SHUTTING_DOWN: Final = "Proxy is shutting down"
# Parsed JSON takes up to 30 times the size of its text. The lock keeps at most one parsed body
# in memory, and none while a model is called.
PARSE_LOCK: Final = threading.Lock()


class ProxyRequest(Struct, frozen=True, kw_only=True):
    """A received request.

    Attributes:
        path: with its query.
        authorization: the header of that name; empty without one.
    """

    method: str
    path: str
    authorization: str = ""
    body: bytes = b""


class ProxyResponse(Struct, frozen=True, kw_only=True):
    """The response to a request.

    Attributes:
        content: a JSON object; None for no body.
    """

    status: HTTPStatus
    content: JsonObject | None


class _ModelQuestion(Struct, frozen=True, kw_only=True):
    """One question; values that are missing or not a string are empty."""

    question: str
    system: str
    target: str


class ProxyRefusalError(Exception):
    """A refused request, with the status and the reason."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        self.status = status
        super().__init__(why)


class ProxyTarget:
    """A model that one program may call; thread-safe.

    Args:
        ask: calls the model; raises EvaluatorError if there is no response.
        name: of the model.
        token: known only to the program.
        max_calls: limit of calls; failed calls count.
    """

    def __init__(
        self, ask: Callable[[JudgePrompt], ModelResponse], *, name: str, token: str, max_calls: int
    ) -> None:
        self._ask = ask
        self._name = name
        self._authorization = f"Bearer {token}".encode()
        self._max_calls = max_calls
        self._calls = 0
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Refuse further calls."""
        self._closed = True

    def respond(self, request: ProxyRequest) -> ProxyResponse:
        """Handle a request."""
        if request.method == "OPTIONS":
            return ProxyResponse(status=HTTPStatus.NO_CONTENT, content=None)
        try:
            return ProxyResponse(status=HTTPStatus.OK, content=self._handle(request))
        except ProxyRefusalError as error:
            return make_error_response(error)

    def _handle(self, request: ProxyRequest) -> JsonObject:
        authorization = request.authorization.encode("utf-8", "replace")
        if not hmac.compare_digest(authorization, self._authorization):
            raise ProxyRefusalError(HTTPStatus.UNAUTHORIZED, "Unauthorized")
        if self._closed:
            raise ProxyRefusalError(HTTPStatus.SERVICE_UNAVAILABLE, SHUTTING_DOWN)
        match request.method, request.path:
            case "GET", "/info":
                return {
                    "targetName": self._name,
                    "provider": self._name,
                    "providerLabel": self._name,
                    "maxCalls": self._max_calls,
                    "callCount": self._calls,
                    "availableTargets": [self._name],
                    "availableProviderLabels": [self._name],
                }
            case "POST", "/invoke":
                self._check_call_limit(1, f"Max calls exceeded (limit: {self._max_calls})")
                with PARSE_LOCK:
                    question = _parse_question(_parse_object(request.body))
                return self._ask_model(question)
            case "POST", "/invokeBatch":
                with PARSE_LOCK:
                    questions = self._parse_batch(_parse_object(request.body))
                return {"responses": [self._ask_for_batch(each) for each in questions]}
            case _:
                raise ProxyRefusalError(HTTPStatus.NOT_FOUND, "Not found")

    def _parse_batch(self, body: Mapping[str, Json]) -> Sequence[_ModelQuestion]:
        requests = body.get("requests")
        if not isinstance(requests, list):
            raise ProxyRefusalError(HTTPStatus.BAD_REQUEST, NO_REQUESTS)
        message = f"current: {self._calls}, batch: {len(requests)}, limit: {self._max_calls}"
        self._check_call_limit(len(requests), f"Batch would exceed max calls ({message})")
        return [_parse_question(_mapping_or_empty(each)) for each in requests]

    def _ask_for_batch(self, question: _ModelQuestion) -> JsonObject:
        try:
            return self._ask_model(question)
        except ProxyRefusalError as error:
            return {"outputMessages": [], "output": [], "rawText": f"Error: {error}"}

    def _ask_model(self, question: _ModelQuestion) -> JsonObject:
        if not question.question:
            raise ProxyRefusalError(HTTPStatus.BAD_REQUEST, NO_QUESTION)
        if question.target not in {"", self._name}:
            why = f"Unknown target '{question.target}'. Available: {self._name}"
            raise ProxyRefusalError(HTTPStatus.BAD_REQUEST, why)
        self._count_call()
        prompt = JudgePrompt(system=question.system, user=question.question, schema=None)
        try:
            return _format_model_response(self._ask(prompt))
        except EvaluatorError as error:
            raise ProxyRefusalError(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)) from None

    def _check_call_limit(self, calls: int, why: str) -> None:
        if self._calls + calls > self._max_calls:
            raise ProxyRefusalError(HTTPStatus.TOO_MANY_REQUESTS, why)

    def _count_call(self) -> None:
        """Count a call; check the limit again, as other threads may have made calls since."""
        if self._closed:
            raise ProxyRefusalError(HTTPStatus.SERVICE_UNAVAILABLE, SHUTTING_DOWN)
        with self._lock:
            self._check_call_limit(1, f"Max calls exceeded (limit: {self._max_calls})")
            self._calls += 1


def make_error_response(error: ProxyRefusalError) -> ProxyResponse:
    """Build the response to a refused request."""
    return ProxyResponse(status=error.status, content={"error": str(error)})


def _parse_object(body: bytes) -> Mapping[str, Json]:
    """Parse a body; empty if it is not an object."""
    try:
        return _mapping_or_empty(json.loads(body.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        why = f"the body is not JSON: {describe_json_error(error)}"
        raise ProxyRefusalError(HTTPStatus.INTERNAL_SERVER_ERROR, why) from None


def _parse_question(body: Mapping[str, Json]) -> _ModelQuestion:
    question, system = body.get("question"), body.get("systemPrompt")
    return _ModelQuestion(
        question=question if isinstance(question, str) else "",
        system=system if isinstance(system, str) else "",
        target=str(body.get("target") or body.get("provider") or ""),
    )


def _mapping_or_empty(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _format_model_response(response: ModelResponse) -> JsonObject:
    messages: list[Json] = [{"role": "assistant", "content": response.text}]
    message: dict[str, Json] = {
        "outputMessages": messages,
        "output": messages,
        "rawText": response.text,
    }
    if response.tokens_in is not None and response.tokens_out is not None:
        message["tokenUsage"] = {"input": response.tokens_in, "output": response.tokens_out}
    return message


HOST: Final = "127.0.0.1"
# Limit of open connections; further ones wait in the backlog.
MAX_CONNECTIONS: Final = 16
BACKLOG: Final = 64
MAX_SECONDS: Final = 30.0
MAX_SHUTDOWN_SECONDS: Final = 1.0
MAX_HEAD_BYTES: Final = 64 * 1024
MAX_BODY_BYTES: Final = 10 * 1024**2
CHUNK_BYTES: Final = 64 * 1024
# How long to read a refused request, so that the client receives the response.
DRAIN_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 0.05

END_OF_HEAD: Final = b"\r\n\r\n"
CONTINUE_RESPONSE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
RESPONSE_HEADERS: Final = (
    "Access-Control-Allow-Origin: *",
    "Access-Control-Allow-Methods: GET, POST, OPTIONS",
    "Access-Control-Allow-Headers: Content-Type, Authorization",
    "Connection: close",
)


@contextmanager
def serve_target(target: ProxyTarget, *, max_seconds: float = MAX_SECONDS) -> Iterator[int]:
    """Serve ``target`` at a port of this machine while the block runs.

    Args:
        max_seconds: time limit for receiving a request, and again for sending the response.

    Raises:
        OSError: no port is available.
    """
    server = _ProxyServer(target, max_seconds)
    try:
        yield server.port
    finally:
        target.close()
        server.close()


class _ProxyServer:
    def __init__(self, target: ProxyTarget, max_seconds: float) -> None:
        self._target = target
        self._max_seconds = max_seconds
        self._listener = socket.create_server((HOST, 0), backlog=BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self._free_slots = threading.Semaphore(MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._closing = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Stop accepting and close all connections, without waiting for a model's response."""
        self._closing = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() would not
        self._free_slots.release()
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._accepting.join(MAX_SHUTDOWN_SECONDS)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            self._free_slots.acquire()
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closing:
                    return
                self._free_slots.release()
                time.sleep(PAUSE_SECONDS)  # there may be too many open files
                continue
            with self._lock:
                self._connections.add(connection)
            threading.Thread(
                target=self._handle_connection, args=(connection,), daemon=True
            ).start()

    def _handle_connection(self, connection: socket.socket) -> None:
        try:
            with suppress(OSError):  # the client disconnected or is too slow
                self._handle_request(_ProxyConnection(connection, self._max_seconds))
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()
            self._free_slots.release()

    def _handle_request(self, connection: "_ProxyConnection") -> None:
        try:
            request = connection.read_request()
        except ProxyRefusalError as error:
            connection.send_response(make_error_response(error), to="")
            connection.drain()
        else:
            connection.send_response(self._target.respond(request), to=request.method)


class _ProxyConnection:
    def __init__(self, connection: socket.socket, max_seconds: float) -> None:
        self._connection = connection
        self._max_seconds = max_seconds
        self._until = time.monotonic() + max_seconds
        self._received = bytearray()

    def read_request(self) -> ProxyRequest:
        """Read the request.

        Raises:
            OSError: it does not arrive, or not in time.
            ProxyRefusalError: it is invalid or too large.
        """
        while END_OF_HEAD not in self._received:
            if len(self._received) > MAX_HEAD_BYTES:
                raise ProxyRefusalError(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too large"
                )
            self._receive()
        head, _, body = bytes(self._received).partition(END_OF_HEAD)
        first, _, rest = head.partition(b"\r\n")
        try:
            method, path, _ = first.decode("latin-1").split(" ")
            headers = parse_headers(BytesIO(rest + END_OF_HEAD))
        except (ValueError, HTTPException):
            raise ProxyRefusalError(HTTPStatus.BAD_REQUEST, "this is not HTTP/1.1") from None
        return ProxyRequest(
            method=method,
            path=path,
            authorization=headers.get("Authorization", ""),
            body=self._read_body(headers, len(self._received) - len(body)),
        )

    def send_response(self, response: ProxyResponse, *, to: str) -> None:
        """Send the response; ``to`` is the request method, as HEAD gets no body."""
        lines = [f"HTTP/1.1 {response.status.value} {response.status.phrase}", *RESPONSE_HEADERS]
        content = b""
        if response.content is not None:
            content = json.dumps(response.content).encode()
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        head = "\r\n".join((*lines, "", "")).encode("ascii")
        self._connection.settimeout(self._max_seconds)
        self._connection.sendall(head if to == "HEAD" else head + content)

    def drain(self) -> None:
        """Read and drop the rest of the request: closing at once would discard the response."""
        self._connection.shutdown(socket.SHUT_WR)
        self._until = time.monotonic() + DRAIN_SECONDS
        while True:
            self._receive()
            self._received.clear()

    def _read_body(self, headers: Message, begun: int) -> bytes:
        length = headers.get("Content-Length", "0")
        if "Transfer-Encoding" in headers:
            raise ProxyRefusalError(
                HTTPStatus.LENGTH_REQUIRED, "send the Content-Length of the body"
            )
        if not (length.isascii() and length.isdigit()):
            raise ProxyRefusalError(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        if len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
            why = f"the body is larger than {MAX_BODY_BYTES // 1024**2} MiB"
            raise ProxyRefusalError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        if "Expect" in headers:
            self._connection.sendall(CONTINUE_RESPONSE)
        end = begun + int(length)
        while len(self._received) < end:
            self._receive()
        return bytes(self._received[begun:end])

    def _receive(self) -> None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        chunk = self._connection.recv(CHUNK_BYTES)
        if not chunk:
            raise ConnectionAbortedError
        self._received += chunk


TOKEN_BYTES: Final = 32
# The names that older and newer versions of AgentV's SDKs read.
VARIABLE_PREFIXES: Final = ("AGENTV_TARGET_PROXY", "AGENTV_PROVIDER_PROXY")
# Hosts that are not reached through a company's proxy.
NO_PROXY_VARIABLES: Final = ("NO_PROXY", "no_proxy")


@contextmanager
def open_judge_proxy(job: ProgramJob, access: ModelAccess, judge: Judge) -> Iterator[ProgramJob]:
    """Yield the job of a program with the address of a proxy that runs during the block.

    Raises:
        EvaluatorError: no port is available; the message continues "Evaluator `x` ...".
        SkippedError: the program called the model, which this run cannot do, e.g. without a key.
    """
    settings = access.judge.settings
    skipped: list[SkippedError] = []

    def ask(question: JudgePrompt) -> ModelResponse:
        # The program's own time limit ends earlier, since it started before the call.
        try:
            return judge.generate_text(question, settings, seconds=job.timeout_seconds)
        except SkippedError as error:
            skipped.append(error)
            raise EvaluatorError(str(error)) from None

    token = os.urandom(TOKEN_BYTES).hex()
    name = settings.model or settings.provider
    target = ProxyTarget(ask, name=name, token=token, max_calls=access.max_calls)
    with ExitStack() as stack:
        try:
            port = stack.enter_context(serve_target(target))
        except OSError as error:
            raise EvaluatorError(
                f"could not be given a port for calls of its model: {error}"
            ) from None
        values = {"URL": f"http://{HOST}:{port}", "TOKEN": token}
        variables = {
            f"{p}_{name}": value for p in VARIABLE_PREFIXES for name, value in values.items()
        }
        yield replace(
            job,
            environment={**job.environment, **_bypass_proxy(job.environment, HOST), **variables},
            sandbox_policy=replace(job.sandbox_policy, port=port),
        )
    if skipped:
        raise skipped[0]


def _bypass_proxy(environment: Mapping[str, str], host: str) -> Mapping[str, str]:
    """Return the variables with which a program reaches ``host`` without a company's proxy."""
    given = {environment.get(name, "") for name in NO_PROXY_VARIABLES}
    return dict.fromkeys(NO_PROXY_VARIABLES, ",".join(sorted({*given, host} - {""})))
