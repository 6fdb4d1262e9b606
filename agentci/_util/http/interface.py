"""The interface of HTTP clients: responses, limits, and a client for offline runs."""

from collections.abc import Mapping
from typing import Final, NoReturn, Protocol

from msgspec import Struct, field

from agentci.errors import OfflineError

MAX_TRIES: Final = 5
CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 20.0
DOCUMENT_SECONDS: Final = 60.0
LONGEST_WAIT_SECONDS: Final = 60.0
MAX_REDIRECTS: Final = 5


class HttpLimits(Struct, frozen=True, kw_only=True):
    """What is borne of a server.

    Attributes:
        tries: of one document, the first included.
        silence_seconds: between two bytes, and before the first.
        document_seconds: from the name of the host to the last byte, redirects included, a try.
        longest_wait_seconds: that is obeyed where a server asks to be left alone.
    """

    tries: int = MAX_TRIES
    connect_seconds: float = CONNECT_SECONDS
    silence_seconds: float = SILENCE_SECONDS
    document_seconds: float = DOCUMENT_SECONDS
    longest_wait_seconds: float = LONGEST_WAIT_SECONDS
    redirects: int = MAX_REDIRECTS


DEFAULT_LIMITS: Final = HttpLimits()


class HttpResponse(Struct, frozen=True, kw_only=True):
    """What a server said in the end: a success, or a refusal that trying again does not mend.

    Attributes:
        headers: by name in lower case.
    """

    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpGetter(Protocol):
    """Gets documents, from any number of threads at once."""

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Get ``url``; waits and tries again where that may help.

        Args:
            limit_bytes: the largest content that is accepted.
            headers: sent to the host of ``url`` alone, wherever it redirects to.

        Raises:
            UnreachableError: no whole answer came, however often it was asked for.
            RefusedError: the answer is too large, or leads to where we do not follow.
        """
        ...


class OfflineHttp:
    """Gets nothing: whoever asks is told that it is not there."""

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> NoReturn:
        """Refuse.

        Raises:
            OfflineError: always.
        """
        del url, limit_bytes, headers
        raise OfflineError("it would have to be asked for, and we are offline")
