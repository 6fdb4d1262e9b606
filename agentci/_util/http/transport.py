"""One try at a document: a request, the redirects after it, and what came in the end."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Final

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from agentci._util.http.addresses import REDIRECT_HINT, Address, address_of, target_of
from agentci._util.http.document import Response
from agentci._util.http.errors import failure_of
from agentci._util.http.limits import Limits
from agentci._util.http.response_body import Body
from agentci._util.http.retries import passing_answer
from agentci.errors import RefusedError, UnreachableError
from agentci.version import __version__

# How many hosts, and how many connections to each, are kept open for the next document.
KEPT_HOSTS: Final = 16
KEPT_CONNECTIONS: Final = 16

OUR_HEADERS: Final = {"Accept-Encoding": "identity", "User-Agent": f"agentci/{__version__}"}
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for.

    Attributes:
        method: of HTTP.
        content: is sent along; None where there is none.
    """

    address: Address
    headers: Mapping[str, str] = field(repr=False)
    limit_bytes: int
    method: str
    content: bytes | None = field(default=None, repr=False)


def wish_of(
    url: str,
    headers: Mapping[str, str],
    limit_bytes: int,
    *,
    content: bytes | None = None,
    method: str = "",
    unencrypted: bool = False,
) -> Wish:
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
            raise RefusedError(
                "a header holds what cannot be sent in one",
                hint="see whether a token ends in a line end or holds other foreign characters",
            )
    address = address_of(url, unencrypted=unencrypted)
    return Wish(
        address=address,
        headers=headers,
        limit_bytes=limit_bytes,
        method=method or ("GET" if content is None else "POST"),
        content=content,
    )


class Exchange:
    """Asks servers once each, over connections that it keeps; from any number of threads."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Not a session's own way to send: it reads redirects of any size, and looks into ~/.netrc.
        self._session = requests.Session()
        self._adapter = HTTPAdapter(KEPT_HOSTS, KEPT_CONNECTIONS)

    def fetch(self, wish: Wish, unwanted: Callable[[], bool]) -> Response:
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
            if isinstance(answer, Response):
                return answer
            address, who = answer, f"it redirects to {answer.shown}, which"
        raise RefusedError(
            f"{wish.address.shown} redirects more than {self._limits.redirects} times",
            hint=REDIRECT_HINT,
        )

    def once(self, wish: Wish, unwanted: Callable[[], bool]) -> Response:
        """Ask, and return whatever is answered: nothing is followed, no status is a failure.

        Args:
            unwanted: tells that nobody waits for it any more.

        Raises:
            PassingError: no whole answer came; another try may do better.
            FetchError: it would not.
        """
        with self._answer(wish.address, "it", wish) as (answer, headers):
            return _whole(answer, headers, wish, wish.address, "it", unwanted)

    def settle(self, wish: Wish, unwanted: Callable[[], bool]) -> Response:
        """As ``once``, but for what a status says that another try may mend.

        Raises:
            PassingError: another try may do better.
            FetchError: it would not.
        """
        response = self.once(wish, unwanted)
        if failure := passing_answer("it", response.status, response.headers, now=time.time()):
            raise failure
        return response

    def _ask(
        self, address: Address, who: str, wish: Wish, unwanted: Callable[[], bool]
    ) -> Response | Address:
        """An answer, or where to ask instead."""
        with self._answer(address, who, wish) as (answer, headers):
            status = answer.status_code
            if failure := passing_answer(who, status, headers, now=time.time()):
                raise failure
            if status in _REDIRECTS and "location" in headers:
                return target_of(address, headers["location"])
            return _whole(answer, headers, wish, address, who, unwanted)

    @contextmanager
    def _answer(
        self, address: Address, who: str, wish: Wish
    ) -> Iterator[tuple[requests.Response, Mapping[str, str]]]:
        """An answer whose body is still to come, and its headers by name in lower case."""
        try:
            with closing(self._send(address, wish)) as answer:
                yield answer, {name.lower(): value for name, value in answer.headers.items()}
        except (OSError, HTTPError) as error:  # those of requests are OSErrors
            raise failure_of(error, who, address, self._limits) from error

    def _send(self, address: Address, wish: Wish) -> requests.Response:
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
            proxies={} if address.is_here else settings["proxies"],
        )


def _whole(
    answer: requests.Response,
    headers: Mapping[str, str],
    wish: Wish,
    address: Address,
    who: str,
    unwanted: Callable[[], bool],
) -> Response:
    body = Body(
        status=answer.status_code,
        headers=headers,
        raw=answer.raw,
        address=address,
        who=who,
        unwanted=unwanted,
    )
    content = body.read(wish.limit_bytes)
    return Response(status=answer.status_code, content=content, headers=headers)
