"""What the key of a program's cached response is made from."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.workspace import resolve_path
from agentci.execution.executor_api import ProgramJob
from agentci.execution.runtimes import node, python

SCRIPT_SUFFIXES: Final = frozenset({*node.EXTENSIONS, *python.EXTENSIONS})

# What a shell may take for a word, wherever it stands in a line.
_WORD: Final = re.compile(r"[\w./+~-]+")


class CacheableProgram(Struct, frozen=True, kw_only=True):
    """A program and how it is run, whatever its stdin is.

    Attributes:
        name: of the evaluator, for messages.
        job: its stdin is ignored.
        executor: its name.
        variables: the environment variables that its entry's `env` gives it.
        files: the program's file; for a command line, the files that it names.
        line: the command line of the config; empty for a program.
        tree: the folder of a fetched program, named by its digest; None for others.
        sealed: a digest of all that the program can read; None where it can read the workspace.
    """

    name: str
    job: ProgramJob
    executor: str
    variables: Mapping[str, str]
    files: tuple[Path, ...]
    line: tuple[str, ...] = ()
    tree: Path | None = None
    sealed: str | None = None

    def find_folders(self) -> tuple[Path, ...]:
        """The folders of the program or of a command's scripts, and those that links lead to.

        Of the files that a command names, scripts are those that are executable or in a language
        of ours; the first file where none is.
        """
        scripts = [each for each in self.files if not self.line or _is_script(each)]
        chosen = scripts or self.files[:1]
        folders = (path.parent for each in chosen for path in (each, resolve_path(each)))
        return tuple(dict.fromkeys(folders))


def _is_script(path: Path) -> bool:
    return path.suffix in SCRIPT_SUFFIXES or os.access(path, os.X_OK)


def nth_key(key: bytes, ordinal: int) -> bytes:
    """The key of a further response to the same request; the first, 0, keeps its ``key``."""
    return sha256(b"repeat %d " % ordinal + key).digest() if ordinal else key


def words_of(line: Sequence[str]) -> Iterator[str]:
    """The words of a command line, with those of lines for a shell in it; each once."""
    yield from dict.fromkeys(word for part in line for word in (part, *_WORD.findall(part)))
