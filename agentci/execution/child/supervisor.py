"""Start and supervise programs: the launcher, and one supervisor per program.

The launcher starts programs for a process with threads, where forking Python code is unsafe. It has
one thread and imports only what it needs, so its forks are fast and can safely run Python.

A supervisor is a separate process between the launcher and the program: it starts the program in
its sandbox, ends all that it started, and cleans up. When nothing is left of one program, it can
run the next. It adopts every orphan below it, so that no process escapes, and ends all of them as
soon as its channel is closed: by the client, or by the system when the client has ended.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn

from agentci.execution.child import apply_sandbox, kernel, tmpdir
from agentci.execution.child.seccomp import LoopbackSockets
from agentci.execution.child.socket_messages import (
    Message,
    receive,
    receive_with_descriptors,
    send,
    send_json,
)

# A killed process is gone in about a millisecond, a fork bomb in some seconds. A process that hangs
# in the kernel must not block this one.
MAX_KILL_SECONDS: Final = 20.0
PAUSE_SECONDS: Final = 0.0005
MAX_PAUSE_SECONDS: Final = 0.02
# Index among the fields of /proc/PID/stat after the name, from 0.
THREAD_COUNT_FIELD: Final = 17


def kill_descendants(record_exit: Callable[[int, int], None], *, user: int | None) -> bool:
    """Kill every descendant and wait for it; return whether none is left.

    Args:
        record_exit: called with the process id and wait status of each child that has ended.
        user: user id that only these descendants run as on this machine; None if they share theirs.
    """
    if not reap_children(record_exit):
        return True
    if user is not None:
        _kill_user_processes(user)
    deadline, pause = time.monotonic() + MAX_KILL_SECONDS, PAUSE_SECONDS
    # Ended processes are not reaped while others live: they count toward the process limit, which
    # keeps a fork bomb from replacing them.
    while (living := find_descendants()) or reap_children(record_exit):
        if time.monotonic() > deadline:
            return False
        kill_processes(living)
        time.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE_SECONDS)
    return True


def kill_processes(found: Mapping[int, int]) -> None:
    """Kill processes with their groups: no member of a killed group escapes by forking.

    Args:
        found: process id to process group.
    """
    ours = os.getpgrp()
    for group in {group for group in found.values() if group != ours}:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for number, group in found.items():
        if group == ours:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)


def reap_children(record_exit: Callable[[int, int], None]) -> bool:
    """Wait for the children that have ended; return whether any others are left."""
    try:
        while True:
            number, status = os.waitpid(-1, os.WNOHANG)
            if number == 0:
                return True
            record_exit(number, status)
    except ChildProcessError:
        return False


def find_descendants(*, excluded: Collection[int] = ()) -> Mapping[int, int]:
    """Find the living descendants of this process, except the children in ``excluded`` and theirs.

    Returns:
        Process id to process group.
    """
    children = _list_children()
    unseen = [each for each in children.get(os.getpid(), ()) if each[0] not in excluded]
    found: dict[int, int] = {}
    while unseen:
        number, group = unseen.pop()
        unseen += children.get(number, ())
        found[number] = group
    return found


def _list_children() -> Mapping[int, list[tuple[int, int]]]:
    """List all living processes as (process id, group), by the process id of their parent."""
    found: dict[int, list[tuple[int, int]]] = {}
    for name in _list_folder(b"/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError):
                stat = _read_file(b"/proc/%s/stat" % name)
                fields = stat.rpartition(b")")[2].split()
                if is_alive(fields):
                    found.setdefault(int(fields[1]), []).append((int(name), int(fields[2])))
    return found


def is_alive(fields: Sequence[bytes]) -> bool:
    """Whether a process has a running thread; its first thread may have ended already.

    Args:
        fields: the fields of /proc/PID/stat after the name.
    """
    return fields[0] != b"Z" or int(fields[THREAD_COUNT_FIELD]) > 1


def _kill_user_processes(user: int) -> None:
    """Kill all processes of ``user`` in one system call, which even a fork bomb cannot escape."""
    number = os.fork()
    if number == 0:
        try:
            kernel.set_user(user)
            # The current user decides which processes this kills: without certainty, kill none.
            if os.getresuid() == (user, user, user) and kernel.read_effective_capabilities() == 0:
                os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    with suppress(ChildProcessError):
        os.waitpid(number, 0)


def _list_folder(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read_file(path: bytes) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


STREAM_COUNT: Final = 3

# Interval between measurements of the private folder's size. A measurement of many files takes
# longer; it may take this share of the time.
SIZE_CHECK_MILLISECONDS: Final = 200
SIZE_CHECK_SHARE: Final = 0.1
EXIT_NOT_STARTED: Final = 127
# Python and the launcher ignore these signals. Programs, and the processes they signal, expect the
# default handlers.
RESET_SIGNALS: Final = (
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP,
)  # fmt: skip
MAX_DESCRIPTORS: Final = 1 << 20


class BecameProgram(BaseException):
    """This process is now the program; unwind all frames of agentci."""


def supervise(channel: socket.socket, *, become_program: Callable[[Message], None]) -> None:
    """Run the programs requested on ``channel``, and report their results on it.

    Each start request comes with stdin, stdout and stderr of its program. The program's environment
    follows as a separate message that only the program's process reads: forks of the supervisor
    have in their memory everything it has ever read, which would include secrets of earlier
    programs.

    The reports are ``failure`` if the program was not started, or ``ended`` with its ``code`` when
    nothing is left of it. If the program has ended but its processes have not, ``code`` is reported
    first, and ``ended`` follows after any message on the channel or its end.

    Args:
        become_program: turns a fork of this process into what exec would, and raises
            BecameProgram; returns if exec is needed.

    Raises:
        BecameProgram: in that fork.
    """
    with contextlib.suppress(OSError):
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    wakeup, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    may_continue = True
    while may_continue:
        start_request, streams = receive_with_descriptors(channel, STREAM_COUNT)
        may_continue = start_request is not None and _ProgramSupervisor(
            channel, start_request, become_program, wakeup
        ).run(streams)


class _ProgramSupervisor:
    def __init__(
        self,
        channel: socket.socket,
        start_request: Message,
        become_program: Callable[[Message], None],
        wakeup: int,
    ) -> None:
        self._channel = channel
        self._start_request = start_request
        self._become_program = become_program
        self._wakeup = wakeup
        self._user: int | None = (
            start_request["sandbox"]["user"] if start_request["sandbox"] else None
        )
        # None if the program shares its user: the user's processes and files may be others'.
        self._own_user: int | None = self._user if start_request["has_own_user"] else None
        self._leader = 0
        self._sockets: LoopbackSockets | None = None
        self._code: int | None = None
        self._exceeded_limit = ""
        self._next_check = 0.0

    def run(self, streams: Sequence[int]) -> bool:
        """Run the program, remove all that is left of it; return whether another may follow."""
        failure = self._prepare(streams) or self._start(streams)
        may_continue = failure is None and self._wait_for_end()
        if self._leader and self._code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, signal.SIGKILL)
        may_remain = not kill_descendants(self._record_exit, user=self._own_user)
        self._clean_up()
        ending = {
            "ended": True,
            "code": self._code,
            "may_remain": may_remain,
            "exceeded_limit": self._exceeded_limit,
        }
        self._report(ending if failure is None else {"failure": failure})
        return may_continue and not may_remain

    def _prepare(self, streams: Sequence[int]) -> Message | None:
        try:
            if self._start_request["scratch"] is not None:
                tmpdir.make_tmpdir(
                    self._start_request["scratch"], self._user, self._start_request["home_files"]
                )
            if self._user is not None:
                if self._start_request["writable"] is not None:
                    tmpdir.give_folder(self._start_request["writable"], self._user)
                for stream in streams:  # so that it can open /dev/stdin
                    os.fchown(stream, self._user, self._user)
        except OSError as error:
            return _make_failure(error, "scratch")
        return None

    def _start(self, streams: Sequence[int]) -> Message | None:
        """Start the program; return None once it runs, otherwise the reason why it does not."""
        reports, report = socket.socketpair()
        try:
            self._leader = os.fork()
        except OSError as error:
            return _make_failure(error, "fork")
        if self._leader == 0:
            reports.detach()
            _run_in_fork(self._start_request, streams, self._channel, report, self._become_program)
        report.close()
        for stream in streams:
            os.close(stream)
        with reports:
            failure, descriptors = receive_with_descriptors(reports, 1)
            if descriptors:
                self._sockets = LoopbackSockets(*descriptors)
                failure = receive(reports)
        return failure

    def _wait_for_end(self) -> bool:
        """Wait for the program's end; return whether the supervisor may be used again.

        Returns at once if the program ends and leaves no process. Otherwise reports its exit code
        and waits for a message (True) or the channel's end (False). An exceeded disk limit also
        ends the wait (False).
        """
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        if self._sockets is not None:
            poll.register(self._sockets, select.POLLIN)
        unreported = True
        while not self._exceeds_disk_limit():
            ready = {descriptor for descriptor, _ in poll.poll(self._poll_timeout())}
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
            sockets = self._sockets
            if sockets is not None and sockets.fileno() in ready and not sockets.handle_request():
                poll.unregister(sockets)
            others = reap_children(self._record_exit)
            if unreported and self._code is not None:
                if not others:
                    return True
                unreported = False
                self._report({"code": self._code})
            if self._channel.fileno() in ready:
                return receive(self._channel) is not None
        return False

    def _poll_timeout(self) -> int | None:
        if not self._start_request["folder_bytes"] or self._code is not None:
            return None
        return max(0, 1 + int((self._next_check - time.monotonic()) * 1000))

    def _exceeds_disk_limit(self) -> bool:
        """Whether the program's folders have exceeded their size limit."""
        limit, start = self._start_request["folder_bytes"], time.monotonic()
        if not limit or start < self._next_check:
            return bool(self._exceeded_limit)
        folders = [self._start_request["scratch"], self._start_request["writable"]]
        if tmpdir.measure_size([each for each in folders if each], limit) >= limit:
            self._exceeded_limit = f"wrote more than {limit // 1024**2} MiB of files and was killed"
        end = time.monotonic()
        pause = max(SIZE_CHECK_MILLISECONDS / 1000, (end - start) / SIZE_CHECK_SHARE)
        self._next_check = end + pause
        return bool(self._exceeded_limit)

    def _record_exit(self, number: int, status: int) -> None:
        if number == self._leader:
            self._code = os.waitstatus_to_exitcode(status)

    def _clean_up(self) -> None:
        if self._sockets is not None:
            self._sockets.close()
        if self._start_request["scratch"] is not None:
            owner = os.geteuid() if self._user is None else self._user
            tmpdir.remove_tmpdir(self._start_request["scratch"], owner=owner)
        if self._own_user is not None:
            tmpdir.clear_shared_memory(self._own_user)

    def _report(self, message: Message) -> None:
        with contextlib.suppress(OSError):  # the client has ended
            send_json(self._channel, message)


def _run_in_fork(
    start_request: Message,
    streams: Sequence[int],
    channel: socket.socket,
    report: socket.socket,
    become_program: Callable[[Message], None],
) -> NoReturn:
    """Become the program of ``start_request``; report any error that prevents it."""
    stage = "start"
    try:
        start_request["environment"] = receive(channel)
        _reset_process(channel, streams, report.fileno())
        stage = "cwd"
        os.chdir(start_request["cwd"])
        if start_request["sandbox"] is not None:
            stage = "sandbox"
            listener = apply_sandbox.enter_sandbox(start_request["sandbox"])
            if listener is not None:
                send(report, {}, [listener])
                os.close(listener)
        stage = "start"
        try:
            become_program(start_request)
        except BecameProgram:
            report.close()
            raise
        command = start_request["command"]
        os.execvpe(command[0], command, start_request["environment"])  # noqa: S606 (starts the program)
    except BecameProgram:
        raise
    except BaseException as error:  # noqa: BLE001 (a fork must not go on as its parent)
        try:
            send(report, _make_failure(error, stage))
        finally:
            os._exit(EXIT_NOT_STARTED)


def _reset_process(channel: socket.socket, streams: Sequence[int], report: int) -> None:
    """Reset signals, start a session, and close all descriptors but the streams and ``report``.

    The streams become descriptors 0, 1 and 2.
    """
    channel.detach()
    signal.set_wakeup_fd(-1)
    for number in (*RESET_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
    os.closerange(len(streams), report)
    os.closerange(report + 1, MAX_DESCRIPTORS)


def _make_failure(error: BaseException, stage: str) -> Message:
    number = getattr(error, "errno", None)
    reason = getattr(error, "strerror", None) or str(error)
    return {"stage": stage, "errno": number, "reason": reason}


# Prefix of a request; the names of modules that the program will import follow.
SUPERVISOR_REQUEST: Final = b"!"
SEPARATOR: Final = b","
MAX_REQUEST_BYTES: Final = 4096


def main(descriptor: int) -> None:
    """Start a supervisor for each request, until the other end of the channel is closed."""
    LauncherServer(open_channel(descriptor)).serve()


def open_channel(descriptor: int) -> socket.socket:
    """Open the channel to the client, and leave the end of programs to the client.

    This process becomes a subreaper, is not dumpable (programs of its user cannot inspect it), and
    ignores SIGINT, SIGTERM and SIGHUP.
    """
    with suppress(OSError):
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the client decides when programs end
    return socket.socket(fileno=descriptor)


class LauncherServer:
    """Starts supervisors, each a fork of this process.

    Args:
        preload: called with the names of a program's modules before its supervisor is started.
        become_program: see :func:`agentci.execution.child.supervisor.supervise`.
    """

    def __init__(
        self,
        channel: socket.socket,
        *,
        preload: Callable[[Sequence[str]], None] = lambda _: None,
        become_program: Callable[[Message], None] = lambda _: None,
    ) -> None:
        self._channel = channel
        self._preload = preload
        self._become_program = become_program
        self._supervisors: set[int] = set()

    def serve(self) -> None:
        """Start supervisors and reap them, until the channel is closed and all have ended."""
        self._wakeup, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        send_json(self._channel, apply_sandbox.find_capabilities())
        gc.freeze()
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        is_open = True
        while is_open or self._supervisors:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
                reap_children(self._forget_supervisor)
            if self._channel.fileno() in ready:
                is_open = self._start()
                if not is_open:
                    poll.unregister(self._channel)

    def _start(self) -> bool:
        """Start one supervisor; return False if the channel is closed."""
        request, descriptors, _, _ = socket.recv_fds(self._channel, MAX_REQUEST_BYTES, 1)
        if not request:
            return False
        self._preload(request.removeprefix(SUPERVISOR_REQUEST).decode().split(SEPARATOR.decode()))
        try:
            number = os.fork()
        except OSError:
            number = -1  # the client sees its channel closed
        if number == 0:
            self._run_supervisor(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        if number > 0:
            self._supervisors.add(number)
        return True

    def _run_supervisor(self, channel: int) -> None:
        try:
            signal.set_wakeup_fd(-1)
            for descriptor in (self._channel.detach(), self._wakeup, self._wake):
                os.close(descriptor)
            supervise(socket.socket(fileno=channel), become_program=self._become_program)
            os._exit(0)
        except BecameProgram:
            raise
        except BaseException:  # noqa: BLE001 (a fork must not go on as its parent)
            os._exit(1)

    def _forget_supervisor(self, number: int, status: int) -> None:
        """Forget a supervisor; if it was killed, end its processes, which this process adopted."""
        if number in self._supervisors:
            self._supervisors.discard(number)
            if status != 0:
                kill_processes(find_descendants(excluded=self._supervisors))
