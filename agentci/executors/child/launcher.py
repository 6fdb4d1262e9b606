"""The process that starts programs for us: one for as long as we live, another one if it dies."""

import atexit
import os
import socket
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentci.errors import EvaluatorError
from agentci.shims.launcher import POKE, SEPARATOR
from agentci.shims.messages import receive

# It takes some hundredths of a second, on a machine that is not overloaded.
MAX_START_SECONDS: Final = 30.0
MAX_END_SECONDS: Final = 1.0
PACKAGE: Final = str(Path(__file__).resolve().parents[2])
# Ours is found where it is, and nothing beside us in place of the standard library.
START: Final = (
    "import sys; bare = tuple(sys.modules); sys.flags.safe_path or sys.path.pop(0);"
    " sys.modules['agentci'] = ours = type(sys)('agentci'); ours.__path__ = [sys.argv[1]];"
)
COLD: Final = f"{START} from agentci.shims.launcher import main; main(int(sys.argv[2]))"
WARM: Final = f"{START} from agentci.shims.warm import main; main(int(sys.argv[2]), bare)"
GONE: Final = "could not be started: the process that starts programs was ended from outside"

# What a Python looks at when it starts, and never again.
AT_START: Final = ("LANG", "LC_", "LD_", "MALLOC_", "PYTHON", "TZ")
# What programs manage to end so often is not started again.
MOST_STARTS: Final = 8


@dataclass(frozen=True, slots=True)
class Warmth:
    """A Python that has started already.

    Attributes:
        python: its path.
        environment: what it has seen of a program's environment.
    """

    python: str
    environment: tuple[tuple[str, str], ...]

    @classmethod
    def for_program(cls, python: str, environment: Mapping[str, str]) -> "Warmth":
        """The one whose forks are as ``python`` would be in ``environment``."""
        seen = {k: v for k, v in environment.items() if k.startswith(AT_START)}
        seen.pop("PYTHONPATH", None)  # each program has its own, and nothing of it is ours
        return cls(python, tuple(sorted(seen.items())))


class Launcher:
    """Our end of it.

    Attributes:
        warmth: None for one that has imported nothing.
        facts: what a jail can do here, see ``agentci.shims.probe``.
    """

    def __init__(self, warmth: Warmth | None = None) -> None:
        self.warmth = warmth
        ours, its = socket.socketpair()
        # Programs inherit from a warm one how their streams are read and written.
        streams = subprocess.DEVNULL if warmth is None else subprocess.PIPE
        with its:
            self._process = subprocess.Popen(
                [*_command(warmth), PACKAGE, str(its.fileno())],
                stdin=streams,
                stdout=streams,
                stderr=streams,
                cwd="/",
                env=_environment() if warmth is None else dict(warmth.environment),
                pass_fds=[its.fileno()],
                start_new_session=True,
            )
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._channel = ours
        self._idle: defaultdict[tuple[str, ...], list[socket.socket]] = defaultdict(list)
        ours.settimeout(MAX_START_SECONDS)
        self.facts: Mapping[str, Any] | None = _first_words(ours)
        if self.facts is None:
            self.close()
            raise EvaluatorError(GONE)

    @property
    def number(self) -> int:
        """Of its process."""
        return self._process.pid

    def channel(self, imports: tuple[str, ...]) -> socket.socket:
        """To a ward that has nothing to do.

        Args:
            imports: modules that its program is going to import.

        Raises:
            OSError: the launcher is gone.
        """
        with suppress(IndexError):
            return self._idle[imports].pop()
        ours, its = socket.socketpair()
        words = POKE + SEPARATOR.join(name.encode() for name in imports)
        with its:
            try:
                socket.send_fds(self._channel, [words], [its.fileno()])
            except OSError:
                ours.close()
                raise
        return ours

    def take_back(self, channel: socket.socket, imports: tuple[str, ...]) -> None:
        """Keep a ward that has done what it was asked for."""
        self._idle[imports].append(channel)

    def close(self) -> None:
        """Let it end once the programs that it started have."""
        for channels in self._idle.values():
            while channels:
                channels.pop().close()
        self._channel.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(MAX_END_SECONDS)


class _Office:
    """Who has the launchers of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._launchers: dict[Warmth | None, Launcher] = {}
        self._starts: Counter[Warmth | None] = Counter()
        self._process = 0

    def launcher(self, warmth: Warmth | None = None) -> Launcher:
        """The launcher; a cold one where no such warm one can be had.

        Raises:
            EvaluatorError: none can be started.
        """
        with self._lock:
            if self._process != os.getpid():  # a fork of ours has nothing of it
                self._launchers, self._process = {}, os.getpid()
            if warmth not in self._launchers:
                try:
                    self._launchers[warmth] = self._start(warmth)
                except EvaluatorError:
                    if warmth is None:
                        raise
                    self._starts[warmth] = MOST_STARTS
                    return self.launcher()
            return self._launchers[warmth]

    def drop(self, launcher: Launcher) -> None:
        """Have another one in its place from now on: it is gone."""
        with self._lock:
            for warmth in [key for key, each in self._launchers.items() if each is launcher]:
                del self._launchers[warmth]
        launcher.close()

    def numbers(self) -> Collection[int]:
        """Of the launchers' processes."""
        return [launcher.number for launcher in tuple(self._launchers.values())]

    def close(self) -> None:
        """Have no launcher any more."""
        if self._process == os.getpid():
            for launcher in self._launchers.values():
                launcher.close()
        self._launchers = {}
        self._starts.clear()

    def _start(self, warmth: Warmth | None) -> Launcher:
        if self._starts[warmth] == MOST_STARTS:
            raise EvaluatorError(GONE)
        try:
            launcher = Launcher(warmth)
        except OSError as error:
            raise EvaluatorError(f"could not be started: {error}") from error
        self._starts[warmth] += 1
        return launcher


def _command(warmth: Warmth | None) -> list[str]:
    if warmth is None:
        return [sys.executable, "-I", "-S", "-c", COLD]
    return [warmth.python, "-c", WARM]


def _first_words(channel: socket.socket) -> Mapping[str, Any] | None:
    try:
        return receive(channel)
    except TimeoutError:
        return None


def _environment() -> dict[str, str]:
    """What a Python may need to start, and nothing that a program of the same user could read."""
    from os import environ  # noqa: PLC0415 (of the process that we are, not of a run)

    name = "LD_LIBRARY_PATH"
    return {name: environ[name]} if name in environ else {}


OFFICE: Final = _Office()
atexit.register(OFFICE.close)
