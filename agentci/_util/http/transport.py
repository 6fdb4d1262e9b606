"""Sends one HTTP request, follows its redirects, and reads the response within limits."""

import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import requests
from msgspec import Struct
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectTimeout, InvalidSchema, InvalidURL, ProxyError
from urllib3.exceptions import HTTPError, LocationValueError, NewConnectionError

from agentci._util.http.addresses import REDIRECT_HINT, HttpAddress, parse_address, resolve_redirect
from agentci._util.http.interface import HttpLimits, HttpResponse
from agentci._util.http.retries import NETWORK_HINT, RetryableError, find_retryable_error
from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count, format_number
from agentci.errors import FetchError, PermanentFetchError, UnreachableError
from agentci.version import __version__

TLS_HINT: Final = (
    "does a company's proxy stand between?"
    " then name the file of its certificates in REQUESTS_CA_BUNDLE"
)
PROXY_HINT: Final = "see HTTPS_PROXY and NO_PROXY"
NAME_HINT: Final = "see whether the name is right, and whether this machine has a network"
MAX_REASON: Final = 200


def classify_http_error(
    error: Exception, who: str, address: HttpAddress, limits: HttpLimits
) -> FetchError | RetryableError:
    """What an error of requests, of urllib3 or of a socket means for whoever wants the document.

    Args:
        who: failed; the start of the sentence.
    """
    causes = tuple(_iterate_causes(error))
    return _find_permanent_error(causes, address) or _make_retryable_error(causes, who, limits)


def _find_permanent_error(
    causes: tuple[BaseException, ...], address: HttpAddress
) -> FetchError | None:
    """What would be the same another time."""
    for cause in causes:
        match cause:
            # The other side hung up in the middle: that is a broken connection as any other.
            case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
                pass
            case ssl.SSLError():
                reason = (
                    f"{address.shown} cannot be trusted: TLS failed ({_format_tls_reason(cause)})"
                )
                return UnreachableError(reason, hint=TLS_HINT)
            case InvalidSchema() | InvalidURL():  # of the proxy: ours was looked at before
                reason = f"{address.shown} is behind a proxy whose address is not understood"
                return UnreachableError(reason, hint=PROXY_HINT)
            case LocationValueError():
                return PermanentFetchError(f"{address.shown} is not a URL", hint=NAME_HINT)
            case _:
                pass
    return None


def _make_retryable_error(
    causes: tuple[BaseException, ...], who: str, limits: HttpLimits
) -> RetryableError:
    """What may be better another time; the most telling of the causes says what it was."""
    for kind, said, hint in (
        (ProxyError, "could not be reached through the proxy", PROXY_HINT),
        (socket.gaierror, "has a name that was not found", NAME_HINT),
        (ConnectionRefusedError, "refused the connection", NETWORK_HINT),
        (ConnectTimeout, _format_silence("let nobody in", limits.connect_seconds), NETWORK_HINT),
        (NewConnectionError, "could not be connected to", NETWORK_HINT),
        (TimeoutError, _format_silence("sent nothing", limits.silence_seconds), NETWORK_HINT),
    ):
        if any(isinstance(cause, kind) for cause in causes):
            return RetryableError(f"{who} {said}", hint=hint, arrived=kind is TimeoutError)
    return RetryableError(f"{who} broke off its answer", hint=NETWORK_HINT)


def _format_silence(said: str, seconds: float) -> str:
    return f"{said} for {format_number(seconds)} s"


def _format_tls_reason(error: ssl.SSLError) -> str:
    """What OpenSSL says, without the line of its source that says it."""
    said = getattr(error, "verify_message", None) or (error.reason or "").replace("_", " ").lower()
    return truncate.short(escape.flatten_line(said or "no reason given"), MAX_REASON)


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """An error and all that are inside: each library wraps in a way of its own."""
    waiting, seen = [error], set[int]()
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        inside = (cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args)
        waiting += [each for each in inside if isinstance(each, BaseException)]


# At once; a drip of bytes is passed on as it comes.
CHUNK_BYTES: Final = 64 * 1024
MAX_ENCODING_SHOWN: Final = 40
_LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)
_SUCCESSES: Final = range(200, 300)
_EMPTY: Final = frozenset({204, 304})


class ResponseBody(Struct, frozen=True, kw_only=True):
    """What follows the headers of an answer.

    Attributes:
        who: sends it; the start of a sentence.
        raw: the answer as urllib3 has it.
        unwanted: tells that nobody waits for it any more.
    """

    address: HttpAddress
    who: str
    status: int
    headers: Mapping[str, str]
    raw: Any
    unwanted: Callable[[], bool]

    def read(self, limit_bytes: int) -> bytes:
        """All of it; of an answer that is no success, as much as the limit lets through.

        Raises:
            RefusedError: it is larger, or packed.
            PassingError: it is not whole.
        """
        if self.status in _EMPTY:
            return self._take(0, limit_bytes)
        if self._is_packed():
            return b""
        length = self._length()
        if length is not None and length > limit_bytes:
            self._refuse(f"is {format_count(length, 'byte')}", limit_bytes)
        content = self._take(length, limit_bytes)
        if len(content) > limit_bytes:
            self._refuse("has no end in sight", limit_bytes)
        return content[:limit_bytes]

    @property
    def _is_success(self) -> bool:
        return self.status in _SUCCESSES

    def _is_packed(self) -> bool:
        """Whether it is packed, which was not asked for: nobody knows how large it is inside."""
        packing = self.headers.get("content-encoding", "identity").strip().lower()
        if packing in {"", "identity"}:
            return False
        if self._is_success:
            said = truncate.short(escape.flatten_line(packing), MAX_ENCODING_SHOWN)
            raise PermanentFetchError(
                f"{self.address.shown} comes packed ({said}), which was not asked for",
                hint="find an address that serves it as it is",
            )
        return True

    def _length(self) -> int | None:
        """How many bytes are to come; None where the server marks the end in another way."""
        said = self.headers.get("content-length")
        # Not more lenient than http.client, which has to see the same end.
        chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        if said is not None and not chunked and _LENGTH.fullmatch(said.strip(" \t")):
            return int(said)
        # Without a length, an answer that was cut off would look whole.
        if said is not None or (self._is_success and not chunked):
            raise self._broken("did not make clear how long its answer is")
        return None

    def _take(self, length: int | None, limit_bytes: int) -> bytes:
        """All that comes, but no more than a byte over the limit."""
        content = bytearray()
        while len(content) <= limit_bytes:
            left = CHUNK_BYTES if length is None else length - len(content)
            if left == 1 and self._has_excess():
                raise self._broken("sent more than it had announced")
            # The last byte alone: once it is read, urllib3 throws away what came behind it. And
            # once more after it, which gives the connection back.
            chunk = self.raw.read1(max(1, min(left - 1, CHUNK_BYTES)))
            if not chunk:
                break
            content += chunk
            if self.unwanted():
                raise self._broken("is not waited for any more")
        return bytes(content)

    def _has_excess(self) -> bool:
        """Whether more came with the last byte: one of the two is wrong, and nobody knows which."""
        return len(self.raw._original_response.fp.peek(2)) > 1  # noqa: SLF001 (only it can tell)

    def _refuse(self, size: str, limit_bytes: int) -> None:
        """Refuse a document; the rest of an error page is just left."""
        if self._is_success:
            limit = format_count(limit_bytes, "byte")
            raise PermanentFetchError(
                f"{self.address.shown} {size}, and {limit} are accepted",
                hint="see whether it is the right address; keep data and models elsewhere",
            )

    def _broken(self, said: str) -> RetryableError:
        return RetryableError(f"{self.who} {said}", hint=NETWORK_HINT)


# How many hosts, and how many connections to each, are kept open for the next document.
KEPT_HOSTS: Final = 16
KEPT_CONNECTIONS: Final = 16

OUR_HEADERS: Final = {"Accept-Encoding": "identity", "User-Agent": f"agentci/{__version__}"}
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What is asked for.

    Attributes:
        method: of HTTP.
        content: is sent along; None where there is none.
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
    """Look at what is asked for before anybody is asked.

    Args:
        method: of HTTP; by default content is posted, and a document is got.
        unencrypted: whether http will do for other machines, too.

    Raises:
        RefusedError: it cannot be asked for.
    """
    for name, value in headers.items():
        # Not shown: it may be a token.
        if not (_HEADER_NAME.fullmatch(name) and value.isascii() and value.isprintable()):
            raise PermanentFetchError(
                "a header holds what cannot be sent in one",
                hint="see whether a token ends in a line end or holds other foreign characters",
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
    """Asks servers once each, over connections that it keeps; from any number of threads."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        # Not a session's own way to send: it reads redirects of any size, and looks into ~/.netrc.
        self._session = requests.Session()
        self._adapter = HTTPAdapter(KEPT_HOSTS, KEPT_CONNECTIONS)

    def fetch(self, wish: HttpRequest, unwanted: Callable[[], bool]) -> HttpResponse:
        """Ask, and follow redirects.

        Args:
            unwanted: tells that nobody waits for it any more.

        Raises:
            PassingError: another try may do better.
            FetchError: it would not.
        """
        address, who = wish.address, "it"
        for _ in range(self._limits.redirects + 1):
            answer = self._ask(address, who, wish, unwanted)
            if isinstance(answer, HttpResponse):
                return answer
            address, who = answer, f"it redirects to {answer.shown}, which"
        raise PermanentFetchError(
            f"{wish.address.shown} redirects more than {self._limits.redirects} times",
            hint=REDIRECT_HINT,
        )

    def send_once(self, wish: HttpRequest, unwanted: Callable[[], bool]) -> HttpResponse:
        """Ask, and return whatever is answered: nothing is followed, no status is a failure.

        Args:
            unwanted: tells that nobody waits for it any more.

        Raises:
            PassingError: no whole answer came; another try may do better.
            FetchError: it would not.
        """
        with self._answer(wish.address, "it", wish) as (answer, headers):
            return _read_response(answer, headers, wish, wish.address, "it", unwanted)

    def send_checked(self, wish: HttpRequest, unwanted: Callable[[], bool]) -> HttpResponse:
        """As ``once``, but for what a status says that another try may mend.

        Raises:
            PassingError: another try may do better.
            FetchError: it would not.
        """
        response = self.send_once(wish, unwanted)
        if failure := find_retryable_error(
            "it", response.status, response.headers, now=time.time()
        ):
            raise failure
        return response

    def _ask(
        self, address: HttpAddress, who: str, wish: HttpRequest, unwanted: Callable[[], bool]
    ) -> HttpResponse | HttpAddress:
        """An answer, or where to ask instead."""
        with self._answer(address, who, wish) as (answer, headers):
            status = answer.status_code
            if failure := find_retryable_error(who, status, headers, now=time.time()):
                raise failure
            if status in _REDIRECTS and "location" in headers:
                return resolve_redirect(address, headers["location"])
            return _read_response(answer, headers, wish, address, who, unwanted)

    @contextmanager
    def _answer(
        self, address: HttpAddress, who: str, wish: HttpRequest
    ) -> Iterator[tuple[requests.Response, Mapping[str, str]]]:
        """An answer whose body is still to come, and its headers by name in lower case."""
        try:
            with closing(self._send(address, wish)) as answer:
                yield answer, {name.lower(): value for name, value in answer.headers.items()}
        except (OSError, HTTPError) as error:  # those of requests are OSErrors
            raise classify_http_error(error, who, address, self._limits) from error

    def _send(self, address: HttpAddress, wish: HttpRequest) -> requests.Response:
        request = requests.Request(wish.method, address.url, data=wish.content).prepare()
        if address.origin == wish.address.origin:
            request.headers.update(wish.headers)
        request.headers.update(OUR_HEADERS)
        settings = self._session.merge_environment_settings(
            address.url, proxies={}, stream=True, verify=None, cert=None
        )
        verify = True if settings["verify"] is None else settings["verify"]
        if isinstance(verify, str) and not os.access(verify, os.R_OK):
            raise UnreachableError(
                f"{address.shown} is not asked for: the certificates in {verify} cannot be read",
                hint="correct REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE, or leave it out",
            )
        return self._adapter.send(
            request,
            stream=True,
            timeout=(self._limits.connect_seconds, self._limits.silence_seconds),
            verify=verify,
            # A proxy has a loopback of its own.
            proxies={} if address.is_loopback else settings["proxies"],
        )


def _read_response(
    answer: requests.Response,
    headers: Mapping[str, str],
    wish: HttpRequest,
    address: HttpAddress,
    who: str,
    unwanted: Callable[[], bool],
) -> HttpResponse:
    body = ResponseBody(
        status=answer.status_code,
        headers=headers,
        raw=answer.raw,
        address=address,
        who=who,
        unwanted=unwanted,
    )
    content = body.read(wish.limit_bytes)
    return HttpResponse(status=answer.status_code, content=content, headers=headers)
