"""How long and how often a document is asked for before it is given up."""

from typing import Final

from msgspec import Struct

TRIES: Final = 5
CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 20.0
DOCUMENT_SECONDS: Final = 60.0
LONGEST_WAIT_SECONDS: Final = 60.0
MAX_REDIRECTS: Final = 5


class Limits(Struct, frozen=True, kw_only=True):
    """What is borne of a server.

    Attributes:
        tries: of one document, the first included.
        silence_seconds: between two bytes, and before the first.
        document_seconds: from the name of the host to the last byte, redirects included, a try.
        longest_wait_seconds: that is obeyed where a server asks to be left alone.
    """

    tries: int = TRIES
    connect_seconds: float = CONNECT_SECONDS
    silence_seconds: float = SILENCE_SECONDS
    document_seconds: float = DOCUMENT_SECONDS
    longest_wait_seconds: float = LONGEST_WAIT_SECONDS
    redirects: int = MAX_REDIRECTS


DEFAULT_LIMITS: Final = Limits()
