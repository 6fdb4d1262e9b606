"""Runs a command of the user, such as an agent: not sandboxed, with the user's environment.

The folder for its files is removed however agentci ends.
"""

import errno
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from agentci._util.workspace import is_file, is_folder
from agentci.errors import InputError

STOP_SECONDS: Final = 5.0
# A second time if a program that still runs wrote to the folder in the meantime.
_REMOVE_FOLDER: Final = """
trap '' HUP INT TERM; read _
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
"""
_QUOTED: Final = "remove the quotes around the command, so that its words are separate"
_NOT_FOUND: Final = "check the name, and write the command after `--`"
_RUNNERS: Final = {".py": "python", ".sh": "sh"} | dict.fromkeys((".js", ".mjs", ".cjs"), "node")


class UserCommand:
    """A running command; all that it starts is in its process group.

    Args:
        command: program and arguments.
        environment: all its environment variables.
        stdin: what it reads; None to share the stdin of this process.
        output: where stdout goes; None to share that of this process.
        errors: where stderr goes; None to share that of this process.

    Raises:
        InputError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        stdin: IO[bytes] | None,
        output: IO[bytes] | None,
        errors: IO[bytes] | None,
    ) -> None:
        # A group of its own would lose the terminal.
        self._has_group = stdin is not None or not os.isatty(0)
        try:
            self._process = subprocess.Popen(
                [*command],
                env={**environment},
                stdin=stdin,
                stdout=output,
                stderr=errors,
                process_group=0 if self._has_group else None,
            )
        except (OSError, ValueError) as error:
            reason, hint = _explain_failed_start(command, error)
            message = f"cannot start `{command[0]}`: {reason}"
            raise InputError.from_message(message, hint=hint) from None

    def wait(self, seconds: float) -> int | None:
        """Return the exit code, negative for a signal; None if it still runs after ``seconds``."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> int:
        """End it and its group by SIGTERM, after ``STOP_SECONDS`` by SIGKILL; return the code."""
        self._send(signal.SIGTERM)
        code = self.wait(STOP_SECONDS)
        self._send(signal.SIGKILL)
        return self._process.wait() if code is None else code

    def _send(self, number: signal.Signals) -> None:
        with suppress(OSError):
            if self._has_group:
                os.killpg(self._process.pid, number)
            elif self._process.poll() is None:
                os.kill(self._process.pid, number)


def _explain_failed_start(command: Sequence[str], error: Exception) -> tuple[str, str]:
    """Return why a command cannot be started, and what to do."""
    name, number = command[0], error.errno if isinstance(error, OSError) else None
    is_missing, is_path = number == errno.ENOENT, "/" in name
    is_found = is_file(Path(name))
    runner = _RUNNERS.get(Path(name).suffix, "python")
    run_it = f"name what runs it, as in `{runner} {name}`"
    is_quoted = len(command) == 1 and " " in name
    known = (
        (not name.strip(), "it has no name", _NOT_FOUND),
        (is_folder(Path(name)), "it is a folder", "name a program, as in `python agent.py`"),
        (number == errno.ENOEXEC, "it has no `#!` line that says what runs it", run_it),
        (number == errno.EACCES and is_found, "it is not executable", run_it),
        # Without a slash, a program is only looked for on the PATH.
        (is_missing and is_found and not is_path, "it is not on the PATH", run_it),
        (is_missing and is_found, "its `#!` line names a program that does not exist", run_it),
        (is_missing, "no such program", _QUOTED if is_quoted else _NOT_FOUND),
    )
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    found = ((text, hint) for applies, text, hint in known if applies)
    return next(found, (reason, _NOT_FOUND))


@contextmanager
def make_transient_folder(prefix: str) -> Iterator[str]:
    """Make a folder that does not outlive this process, even if that is killed.

    A process of its own waits for the end of this one, and removes the folder.
    """
    folder = tempfile.mkdtemp(prefix=prefix)
    remover = subprocess.Popen(
        ["/bin/sh", "-c", _REMOVE_FOLDER, "sh", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield folder
    finally:
        remover.communicate()
