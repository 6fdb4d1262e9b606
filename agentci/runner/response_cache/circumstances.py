"""What a reply hangs on, as far as that is known before a program is run."""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci.execution.executor_api import ProgramJob

# What a shell may take for a word, wherever it stands in a line.
_WORD: Final = re.compile(r"[\w./+~-]+")


class Circumstances(Struct, frozen=True, kw_only=True):
    """A program, and how it is run.

    Attributes:
        job: whatever its stdin is.
        executor: its name.
        programs: the program's file; of a command line all files that it names.
        line: a command line as the config has it; else empty.
        tree: the folder of a fetched program, named by its digest; else None.
        sealed: a digest of all that the program can read; None where it can read the workspace.
    """

    job: ProgramJob
    executor: str
    programs: tuple[Path, ...]
    line: tuple[str, ...] = ()
    tree: Path | None = None
    sealed: str | None = None


def nth_key(key: bytes, ordinal: int) -> bytes:
    """What a further reply to the same request is kept under; the first, 0, keeps its ``key``."""
    return sha256(b"repeat %d " % ordinal + key).digest() if ordinal else key


def words_of(line: Sequence[str]) -> Iterator[str]:
    """The words of a command line, with those of lines for a shell in it; each once."""
    yield from dict.fromkeys(word for part in line for word in (part, *_WORD.findall(part)))
