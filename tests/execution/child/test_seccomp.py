"""The system calls that a sandboxed program may make, for each architecture."""

import errno
import os
import re
import struct
from pathlib import Path

import pytest

from agentci.execution.child import apply_sandbox, kernel, seccomp
from tests.execution.child.bpf import verdict

HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}
# Some calls that every program needs: read, write, open, mmap, execve, exit, wait4, pipe2.
HARMLESS = {
    "x86_64": (0, 1, 2, 9, 59, 60, 61, 293),
    "aarch64": (63, 64, 56, 222, 221, 93, 260, 59),
}
REFUSED = seccomp.RETURN_ERRNO | errno.EPERM
UNKNOWN = seccomp.RETURN_ERRNO | errno.ENOSYS

machines = pytest.mark.parametrize("machine", ["x86_64", "aarch64"])


def _verdict(machine: str, number: int, *, network: bool = True, argument: int = 0) -> int:
    return verdict(
        seccomp.make_filter(machine, network=network),
        architecture=seccomp.ARCHITECTURES[machine],
        number=number,
        argument=argument,
    )


@machines
class TestFilter:
    def test_required_system_calls_are_allowed(self, machine: str) -> None:
        verdicts = {_verdict(machine, number, network=False) for number in HARMLESS[machine]}
        assert verdicts == {seccomp.ALLOW}

    def test_unneeded_system_calls_are_refused(self, machine: str) -> None:
        calls = seccomp.SYSTEM_CALLS[machine]
        for name in calls.keys() - seccomp.CONDITIONAL_CALLS:
            assert _verdict(machine, calls[name]) == REFUSED, name

    def test_sockets_are_refused_without_network(self, machine: str) -> None:
        number = seccomp.SYSTEM_CALLS[machine]["socket"]
        assert _verdict(machine, number, network=False) == REFUSED
        assert _verdict(machine, number, network=True) == seccomp.ALLOW

    def test_unix_sockets_are_refused_without_local_access(self, machine: str) -> None:
        program = seccomp.make_filter(machine, network=True, local=False)
        actions = {
            family: verdict(
                program,
                architecture=seccomp.ARCHITECTURES[machine],
                number=seccomp.SYSTEM_CALLS[machine]["socket"],
                argument=family,
            )
            for family in (1, 2, 10)
        }
        assert actions == {1: REFUSED, 2: seccomp.ALLOW, 10: seccomp.ALLOW}

    @pytest.mark.parametrize(
        "options",
        [{"network": False}, {"network": True, "local": False}, {"notify": True}],
        ids=str,
    )
    def test_only_connected_unix_socket_pairs_are_allowed(
        self, machine: str, options: dict[str, bool]
    ) -> None:
        program = seccomp.make_filter(machine, **{"network": False, **options})

        def action(family: int, kind: int) -> int:
            return verdict(
                program,
                architecture=seccomp.ARCHITECTURES[machine],
                number=seccomp.SYSTEM_CALLS[machine]["socketpair"],
                first=family,
                place=1,
                argument=kind,
            )

        unix, tipc, stream, datagram, raw, packets = 1, 30, 1, 2, 3, 5
        flags = os.O_CLOEXEC | os.O_NONBLOCK
        assert {action(unix, kind | flags) for kind in (stream, packets)} == {seccomp.ALLOW}
        assert {action(unix, kind | flags) for kind in (datagram, raw)} == {REFUSED}
        assert action(tipc, stream) == REFUSED

    def test_all_socket_pairs_are_allowed_with_network(self, machine: str) -> None:
        number = seccomp.SYSTEM_CALLS[machine]["socketpair"]
        assert _verdict(machine, number, network=True) == seccomp.ALLOW

    def test_limits_of_other_processes_cannot_be_changed(self, machine: str) -> None:
        number = seccomp.SYSTEM_CALLS[machine]["prlimit64"]
        assert _verdict(machine, number, argument=0) == seccomp.ALLOW
        assert _verdict(machine, number, argument=4711) == REFUSED

    def test_sockets_cause_notification_if_port_is_allowed(self, machine: str) -> None:
        calls, fast_open, urgent = seccomp.SYSTEM_CALLS[machine], 0x20000000, 1
        program = seccomp.make_filter(machine, network=False, local=False, notify=True)

        def action(name: str, place: int = 0, argument: int = 0) -> int:
            return verdict(
                program,
                architecture=seccomp.ARCHITECTURES[machine],
                number=calls[name],
                argument=argument,
                place=place,
            )

        assert {action("socket", argument=family) for family in (1, 2, 10)} == {seccomp.NOTIFY}
        assert {action(name) for name in ("bind", "listen")} == {REFUSED}
        for name, place in {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}.items():
            assert action(name, place, fast_open | urgent) == REFUSED
            assert action(name, place, urgent) == seccomp.ALLOW
        assert action("clone", argument=0x10000000 | 17) == REFUSED

    def test_fork_is_allowed_and_new_namespace_refused(self, machine: str) -> None:
        number = seccomp.SYSTEM_CALLS[machine]["clone"]
        thread, new_user, new_network = 0x3D0F00, 0x10000000 | 17, 0x40000000 | 17
        assert _verdict(machine, number, argument=thread) == seccomp.ALLOW
        assert _verdict(machine, number, argument=new_user) == REFUSED
        assert _verdict(machine, number, argument=new_network) == REFUSED

    def test_clone3_returns_not_implemented(self, machine: str) -> None:
        assert _verdict(machine, seccomp.SYSTEM_CALLS[machine]["clone3"]) == UNKNOWN

    def test_call_for_other_architecture_kills_process(self, machine: str) -> None:
        i386 = 0x40000003
        program = seccomp.make_filter(machine, network=True)
        assert verdict(program, architecture=i386, number=0) == seccomp.KILL_PROCESS

    def test_filter_is_within_kernel_size_limit(self, machine: str) -> None:
        program = seccomp.make_filter(machine, network=False)
        assert len(program) // seccomp.INSTRUCTION.size < 4096

    def test_system_call_numbers_match_kernel_header(self, machine: str) -> None:
        header = Path(HEADERS[machine])
        if not header.is_file():
            pytest.skip(f"{header} is not installed")
        defined = re.findall(
            r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", header.read_text(), re.MULTILINE
        )
        known = {name: int(number) for name, number in defined}
        ours = seccomp.SYSTEM_CALLS[machine]
        assert {name: known[name] for name in ours.keys() & known} == {
            name: ours[name] for name in ours.keys() & known
        }
        assert len(ours.keys() & known) >= len(ours) - 1  # the newest call may be missing


def test_x32_calls_return_not_implemented() -> None:
    assert _verdict("x86_64", seccomp.X32_BIT | 41) == UNKNOWN


def test_unknown_architecture_raises_key_error() -> None:
    with pytest.raises(KeyError):
        seccomp.make_filter("riscv64", network=True)


def test_failed_system_call_raises_os_error() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        kernel.prctl(kernel.PR_SET_DUMPABLE, 99)
    with pytest.raises(OSError, match="Bad file descriptor"):
        apply_sandbox.restrict_self(10_000, 0)
    with pytest.raises(OSError, match="Operation not permitted"):
        kernel.capset(struct.pack("=Ii", kernel.CAPABILITY_VERSION_3, os.getppid()), bytes(24))
    assert os.getpid() == kernel.syscall({"x86_64": 39}.get(os.uname().machine, 172))()
