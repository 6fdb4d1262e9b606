"""Run executable files directly: scripts with a shebang line, and binaries."""

import os
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError

EXTENSIONS: tuple[str, ...] = ()
IMAGE_COMMAND: tuple[str, ...] = ()

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
NOT_EXECUTABLE: Final = "{} is not executable; run `chmod +x` on it and commit the change"
# How much of the first line Linux reads.
SHEBANG_BYTES: Final = 256


def command_for(path: Path, *, search_path: str) -> tuple[str, ...]:
    """Return the file itself as the command.

    Raises:
        EvaluatorError: the system would refuse the file with a misleading message.
    """
    del search_path  # `env` in a shebang line searches PATH itself
    if not os.access(path, os.X_OK):
        raise EvaluatorError(NOT_EXECUTABLE.format(path))
    problem = _find_shebang_problem(path)
    if problem:
        raise EvaluatorError(f"{path} cannot be started: {problem}")
    return (str(path),)


def find_interpreter(path: Path) -> str:
    """Return the interpreter in a script's shebang line; empty if there is none."""
    line = _read_first_line(path)
    return os.fsdecode(b"".join(line[2:].split()[:1])) if line.startswith(b"#!") else ""


def _find_shebang_problem(path: Path) -> str | None:
    line = _read_first_line(path)
    if line.startswith(BYTE_ORDER_MARK):
        return "it begins with a byte order mark, which hides its first line; save it without one"
    if not line.startswith(b"#!"):
        return None
    if line.endswith(b"\r"):
        return "its line endings are CR LF; save it with LF (.gitattributes: eol=lf)"
    interpreter = find_interpreter(path)
    if not Path(interpreter).exists():
        return f"the interpreter in its first line, `{interpreter}`, does not exist on this machine"
    return None


def _read_first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SHEBANG_BYTES).partition(b"\n")[0]
    except OSError:
        return b""  # a binary may be executable without being readable
