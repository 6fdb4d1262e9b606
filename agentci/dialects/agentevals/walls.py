"""Tells the author of a program that ran into the walls around it."""

from typing import Final

NO_NETWORK: Final = "\n(it has no network: `network: true` in its entry gives it one)"
CLOSED: Final = (
    "\n(it may write to its TMPDIR alone, and read no more than the workspace, its own folder and"
    " the system)"
)

# What Python, Node.js and the tools of the system say, in lower case.
OF_SOCKETS: Final = (
    "name resolution", "getaddrinfo", "eai_again", "could not resolve", "urlopen error",
    "connectionerror", "connecterror", "socket.py", "fetch failed",
)  # fmt: skip
OF_FILES: Final = ("permission denied", "eacces", "read-only file system")


def hint_at_walls(stderr: str, *, network: bool) -> str:
    """A way out for a program that failed with ``stderr``, empty where no wall is to blame."""
    said = stderr.lower()
    if not network and any(words in said for words in OF_SOCKETS):
        return NO_NETWORK
    return CLOSED if any(words in said for words in OF_FILES) else ""
