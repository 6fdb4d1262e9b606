"""What gets documents, and what it gets."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field


class Response(Struct, frozen=True, kw_only=True):
    """What a server said in the end: a success, or a refusal that trying again does not mend.

    Attributes:
        headers: by name in lower case.
    """

    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Http(Protocol):
    """Gets documents, from any number of threads at once."""

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Get ``url``; waits and tries again where that may help.

        Args:
            limit_bytes: the largest content that is accepted.
            headers: sent to the host of ``url`` alone, wherever it redirects to.

        Raises:
            UnreachableError: no whole answer came, however often it was asked for.
            RefusedError: the answer is too large, or leads to where we do not follow.
        """
        ...
