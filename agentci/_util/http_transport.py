"""Sends one HTTP request, follows its redirects, and reads the response within limits.

Addresses are https for all hosts, and http only for this machine (tests and mirrors).
"""

import ipaddress
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import requests
from msgspec import Struct
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectTimeout, InvalidSchema, InvalidURL, ProxyError
from urllib3.exceptions import HTTPError, LocationValueError, NewConnectionError

from agentci._util.http import (
    NETWORK_HINT,
    HttpLimits,
    HttpResponse,
    RetryableError,
    find_retryable_error,
)
from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count, format_number
from agentci.errors import FetchError, PermanentFetchError, UnreachableError
from agentci.version import __version__

MAX_SHOWN: Final = 200
_PORTS: Final = {"http": 80, "https": 443}
REDIRECT_HINT: Final = "use the final URL, if you trust it"
_HINT: Final = "write it as https://HOST/PATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """A checked URL.

    Attributes:
        url: as ``requests`` sends it, so that the checked host is the one connected to.
        shown: for messages; without user name, password and query, which may be secrets.
        origin: scheme, host and port that receive a request and its headers.
    """

    url: str = field(repr=False)
    shown: str
    origin: tuple[str, str, int]

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine."""
        return _is_loopback(self.host)

    @property
    def host(self) -> str:
        """The host name or IP address."""
        return self.origin[1]


def parse_address(url: str, *, unencrypted: bool = False) -> HttpAddress:
    """Parse and check a URL.

    Args:
        unencrypted: whether http is allowed for other machines, too.

    Raises:
        PermanentFetchError: it is not a URL, or not allowed.
    """
    prepared = requests.PreparedRequest()
    try:
        prepared.prepare_url(url, None)
        parts = urlsplit(prepared.url or "")
        port = parts.port
    except ValueError as error:
        raise PermanentFetchError(f"{_redact_url(url)} is not a URL", hint=_HINT) from error
    scheme, host = parts.scheme, parts.hostname or ""
    if scheme not in _PORTS or not host:
        raise PermanentFetchError(f"{_redact_url(url)} is not an http(s) URL", hint=_HINT)
    if scheme == "http" and not (unencrypted or _is_loopback(host)):
        raise PermanentFetchError(
            f"{_format_address(scheme, host, port, parts.path)} is not encrypted",
            hint="use https; http is allowed only for this machine (localhost, 127.0.0.1)",
        )
    return HttpAddress(
        url=parts._replace(fragment="").geturl(),
        shown=_format_address(scheme, host, port, parts.path),
        origin=(scheme, host, _PORTS[scheme] if port is None else port),
    )


def parse_base_url(url: str, *, unencrypted: bool = False) -> HttpAddress:
    """Parse the base URL of an API, to which paths are appended.

    Raises:
        PermanentFetchError: as for ``parse_address``, or it has further parts, which may be
            secrets.
    """
    address = parse_address(url, unencrypted=unencrypted)
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise PermanentFetchError(
            f"{address.shown} must not contain a user, password, query or fragment",
            hint="remove it; `api_key_env` names the variable with the key",
        )
    return address


def resolve_redirect(address: HttpAddress, location: str) -> HttpAddress:
    """Return the target of a redirect.

    Raises:
        PermanentFetchError: the target is not allowed.
    """
    try:
        target = parse_address(urljoin(address.url, _decode_location(location)))
    except (PermanentFetchError, ValueError) as error:
        reason = error if isinstance(error, PermanentFetchError) else "the target is not a URL"
        raise PermanentFetchError(
            f"{address.shown} redirects to a URL that is not allowed: {reason}", hint=REDIRECT_HINT
        ) from error
    if address.origin[0] == "https" != target.origin[0]:
        raise PermanentFetchError(
            f"{address.shown} redirects from https to {target.shown}, which is not encrypted",
            hint=REDIRECT_HINT,
        )
    return target


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _decode_location(location: str) -> str:
    """Decode a header that was read as Latin-1, since URLs are UTF-8 if not ASCII."""
    try:
        return location.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return location


def _format_address(scheme: str, host: str, port: int | None, path: str) -> str:
    name = f"[{host}]" if ":" in host else host
    server = name if port is None else f"{name}:{port}"
    return truncate.short(escape.flatten_line(f"{scheme}://{server}{path}"), MAX_SHOWN)


def _redact_url(url: str) -> str:
    """Return what may be shown of an unparsed URL, whose secrets may be anywhere."""
    if any(mark in url for mark in "@?#"):
        return "the address"
    return truncate.short(escape.flatten_line(url), MAX_SHOWN)


TLS_HINT: Final = "behind a company proxy, set REQUESTS_CA_BUNDLE to the file with its certificates"
PROXY_HINT: Final = "check HTTPS_PROXY and NO_PROXY"
NAME_HINT: Final = "check the host name and the network of this machine"
MAX_REASON: Final = 200


def classify_http_error(
    error: Exception, address: HttpAddress, limits: HttpLimits
) -> FetchError | RetryableError:
    """Convert an error of requests, urllib3 or a socket."""
    causes = tuple(_iterate_causes(error))
    return _find_permanent_error(causes, address) or _make_retryable_error(causes, address, limits)


def _find_permanent_error(
    causes: tuple[BaseException, ...], address: HttpAddress
) -> FetchError | None:
    """Return the error that a retry would not fix, if any."""
    for cause in causes:
        match cause:
            # The server closed the connection early: an ordinary broken connection.
            case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
                pass
            case ssl.SSLError():
                reason = f"{address.shown}: TLS failed ({_format_tls_reason(cause)})"
                return UnreachableError(reason, hint=TLS_HINT)
            case InvalidSchema() | InvalidURL():  # about the proxy's URL: ours is already checked
                reason = f"{address.shown}: the proxy's address is invalid"
                return UnreachableError(reason, hint=PROXY_HINT)
            case LocationValueError():
                return PermanentFetchError(f"{address.shown} is not a URL", hint=NAME_HINT)
            case _:
                pass
    return None


def _make_retryable_error(
    causes: tuple[BaseException, ...], address: HttpAddress, limits: HttpLimits
) -> RetryableError:
    """Create an error that a retry may fix; the most specific cause sets its message."""
    connect, silence = (
        format_number(seconds) for seconds in (limits.connect_seconds, limits.silence_seconds)
    )
    for kind, message, hint in (
        (ProxyError, "the proxy did not connect", PROXY_HINT),
        (socket.gaierror, f"cannot resolve {address.host}", NAME_HINT),
        (ConnectionRefusedError, "connection refused", NETWORK_HINT),
        (ConnectTimeout, f"no connection within {connect} s", NETWORK_HINT),
        (NewConnectionError, "cannot connect", NETWORK_HINT),
        (TimeoutError, f"no data for {silence} s", NETWORK_HINT),
    ):
        if any(isinstance(cause, kind) for cause in causes):
            return RetryableError(message, hint=hint, arrived=kind is TimeoutError)
    return RetryableError("the response is incomplete", hint=NETWORK_HINT)


def _format_tls_reason(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason, without its source location."""
    reason = (
        getattr(error, "verify_message", None) or (error.reason or "").replace("_", " ").lower()
    )
    return truncate.short(escape.flatten_line(reason or "no reason given"), MAX_REASON)


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """List an error and all errors inside: each library wraps them differently."""
    waiting, seen = [error], set[int]()
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        inside = (cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args)
        waiting += [each for each in inside if isinstance(each, BaseException)]


# Read size; fewer bytes are passed on as they arrive.
CHUNK_BYTES: Final = 64 * 1024
MAX_ENCODING_SHOWN: Final = 40
_LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)
_SUCCESSES: Final = range(200, 300)
_EMPTY: Final = frozenset({204, 304})


class ResponseBody(Struct, frozen=True, kw_only=True):
    """The body of a response.

    Attributes:
        raw: the response object of urllib3.
        abandoned: returns True once the result is no longer needed.
    """

    address: HttpAddress
    status: int
    headers: Mapping[str, str]
    raw: Any
    abandoned: Callable[[], bool]

    def read(self, limit_bytes: int) -> bytes:
        """Read the whole body; of an unsuccessful response, at most ``limit_bytes``.

        Raises:
            PermanentFetchError: it is too large or compressed.
            RetryableError: it is incomplete.
        """
        if self.status in _EMPTY:
            return self._take(0, limit_bytes)
        if self._is_compressed():
            return b""
        length = self._length()
        if length is not None and length > limit_bytes:
            self._check_too_large(f"is {format_count(length, 'byte')} long", limit_bytes)
        content = self._take(length, limit_bytes)
        if len(content) > limit_bytes:
            self._check_too_large("is too long", limit_bytes)
        return content[:limit_bytes]

    @property
    def _is_success(self) -> bool:
        return self.status in _SUCCESSES

    def _is_compressed(self) -> bool:
        """Whether it is compressed, although not requested: its real size is unknown."""
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding in {"", "identity"}:
            return False
        if self._is_success:
            shown = truncate.short(escape.flatten_line(encoding), MAX_ENCODING_SHOWN)
            raise PermanentFetchError(
                f"{self.address.shown}: the response is compressed ({shown}), but no compression"
                " was requested",
                hint="use a URL that serves it uncompressed",
            )
        return True

    def _length(self) -> int | None:
        """Return the announced size in bytes; None if the server marks the end in another way."""
        length = self.headers.get("content-length")
        # As strict as http.client, which has to find the same end.
        chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        if length is not None and not chunked and _LENGTH.fullmatch(length.strip(" \t")):
            return int(length)
        # Without a length, a truncated response would look complete.
        if length is not None or (self._is_success and not chunked):
            raise _make_invalid_response_error("the response has no clear length")
        return None

    def _take(self, length: int | None, limit_bytes: int) -> bytes:
        """Read everything, but at most one byte more than the limit."""
        content = bytearray()
        while len(content) <= limit_bytes:
            left = CHUNK_BYTES if length is None else length - len(content)
            if left == 1 and self._has_excess():
                raise _make_invalid_response_error("the response is longer than its Content-Length")
            # Read the last byte separately: after it, urllib3 discards excess bytes. One more
            # read then releases the connection.
            chunk = self.raw.read1(max(1, min(left - 1, CHUNK_BYTES)))
            if not chunk:
                break
            content += chunk
            if self.abandoned():
                raise _make_invalid_response_error("the response came too late")
        return bytes(content)

    def _has_excess(self) -> bool:
        """Whether more data follows the last byte: the length or the data is wrong."""
        return len(self.raw._original_response.fp.peek(2)) > 1  # noqa: SLF001 (no public way)

    def _check_too_large(self, size: str, limit_bytes: int) -> None:
        """Refuse a document that is too large; an error page is only truncated."""
        if self._is_success:
            limit = format_count(limit_bytes, "byte")
            raise PermanentFetchError(
                f"{self.address.shown}: the response {size}; the limit is {limit}",
                hint="check the URL; keep data and models elsewhere",
            )


def _make_invalid_response_error(message: str) -> RetryableError:
    return RetryableError(message, hint=NETWORK_HINT)


# Number of hosts, and of connections per host, that are kept open.
KEPT_HOSTS: Final = 16
KEPT_CONNECTIONS: Final = 16

OUR_HEADERS: Final = {"Accept-Encoding": "identity", "User-Agent": f"agentci/{__version__}"}
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A checked request.

    Attributes:
        method: HTTP method.
        content: body; None for none.
    """

    address: HttpAddress
    headers: Mapping[str, str] = field(repr=False)
    limit_bytes: int
    method: str
    content: bytes | None = field(default=None, repr=False)


def make_http_request(
    url: str,
    headers: Mapping[str, str],
    limit_bytes: int,
    *,
    content: bytes | None = None,
    method: str = "",
    unencrypted: bool = False,
) -> HttpRequest:
    """Check and build a request without sending it.

    Args:
        method: HTTP method; empty for POST with a body and GET without one.
        unencrypted: whether http is allowed for other machines, too.

    Raises:
        PermanentFetchError: the URL or a header is not allowed.
    """
    for name, value in headers.items():
        # The value is not shown: it may be a token.
        if not (_HEADER_NAME.fullmatch(name) and value.isascii() and value.isprintable()):
            raise PermanentFetchError(
                f"the header `{escape.flatten_line(name)}` has characters that cannot be sent",
                hint="check for line breaks and non-ASCII characters, as in a pasted token",
            )
    address = parse_address(url, unencrypted=unencrypted)
    return HttpRequest(
        address=address,
        headers=headers,
        limit_bytes=limit_bytes,
        method=method or ("GET" if content is None else "POST"),
        content=content,
    )


class HttpTransport:
    """Sends single requests over pooled connections; thread-safe."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        # Not Session.send, which reads redirects of any size and uses ~/.netrc.
        self._session = requests.Session()
        self._adapter = HTTPAdapter(KEPT_HOSTS, KEPT_CONNECTIONS)

    def fetch(self, request: HttpRequest, abandoned: Callable[[], bool]) -> HttpResponse:
        """Send a request and follow redirects.

        Args:
            abandoned: returns True once the result is no longer needed.

        Raises:
            RetryableError: a retry may succeed.
            FetchError: a retry would fail, too.
        """
        address = request.address
        for _ in range(self._limits.redirects + 1):
            try:
                response = self._fetch_or_redirect(address, request, abandoned)
            except RetryableError as error:
                if address is not request.address:
                    error.args = (f"redirected to {address.shown}: {error}",)
                raise
            if isinstance(response, HttpResponse):
                return response
            address = response
        raise PermanentFetchError(
            f"{request.address.shown} redirects more than {self._limits.redirects} times",
            hint=REDIRECT_HINT,
        )

    def send_once(self, request: HttpRequest, abandoned: Callable[[], bool]) -> HttpResponse:
        """Send a request and return any response; redirects are not followed.

        Args:
            abandoned: returns True once the result is no longer needed.

        Raises:
            RetryableError: no complete response; a retry may succeed.
            FetchError: a retry would fail, too.
        """
        with self._open(request.address, request) as (response, headers):
            return _read_response(response, headers, request, request.address, abandoned)

    def send_checked(self, request: HttpRequest, abandoned: Callable[[], bool]) -> HttpResponse:
        """Send a request like ``send_once``, but raise for statuses that a retry may fix.

        Raises:
            RetryableError: a retry may succeed.
            FetchError: a retry would fail, too.
        """
        response = self.send_once(request, abandoned)
        if failure := find_retryable_error(response.status, response.headers, now=time.time()):
            raise failure
        return response

    def _fetch_or_redirect(
        self, address: HttpAddress, request: HttpRequest, abandoned: Callable[[], bool]
    ) -> HttpResponse | HttpAddress:
        with self._open(address, request) as (response, headers):
            status = response.status_code
            if failure := find_retryable_error(status, headers, now=time.time()):
                raise failure
            if status in _REDIRECTS and "location" in headers:
                return resolve_redirect(address, headers["location"])
            return _read_response(response, headers, request, address, abandoned)

    @contextmanager
    def _open(
        self, address: HttpAddress, request: HttpRequest
    ) -> Iterator[tuple[requests.Response, Mapping[str, str]]]:
        """Yield a response with an unread body, and its headers by name in lower case."""
        try:
            with closing(self._send(address, request)) as response:
                yield response, {name.lower(): value for name, value in response.headers.items()}
        except (OSError, HTTPError) as error:  # errors of requests are OSErrors
            raise classify_http_error(error, address, self._limits) from error

    def _send(self, address: HttpAddress, request: HttpRequest) -> requests.Response:
        prepared = requests.Request(request.method, address.url, data=request.content).prepare()
        if address.origin == request.address.origin:
            prepared.headers.update(request.headers)
        prepared.headers.update(OUR_HEADERS)
        settings = self._session.merge_environment_settings(
            address.url, proxies={}, stream=True, verify=None, cert=None
        )
        verify = True if settings["verify"] is None else settings["verify"]
        if isinstance(verify, str) and not os.access(verify, os.R_OK):
            raise UnreachableError(
                f"{address.shown}: cannot read the certificates in {verify}",
                hint="correct or unset REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE",
            )
        return self._adapter.send(
            prepared,
            stream=True,
            timeout=(self._limits.connect_seconds, self._limits.silence_seconds),
            verify=verify,
            # Loopback addresses must not go through a proxy: they would mean the proxy's machine.
            proxies={} if address.is_loopback else settings["proxies"],
        )


def _read_response(
    response: requests.Response,
    headers: Mapping[str, str],
    request: HttpRequest,
    address: HttpAddress,
    abandoned: Callable[[], bool],
) -> HttpResponse:
    body = ResponseBody(
        status=response.status_code,
        headers=headers,
        raw=response.raw,
        address=address,
        abandoned=abandoned,
    )
    content = body.read(request.limit_bytes)
    return HttpResponse(status=response.status_code, content=content, headers=headers)
