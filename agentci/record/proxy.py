"""A proxy of model APIs: forwards requests with the client's own key, and records them."""

import http.client
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import requests
import requests.adapters
from urllib3 import PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, ProtocolError

from agentci._util.http import HttpLimits
from agentci._util.http_transport import classify_http_error, parse_address
from agentci.errors import FetchError
from agentci.model.values import replace
from agentci.record.apis import openai_chat
from agentci.record.apis.registry import API_VARIABLES, SUFFIXES, find_address, find_api_or_other
from agentci.record.exchanges import ExchangeLog, OpenExchange
from agentci.record.http_server import (
    MAX_DIGITS,
    IncompleteBodyError,
    ServerRequest,
    ServerResponse,
    make_json_response,
)
from agentci.record.redaction import RecordingRedactor

CONNECT_SECONDS: Final = 30.0
# Models think for minutes, and clients have limits of their own.
SILENCE_SECONDS: Final = 1800.0
CHUNK_BYTES: Final = 64 * 1024
MAX_CONNECTIONS: Final = 64
# Responses such as `100 Continue` and `103 Early Hints` before the one to a request.
MAX_INFORMATIONAL: Final = 16
_NO_BODY: Final = frozenset({204, 304})
# Headers of one connection, which a proxy does not pass on.
_HOP_HEADERS: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_REQUEST_HEADERS: Final = _HOP_HEADERS | {"host", "accept-encoding", "content-length", "expect"}
WEBSOCKET_MESSAGE: Final = (
    "agentci record: websockets are not recorded; use the HTTP transport of the client"
)


class RecordingProxy:
    """Forwards requests to the address of their route; thread-safe.

    Args:
        upstreams: base URLs by route; the paths of clients follow their suffix.
        log: records the exchanges.
        redactor: learns the keys that pass through.
        report: prints a line, such as that a service cannot be reached.
    """

    def __init__(
        self,
        upstreams: Mapping[str, str],
        log: ExchangeLog,
        redactor: RecordingRedactor,
        report: Callable[[str], None],
    ) -> None:
        self._upstreams = upstreams
        self._log = log
        self._redactor = redactor
        self._report = report
        self._session = requests.Session()
        self._adapter = _Adapter(MAX_CONNECTIONS, MAX_CONNECTIONS)
        self._settings: dict[str, Mapping[str, Any]] = {}

    def close(self) -> None:
        """Close the connections to services."""
        self._adapter.close()
        self._session.close()

    def respond(self, request: ServerRequest) -> ServerResponse:
        """Forward a request, and record it."""
        upstream = self._upstreams.get(request.route)
        if upstream is None:
            return make_json_response(HTTPStatus.NOT_FOUND, openai_chat.make_error("not found"))
        request = replace(request, path=request.path.removeprefix(SUFFIXES[request.route]))
        upstream = find_address(upstream, request.path)
        api = find_api_or_other(request.method, request.path)
        if request.get_header("upgrade"):
            self._report(WEBSOCKET_MESSAGE)
            error = api.make_error(WEBSOCKET_MESSAGE)
            return make_json_response(HTTPStatus.NOT_IMPLEMENTED, error)
        self._redactor.learn_headers(request.headers)
        exchange = self._log.begin(request, api)
        try:
            response = self._send(upstream, request)
        except (OSError, HTTPError) as error:  # errors of requests are OSErrors
            return self._answer_failure(error, upstream, exchange)
        return self._pass_on(response, request, exchange)

    def _send(self, upstream: str, request: ServerRequest) -> requests.Response:
        query = f"?{request.query}" if request.query else ""
        url = f"{upstream}{request.path}{query}"
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _REQUEST_HEADERS}
        prepared = requests.Request(request.method, url, headers, data=request.body).prepare()
        prepared.headers["Accept-Encoding"] = "identity"
        settings = self._find_settings(upstream)
        return self._adapter.send(
            prepared,
            stream=True,
            timeout=(CONNECT_SECONDS, SILENCE_SECONDS),
            verify=settings["verify"],
            cert=settings["cert"],
            proxies=settings["proxies"],
        )

    def _find_settings(self, upstream: str) -> Mapping[str, Any]:
        """Return the proxies and certificates that the environment names for an address."""
        found = self._settings.get(upstream)
        if found is None:
            found = self._session.merge_environment_settings(
                upstream, proxies={}, stream=True, verify=None, cert=None
            )
            found["verify"] = True if found["verify"] is None else found["verify"]
            self._settings[upstream] = found
        return found

    def _answer_failure(
        self, error: Exception, upstream: str, exchange: OpenExchange
    ) -> ServerResponse:
        message = f"agentci record: {_explain_failure(error, upstream)}"
        self._report(message)
        response = make_json_response(HTTPStatus.BAD_GATEWAY, exchange.api.make_error(message))
        exchange.begin_response(response.status, _lower(response.headers))
        exchange.add_content(b"".join(response.chunks))
        self._log.end(exchange, finished=True)
        return response

    def _pass_on(
        self, response: requests.Response, request: ServerRequest, exchange: OpenExchange
    ) -> ServerResponse:
        headers = {k: v for k, v in response.headers.items() if k.lower() not in _HOP_HEADERS}
        length = headers.pop("Content-Length", None) or headers.pop("content-length", None)
        if response.status_code in _NO_BODY:
            length = "0"
        exchange.begin_response(response.status_code, _lower(headers))
        return ServerResponse(
            status=response.status_code,
            headers=headers,
            chunks=self._read_body(response, exchange, is_empty=request.method == "HEAD"),
            length=None if length is None else _parse_length(length),
        )

    def _read_body(
        self, response: requests.Response, exchange: OpenExchange, *, is_empty: bool
    ) -> Iterator[bytes]:
        """Yield the body as it comes; ends early with GeneratorExit if the client is gone."""
        finished = False
        try:
            while not is_empty and (chunk := response.raw.read1(CHUNK_BYTES, decode_content=False)):
                exchange.add_content(chunk)
                yield chunk
            finished = True
        except (OSError, HTTPError) as error:
            raise IncompleteBodyError from error
        finally:
            if finished:
                response.raw.release_conn()  # for the next request
            else:
                response.close()
            self._log.end(exchange, finished=finished)


class _FinalResponse(http.client.HTTPResponse):
    """A final response; informational ones before it are skipped."""

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(MAX_INFORMATIONAL):
            found: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            if found[1] >= HTTPStatus.OK or found[1] == HTTPStatus.SWITCHING_PROTOCOLS:
                return found
            http.client.parse_headers(self.fp)
        message = f"more than {MAX_INFORMATIONAL} informational responses"
        raise ProtocolError(message)


class _Resending(HTTPConnection):
    """A connection that sends a request again if the server closed it in the meantime.

    A server may close an idle connection while the next request is on its way, and then has not
    read it. So a request on a reused connection that gets no response is sent once more, on a new
    connection.
    """

    response_class = _FinalResponse  # type: ignore[mutable-override]
    _again: Callable[[], None] | None = None

    def request(self, *args: Any, **options: Any) -> None:
        """Send a request."""
        send = partial(super().request, *args, **options)
        self._again = None if self.sock is None else send
        try:
            send()
        except (BrokenPipeError, ConnectionResetError):
            if self._again is None:
                raise
            self._send_again(self._again)

    def getresponse(self) -> Any:
        """Return the response."""
        try:
            return super().getresponse()
        except ConnectionResetError:  # also if the server closed it without a response
            if self._again is None:
                raise
            self._send_again(self._again)
            return super().getresponse()

    def _send_again(self, send: Callable[[], None]) -> None:
        self._again = None
        self.close()
        send()


class _ResendingTls(_Resending, HTTPSConnection):
    """The same over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Resending  # type: ignore[mutable-override]


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _ResendingTls  # type: ignore[mutable-override]


_POOLS: Final = {"http": _Pool, "https": _TlsPool}


class _Adapter(requests.adapters.HTTPAdapter):
    """Sends requests by these connections."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the manager of connections."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> PoolManager:
        """Return the manager of connections through a company's proxy."""
        manager: PoolManager = super().proxy_manager_for(proxy, **options)
        if not proxy.lower().startswith("socks"):  # whose connections are of another kind
            manager.pool_classes_by_scheme = _POOLS
        return manager


def make_api_variables(
    environ: Mapping[str, str], make_url: Callable[[str], str]
) -> dict[str, str]:
    """Make the variables that direct a program to the proxy.

    Args:
        make_url: makes the proxy's base URL of a route.
    """
    hosts = "127.0.0.1,localhost"
    unproxied = {
        name: ",".join(filter(None, (environ.get(name, ""), hosts)))
        for name in ("NO_PROXY", "no_proxy")
    }
    return unproxied | {
        each.name: make_url(each.route) + each.find_suffix(environ)
        for each in API_VARIABLES
        if each.is_set_for(environ)
    }


def find_upstreams(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the base URL of each route: that of its variable, else the vendor's."""
    found = {each.route: each.find_upstream(environ) for each in API_VARIABLES}
    return {route: upstream for route, upstream in found.items() if upstream}


def _explain_failure(error: Exception, upstream: str) -> str:
    try:
        address = parse_address(upstream, unencrypted=True)
    except FetchError as invalid:
        return str(invalid)
    limits = HttpLimits(connect_seconds=CONNECT_SECONDS, silence_seconds=SILENCE_SECONDS)
    found = classify_http_error(error, address, limits)
    reason = str(found) if address.shown in str(found) else f"{address.shown}: {found}"
    return f"{reason}; {found.hint}" if found.hint else reason


def _parse_length(text: str) -> int | None:
    """Parse a ``Content-Length``; None if it is invalid: the body is then sent in chunks."""
    is_number = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
    return int(text) if is_number else None


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
