"""Clients of the launchers, which start programs; the pool of launchers; and their messages.

Messages are as untrusted as a program's output: code of untrusted packages that a launcher imports
may write messages in the launcher's place.
"""

import atexit
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Generic, TypedDict, TypeVar

import msgspec
from msgspec import Meta, Struct

from agentci._util.workspace import trust_path
from agentci.errors import EvaluatorError
from agentci.execution.child import kernel
from agentci.execution.child.socket_messages import LENGTH
from agentci.execution.child.supervisor import SEPARATOR, SUPERVISOR_REQUEST
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import ProgramJob, SandboxPolicy
from agentci.model.values import replace

PACKAGE_FOLDER: Final = str(Path(__file__).resolve().parents[1])
# Imports agentci from its folder, without letting modules next to it replace the standard library.
BOOTSTRAP_CODE: Final = (
    "import sys; bare = tuple(sys.modules); sys.flags.safe_path or sys.path.pop(0);"
    " sys.modules['agentci'] = ours = type(sys)('agentci'); ours.__path__ = [sys.argv[1]];"
)
PREFORK_CODE: Final = (
    f"{BOOTSTRAP_CODE} from agentci.execution.child.prefork_server import main; main(bare)"
)

# Variables that Python or its libraries read only when they start.
STARTUP_PREFIXES: Final = ("GLIBC_", "LANG", "LC_", "LD_", "MALLOC_", "PYTHON", "TZ")
# Those of them that cannot make Python run code other than what agentci itself runs.
HARMLESS_VARIABLES: Final = frozenset(
    {
        "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
        "PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "PYTHONUTF8",
        "TZ",
    }
)  # fmt: skip
LOCALE_PREFIX: Final = "LC_"
# Each program has its own values, which the prefork interpreter must not use.
PROGRAM_ONLY_VARIABLES: Final = frozenset({"PYTHONPATH", "PYTHONUSERBASE"})
# Disables user packages: sandboxed programs may be able to write to a user's home.
NO_USER_PACKAGES: Final = {"PYTHONUSERBASE": "/nonexistent"}
MAX_PARALLEL_PROGRAMS: Final = 8


class PreforkInterpreter(Struct, frozen=True):
    """A Python that has started and imported modules in advance.

    Attributes:
        python: path of the interpreter.
        environment: the part of a program's environment that it has used.
        sandbox_policy: its own sandbox policy, if it imports untrusted packages; otherwise None.
    """

    python: str
    environment: tuple[tuple[str, str], ...]
    sandbox_policy: SandboxPolicy | None = None

    @classmethod
    def for_program(
        cls, python: str, environment: Mapping[str, str], sandbox_policy: SandboxPolicy
    ) -> "PreforkInterpreter | None":
        """Return an interpreter whose forks act as ``python`` in ``environment``, if possible."""
        names = {
            name for name in environment if name.startswith(STARTUP_PREFIXES)
        } - PROGRAM_ONLY_VARIABLES
        if any(
            name not in HARMLESS_VARIABLES and not name.startswith(LOCALE_PREFIX) for name in names
        ):
            return None
        seen = NO_USER_PACKAGES | {name: environment[name] for name in names}
        restrictions = (
            replace(sandbox_policy, imports=None) if sandbox_policy.untrusted_packages else None
        )
        return cls(python, tuple(sorted(seen.items())), restrictions)

    @staticmethod
    def make_policy(of_programs: SandboxPolicy) -> SandboxPolicy:
        """Make its own policy: that of its programs, with limits for several programs at a time."""
        return replace(
            of_programs,
            readable=(*of_programs.readable, trust_path(Path(PACKAGE_FOLDER))),
            processes=of_programs.processes * MAX_PARALLEL_PROGRAMS,
            folder_mb=of_programs.folder_mb * MAX_PARALLEL_PROGRAMS,
        )

    @property
    def command(self) -> tuple[str, ...]:
        """The command that starts it, with a channel as stdin and a terminal as stderr.

        Its stdout is a pipe that is never read; programs inherit its stream settings from it.
        """
        return (self.python, "-c", PREFORK_CODE, PACKAGE_FOLDER)


# Timeout of a prefork interpreter: longer than any run.
INTERPRETER_SECONDS: Final = 7 * 24 * 3600.0


def find_job_imports(job: ProgramJob) -> tuple[str, ...]:
    """Return the modules to preload for a program; none if it needs a new interpreter."""
    return job.sandbox_policy.imports or ()


def find_prefork_interpreter(job: ProgramJob) -> PreforkInterpreter | None:
    """Return the prefork interpreter for a program; None if it needs a new interpreter."""
    if job.sandbox_policy.imports is None or not kernel.IS_LINUX:
        return None
    return PreforkInterpreter.for_program(job.command[0], job.environment, job.sandbox_policy)


def make_interpreter_job(interpreter: PreforkInterpreter, job: ProgramJob) -> ProgramJob:
    """Make the job that starts a prefork interpreter in its own sandbox, for programs like ``job``.

    Its environment has nothing that only ``job`` may see, because forks have the interpreter's
    memory.
    """
    return replace(
        job,
        command=interpreter.command,
        stdin=b"",
        cwd=Path("/"),
        environment=make_child_environment(job.environment) | dict(interpreter.environment),
        timeout_seconds=INTERPRETER_SECONDS,
        sandbox_policy=interpreter.make_policy(job.sandbox_policy),
    )


# More than any real message needs.
MAX_MESSAGE_BYTES: Final = 64 * 1024

MessageT = TypeVar("MessageT")


class SandboxCapabilities(TypedDict):
    """What a sandbox can do here; see ``agentci.execution.child.apply_sandbox``."""

    system: str
    first_user: int | None
    tasks: int
    grants_read_search: bool
    has_read_search: bool
    private_memory: bool
    root: bool
    landlock: int
    filters: bool
    machine: str


class StartFailure(Struct, frozen=True):
    """The reason why a program was not started; see ``agentci.execution.child.supervisor``."""

    stage: str
    errno: int | None
    reason: str


class SupervisorMessage(Struct, frozen=True):
    """A report on a program; see ``agentci.execution.child.supervisor``.

    Attributes:
        code: exit code, or the negative number of a signal; None if there is none yet.
        ended: whether the program and all that it started have ended.
        may_remain: whether some of its processes may still run.
        exceeded_limit: the limit that it exceeded; completes a sentence about the program.
        failure: set if the program was not started.
    """

    code: Annotated[int, Meta(ge=-64, le=255)] | None = None
    ended: bool = False
    may_remain: bool = False
    exceeded_limit: str = ""
    failure: StartFailure | None = None


class ChildMessageReader(Generic[MessageT]):
    """Reads messages of one type, which may arrive in pieces.

    Args:
        channel: the channel to the sender.
        kind: the type to decode to.
    """

    def __init__(self, channel: socket.socket, kind: type[MessageT]) -> None:
        self._channel = channel
        self._decoder = msgspec.json.Decoder(kind)
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)

    def read_next(self, seconds: float) -> MessageT | None:
        """Read the next message; return None if the channel is closed or the message invalid.

        Raises:
            TimeoutError: no complete message arrived within ``seconds``.
        """
        deadline = time.monotonic() + seconds
        while (size := self._count_missing()) > 0:
            if not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError
            try:
                chunk = self._channel.recv(size)
            except ConnectionError:
                return None
            if not chunk:
                return None
            self._buffer += chunk
        try:
            return self._decoder.decode(self._buffer[LENGTH.size :]) if size == 0 else None
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None
        finally:
            self._buffer.clear()

    def _count_missing(self) -> int:
        """Count the missing bytes of the length or the message; negative if it is too long."""
        known = LENGTH.size
        if len(self._buffer) >= known:
            [length] = LENGTH.unpack_from(self._buffer)
            if length > MAX_MESSAGE_BYTES:
                return -1
            known += length
        return known - len(self._buffer)


LAUNCHER_CODE: Final = (
    f"{BOOTSTRAP_CODE} from agentci.execution.child.supervisor import main; main(int(sys.argv[2]))"
)
# A start takes some hundredths of a second on a machine that is not overloaded.
MAX_START_SECONDS: Final = 30.0
MAX_END_SECONDS: Final = 1.0
# A start request fits into the socket's buffer, unless its environment is huge.
MAX_ORDER_SECONDS: Final = 30.0
LAUNCHER_LOST: Final = "could not be started: agentci's launcher process was killed"


class LauncherClient:
    """The client of one launcher process.

    Args:
        channel: the channel to the launcher.
        end: called once the channel is closed; waits until the launcher has ended.
        number: the launcher's process id, if it is a child of this process; otherwise None.
        interpreter: the prefork interpreter that it runs as; None for a plain launcher.
        folder: see the attribute.

    Attributes:
        process_id: the argument ``number``.
        interpreter: the argument ``interpreter``.
        capabilities: what a sandbox can do here; see ``agentci.execution.child.apply_sandbox``.
        folder: the only folder that its programs can write to; empty if each has its own.

    Raises:
        EvaluatorError: the launcher does not start.
    """

    def __init__(
        self,
        channel: socket.socket,
        *,
        end: Callable[[], object],
        number: int | None,
        interpreter: PreforkInterpreter | None,
        folder: str = "",
    ) -> None:
        self._channel = channel
        self._end = end
        self._idle: defaultdict[tuple[str, ...], list[socket.socket]] = defaultdict(list)
        self.process_id = number
        self.interpreter = interpreter
        self.folder = folder
        channel.settimeout(MAX_START_SECONDS)
        facts = _receive_capabilities(channel)
        if facts is None:
            self.close()
            raise EvaluatorError(LAUNCHER_LOST)
        self.capabilities = facts

    def is_alive(self) -> bool:
        """Whether the launcher still runs: after its first message, only its end is readable."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        return not poll.poll(0)

    def take_idle_supervisor(self, imports: tuple[str, ...]) -> socket.socket | None:
        """Return the channel to an idle supervisor, or None."""
        try:
            return self._idle[imports].pop()
        except IndexError:
            return None

    def start_supervisor(self, imports: tuple[str, ...]) -> socket.socket:
        """Start a supervisor, and return the channel to it.

        Args:
            imports: modules that its program will import.

        Raises:
            OSError: the launcher has ended.
        """
        ours, its = socket.socketpair()
        ours.settimeout(MAX_ORDER_SECONDS)
        words = SUPERVISOR_REQUEST + SEPARATOR.join(name.encode() for name in imports)
        with its:
            try:
                socket.send_fds(self._channel, [words], [its.fileno()])
            except OSError:
                ours.close()
                raise
        return ours

    def return_supervisor(self, channel: socket.socket, imports: tuple[str, ...]) -> None:
        """Keep the channel to a supervisor that has finished its program."""
        self._idle[imports].append(channel)

    def close(self) -> None:
        """Close the channels, so that the launcher ends once its programs have ended."""
        for channels in self._idle.values():
            while channels:
                channels.pop().close()
        self._channel.close()
        self._end()


def start_launcher(interpreter: PreforkInterpreter | None) -> LauncherClient:
    """Start a launcher without a sandbox: it imports only agentci or packages installed next to it.

    Raises:
        EvaluatorError, OSError: the launcher cannot be started.
    """
    return _start_plain_launcher() if interpreter is None else _start_prefork_launcher(interpreter)


def _start_plain_launcher() -> LauncherClient:
    ours, its = socket.socketpair()
    with its:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", LAUNCHER_CODE, PACKAGE_FOLDER, str(its.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=_make_launcher_environment(),
            pass_fds=[its.fileno()],
            start_new_session=True,
        )
    return LauncherClient(
        ours, end=partial(_wait_for_end, process), number=process.pid, interpreter=None
    )


def _start_prefork_launcher(interpreter: PreforkInterpreter) -> LauncherClient:
    ends: list[int] = []
    try:
        for make in PREFORK_STREAMS:
            ends += make()
        its, ours, _, stdout, _, stderr = ends
        process = subprocess.Popen(
            interpreter.command,
            stdin=its,
            stdout=stdout,
            stderr=stderr,
            cwd="/",
            env=dict(interpreter.environment),
            start_new_session=True,
        )
        os.close(its)
        channel = socket.socket(fileno=ours)
        del ends[:2]
        return LauncherClient(
            channel,
            end=partial(_wait_for_end, process),
            number=process.pid,
            interpreter=interpreter,
        )
    finally:
        for end in ends:
            os.close(end)


def _make_socket_pair() -> tuple[int, int]:
    its, ours = socket.socketpair()
    return its.detach(), ours.detach()


# Each returns the read end first, like ``os.pipe``.
PREFORK_STREAMS: Final = (_make_socket_pair, os.pipe, os.openpty)


def _wait_for_end(process: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(MAX_END_SECONDS)


def _receive_capabilities(channel: socket.socket) -> SandboxCapabilities | None:
    try:
        facts = ChildMessageReader(channel, SandboxCapabilities).read_next(MAX_START_SECONDS)
    except TimeoutError:
        return None
    return facts if facts and facts["machine"] == os.uname().machine else None


def _make_launcher_environment() -> dict[str, str]:
    """Return only the variables Python needs to start: programs of the same user can read them."""
    from os import environ  # noqa: PLC0415 (this process's environment, not that of a run)

    name = "LD_LIBRARY_PATH"
    return {name: environ[name]} if name in environ else {}


# After so many starts, a launcher that programs keep ending is not started again.
MAX_STARTS: Final = 8


class _LauncherPool:
    """The launchers of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._launchers: dict[PreforkInterpreter | None, LauncherClient] = {}
        self._starts: Counter[PreforkInterpreter | None] = Counter()
        self._process = 0

    def get_launcher(
        self,
        interpreter: PreforkInterpreter | None = None,
        *,
        start: Callable[[], LauncherClient] | None = None,
    ) -> LauncherClient:
        """Return a launcher; a plain one if the prefork ``interpreter`` cannot be started.

        Args:
            interpreter: the prefork interpreter; None for a plain launcher.
            start: starts a launcher in a sandbox; None to start one without.

        Raises:
            EvaluatorError: no launcher can be started.
        """
        with self._lock:
            if self._process != os.getpid():  # a fork must not use its parent's launchers
                self._launchers, self._process = {}, os.getpid()
            if interpreter in self._launchers and not self._launchers[interpreter].is_alive():
                self._launchers.pop(interpreter).close()
            if interpreter not in self._launchers:
                try:
                    self._launchers[interpreter] = self._start(
                        interpreter, start or partial(start_launcher, interpreter)
                    )
                except EvaluatorError:
                    if interpreter is None:
                        raise
                    self._starts[interpreter] = MAX_STARTS
                    return self.get_launcher()
            return self._launchers[interpreter]

    def list_process_ids(self) -> Collection[int]:
        """Return the process ids of the launchers that are children of this process."""
        launchers = tuple(self._launchers.values())
        return [each.process_id for each in launchers if each.process_id is not None]

    def close(self) -> None:
        """Close all launchers."""
        if self._process == os.getpid():
            for launcher in reversed(self._launchers.values()):  # one may depend on an earlier one
                launcher.close()
        self._launchers = {}
        self._starts.clear()

    def _start(
        self, interpreter: PreforkInterpreter | None, start: Callable[[], LauncherClient]
    ) -> LauncherClient:
        if self._starts[interpreter] == MAX_STARTS:
            raise EvaluatorError(LAUNCHER_LOST)
        try:
            launcher = start()
        except OSError as error:
            raise EvaluatorError(f"could not be started: {error}") from error
        self._starts[interpreter] += 1
        return launcher


LAUNCHER_POOL: Final = _LauncherPool()
atexit.register(LAUNCHER_POOL.close)
