"""Tells the author of a program that ran into the walls around it."""

from typing import Final

NO_NETWORK: Final = "\n(it has no network: `network: true` in its entry gives it one)"
CLOSED: Final = (
    "\n(it may write to its TMPDIR alone, and read no more than the workspace, its own folder and"
    " the system)"
)
CLOSED_IN_IMAGE: Final = "\n(in its container it may write to /tmp alone, and run nothing there)"
ABSENT_IN_IMAGE: Final = (
    "\n(in its container there are its image, with the packages of that, and a copy of its own"
    " folder, and no more)"
)

# What Python, Node.js and the tools of the system say, in lower case.
OF_SOCKETS: Final = (
    "name resolution", "getaddrinfo", "eai_again", "could not resolve", "urlopen error",
    "connectionerror", "connecterror", "socket.py", "fetch failed",
)  # fmt: skip
OF_FILES: Final = ("permission denied", "eacces", "read-only file system")
OF_ABSENCE: Final = (
    "no such file or directory", "enoent", "no module named", "cannot find module",
    "cannot find package",
)  # fmt: skip


def hint_at_walls(stderr: str, *, network: bool, in_image: bool) -> str:
    """A way out for a program that failed with ``stderr``, empty where no wall is to blame."""
    said = stderr.lower()
    if not network and any(words in said for words in OF_SOCKETS):
        return NO_NETWORK
    if any(words in said for words in OF_FILES):
        return CLOSED_IN_IMAGE if in_image else CLOSED
    return ABSENT_IN_IMAGE if in_image and any(words in said for words in OF_ABSENCE) else ""
