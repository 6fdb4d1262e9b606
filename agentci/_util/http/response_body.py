"""Reads what a server sends, whole and within bounds."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from agentci._util.http.addresses import Address
from agentci._util.http.retries import NETWORK_HINT, PassingError
from agentci._util.text import escape, truncate
from agentci._util.text.format import count
from agentci.errors import RefusedError

# At once; a drip of bytes is passed on as it comes.
CHUNK_BYTES: Final = 64 * 1024
MAX_SAID: Final = 40
_LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)
_SUCCESSES: Final = range(200, 300)
_EMPTY: Final = frozenset({204, 304})


class Body(Struct, frozen=True, kw_only=True):
    """What follows the headers of an answer.

    Attributes:
        who: sends it; the start of a sentence.
        raw: the answer as urllib3 has it.
        unwanted: tells that nobody waits for it any more.
    """

    address: Address
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
            self._refuse(f"is {count(length, 'byte')}", limit_bytes)
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
            said = truncate.short(escape.plain_line(packing), MAX_SAID)
            raise RefusedError(
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
            limit = count(limit_bytes, "byte")
            raise RefusedError(
                f"{self.address.shown} {size}, and {limit} are accepted",
                hint="see whether it is the right address; keep data and models elsewhere",
            )

    def _broken(self, said: str) -> PassingError:
        return PassingError(f"{self.who} {said}", hint=NETWORK_HINT)
