"""A sandboxed program that may connect to one local port and to nothing else."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.local import LocalExecutor
from tests.helpers.support import ROOT
from tests.helpers.waiting import NO_TIMEOUT_SECONDS

CONNECTS = """\
import concurrent.futures, fcntl, json, os, socket, sys
port = int(sys.argv[1])

def connect(_):
    with socket.create_connection(("127.0.0.1", port)) as one:
        return one.recv(10).decode()

def is_nonblocking(kind):
    with socket.socket(socket.AF_INET, kind, socket.IPPROTO_TCP) as one:
        return fcntl.fcntl(one, fcntl.F_GETFL) & os.O_NONBLOCK

with concurrent.futures.ThreadPoolExecutor(16) as pool:
    said = [*pool.map(connect, range(100))]
with socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as one:
    closes = fcntl.fcntl(one, fcntl.F_GETFD)
if os.fork() == 0:
    print(connect(None), flush=True)
    os._exit(0)
os.wait()
print(json.dumps([said, is_nonblocking(socket.SOCK_STREAM | socket.SOCK_NONBLOCK), closes]))
"""
# As in a container whose engine has already installed a seccomp listener.
WITH_EXISTING_LISTENER = """\
import ctypes, sys
from pathlib import Path
from agentci.errors import EvaluatorError
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.local import LocalExecutor
from agentci.execution.child import kernel, seccomp

kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install_filter(seccomp.INSTRUCTION.pack(seccomp.RETURN, 0, 0, seccomp.ALLOW), notify=True)
for port in (None, 80):
    try:
        reply = LocalExecutor().run(
            ("/bin/echo", "ran"), stdin=b"", timeout_seconds=900, cwd=Path("/"), environment={},
            sandbox_policy=SandboxPolicy(network=False, port=port),
        )
        print(reply.stdout.decode().strip())
    except EvaluatorError as error:
        print(error)
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="ports are restricted only on Linux"
)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
        yield listener


@pytest.mark.parametrize("imports", [None, ()], ids=["spawned", "forked"])
def test_program_and_its_child_connect_to_allowed_port(
    listener: socket.socket, tmp_path: Path, imports: tuple[str, ...] | None
) -> None:
    def greet() -> None:
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as connection:
                    connection.sendall(b"hello")

    greeting = threading.Thread(target=greet)
    greeting.start()
    (tmp_path / "p.py").write_text(CONNECTS)
    port = listener.getsockname()[1]
    try:
        response = LocalExecutor().run(
            (sys.executable, str(tmp_path / "p.py"), str(port)),
            stdin=b"",
            timeout_seconds=NO_TIMEOUT_SECONDS,
            cwd=tmp_path,
            environment=make_child_environment({}),
            sandbox_policy=SandboxPolicy(network=False, port=port, imports=imports),
        )
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        greeting.join()
    forked, line = response.stdout.decode().splitlines()
    result: Any = json.loads(line)
    assert (forked, response.stderr, response.exit_code) == ("hello", "", 0)
    assert result == [["hello"] * 100, os.O_NONBLOCK, 1]


def test_port_without_seccomp_notifications_raises_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITH_EXISTING_LISTENER],
        cwd="/",
        env={"PYTHONPATH": str(ROOT), "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=True,
    )
    without, with_port = done.stdout.splitlines()
    assert without == "ran"
    assert with_port.startswith("could not be sandboxed: this kernel does not support seccomp")
