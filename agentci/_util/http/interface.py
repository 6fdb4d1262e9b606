"""The interface of HTTP clients: responses, limits, and a client for offline runs."""

from collections.abc import Mapping
from typing import Final, NoReturn, Protocol

from msgspec import Struct, field

from agentci.errors import OfflineError

MAX_TRIES: Final = 5
CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 20.0
DOCUMENT_SECONDS: Final = 60.0
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
MAX_REDIRECTS: Final = 5


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Limits for requests to a server.

    Attributes:
        tries: attempts per document, including the first.
        silence_seconds: maximum time between two bytes, and before the first.
        document_seconds: time limit of one attempt, from resolving the host name to the last byte,
            redirects included.
        first_wait_seconds: minimum wait after the first attempt; doubled after each further one.
        longest_wait_seconds: longest wait that a server may ask for.
    """

    tries: int = MAX_TRIES
    connect_seconds: float = CONNECT_SECONDS
    silence_seconds: float = SILENCE_SECONDS
    document_seconds: float = DOCUMENT_SECONDS
    first_wait_seconds: float = FIRST_WAIT_SECONDS
    longest_wait_seconds: float = LONGEST_WAIT_SECONDS
    redirects: int = MAX_REDIRECTS


DEFAULT_LIMITS: Final = HttpLimits()


class HttpResponse(Struct, frozen=True, kw_only=True):
    """The final response: a success, or an error that a retry does not help with.

    Attributes:
        headers: by name in lower case.
    """

    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpGetter(Protocol):
    """Downloads documents; thread-safe."""

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Get ``url``, with retries.

        Args:
            limit_bytes: maximum size of the content.
            headers: sent only to the host of ``url``, not to redirect targets.

        Raises:
            UnreachableError: no attempt got a complete response, or the run has to end.
            PermanentFetchError: the response is too large, or redirects to an address that is not
                allowed.
        """


class OfflineHttp:
    """Client for offline runs: every request fails."""

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> NoReturn:
        """Refuse the request.

        Raises:
            OfflineError: always.
        """
        del url, limit_bytes, headers
        raise OfflineError("it is not in the cache, and `--offline` forbids the download")
