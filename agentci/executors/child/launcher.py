"""The process that starts programs for us: one for as long as we live, another one if it dies."""

import atexit
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from agentci.errors import EvaluatorError
from agentci.shims.messages import receive

POKE: Final = b"!"
# It takes some hundredths of a second, on a machine that is not overloaded.
MAX_START_SECONDS: Final = 30.0
MAX_END_SECONDS: Final = 1.0
OUR_PACKAGES: Final = str(Path(__file__).resolve().parents[3])
# The standard library comes first: nothing beside us is imported in its place.
PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]);"
    " from agentci.shims.launcher import main; main(int(sys.argv[2]))"
)
GONE: Final = "could not be started: the process that starts programs was ended from outside"


class Launcher:
    """Our end of it.

    Attributes:
        facts: what a jail can do here, see ``agentci.shims.probe``.
    """

    def __init__(self) -> None:
        ours, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", PROGRAM, OUR_PACKAGES, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=_environment(),
                pass_fds=[its.fileno()],
                start_new_session=True,
            )
        self._channel = ours
        ours.settimeout(MAX_START_SECONDS)
        self.facts: Mapping[str, Any] | None = receive(ours)
        if self.facts is None:
            self.close()
            raise EvaluatorError(GONE)

    @property
    def number(self) -> int:
        """Of its process."""
        return self._process.pid

    def hand_over(self, descriptors: Sequence[int]) -> None:
        """Have a ward started on these.

        Raises:
            OSError: it is gone.
        """
        socket.send_fds(self._channel, [POKE], descriptors)

    def close(self) -> None:
        """Let it end once the programs that it started have."""
        self._channel.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(MAX_END_SECONDS)


class _Office:
    """Who has the one launcher of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._launcher: Launcher | None = None
        self._process = 0

    def launcher(self, *, after: Launcher | None = None) -> Launcher:
        """The launcher, another one than ``after``.

        Raises:
            EvaluatorError: none can be started.
        """
        with self._lock:
            if self._process != os.getpid():  # a fork of ours has nothing of it
                self._launcher, self._process = None, os.getpid()
            if self._launcher is None or self._launcher is after:
                if self._launcher is not None:
                    self._launcher.close()
                self._launcher = None
                self._launcher = _launch()
            return self._launcher

    def number(self) -> int | None:
        """Of the launcher's process, if there is one."""
        return None if self._launcher is None else self._launcher.number

    def close(self) -> None:
        """Have no launcher any more."""
        if self._launcher is not None and self._process == os.getpid():
            self._launcher.close()
        self._launcher = None


def _launch() -> Launcher:
    try:
        return Launcher()
    except OSError as error:
        raise EvaluatorError(f"could not be started: {error}") from error


def _environment() -> dict[str, str]:
    """What a Python may need to start, and nothing that a program of the same user could read."""
    from os import environ  # noqa: PLC0415 (of the process that we are, not of a run)

    name = "LD_LIBRARY_PATH"
    return {name: environ[name]} if name in environ else {}


OFFICE: Final = _Office()
atexit.register(OFFICE.close)
