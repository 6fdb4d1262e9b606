"""What is said of a part of the cache that is not as it was written."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentci.errors import UnreachableError

# What is missing here is missing in this process: the cache is not to blame.
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class DamageError(Exception):
    """An entry must not be used; says why, without a full stop.

    Attributes:
        path: the part that is damaged: of no use, and in the way of a new one.
    """

    def __init__(self, message: str, path: Path) -> None:
        self.path = path
        super().__init__(message)


@contextmanager
def damage_in(path: Path, name: str) -> Iterator[None]:
    """Take what cannot be read for damaged; ``name`` is what messages call it.

    Raises:
        DamageError: it cannot be read.
        UnreachableError: too much is open, or memory is short.
    """
    try:
        yield
    except FileNotFoundError:
        raise DamageError(f"{name} is missing", path) from None
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _SHORTAGES:
            raise UnreachableError(f"the cache cannot be read: {reason}") from None
        raise DamageError(f"{name} cannot be read: {reason}", path) from None


def content_of(path: Path, name: str, *, limit_bytes: int) -> bytes | None:
    """The content of a file of the cache, through no link; None where there is none.

    Args:
        name: what messages call it.

    Raises:
        DamageError: it is no file, too large, or cannot be read.
        UnreachableError: too much is open, or memory is short.
    """
    with damage_in(path, name):
        try:
            descriptor = os.open(path, _READ)
        except FileNotFoundError:
            return None
        with open(descriptor, "rb") as file:  # noqa: PTH123 (pathlib opens no descriptors)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise DamageError(f"{name} is not a regular file", path)
            content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise DamageError(f"{name} is too large", path)
    return content
