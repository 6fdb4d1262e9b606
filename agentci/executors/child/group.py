"""A program and all that it starts: one process group, in a session of its own."""

import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError
from agentci.executors.child.orphans import bury

# A killed process is gone in about a millisecond; one that hangs in the kernel must not hold us.
MAX_DYING_SECONDS: Final = 5.0

HINTS: Final = {
    errno.ENOEXEC: "begin the file with a line such as #!/usr/bin/env bash",
    errno.EACCES: "run chmod +x on it, and commit that",
    errno.ENOENT: "is the interpreter of its first line installed, and its folder there?",
    errno.EMFILE: "run fewer at a time with --jobs",
    errno.EAGAIN: "run fewer at a time with --jobs",
    errno.ENOMEM: "run fewer at a time with --jobs",
}


class ProcessGroup:
    """A running program, the leader of its group.

    The leader is reaped only after its group was killed: until then its number cannot become
    anybody else's, and no signal of ours hits a stranger.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def has_ended(self) -> bool:
        """Whether the leader has exited; what it started may still be there."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.process.pid, flags) is not None

    def kill(self) -> None:
        """End every process of the group at once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def release(self) -> int:
        """Let go of a leader that has ended: its exit code, or the negative number of a signal."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(MAX_DYING_SECONDS)
        bury(self.process.pid)
        return -signal.SIGKILL if self.process.returncode is None else self.process.returncode


def start(command: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> ProcessGroup:
    """Start ``command`` with three pipes; where a jail is wanted it goes before the command.

    Raises:
        EvaluatorError: the system refused.
    """
    try:
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise EvaluatorError(_refusal(error)) from error
    return ProcessGroup(process)


def _refusal(error: OSError) -> str:
    hint = HINTS.get(error.errno or 0)
    way_out = f" ({hint})" if hint else ""
    return f"could not be started: {error}{way_out}"
