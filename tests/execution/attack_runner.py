"""Runs attack programs against this process, which holds a secret, and prints their results.

``python -m tests.execution.attack_runner FOLDER [NAME ...]`` needs ``ATTACK_SECRET`` in the
environment. With ``ATTACK_FORKS``, the attacks are forks of a preloaded interpreter, whose packages
are untrusted if the value is ``with untrusted packages``.
"""

import contextlib
import ctypes
import json
import os
import socket
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentci._util.workspace import trust_path
from agentci.errors import EvaluatorError
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.launcher_client import LAUNCHER_POOL
from agentci.execution.local import LocalExecutor
from tests.helpers.support import EVALUATORS
from tests.helpers.waiting import NO_TIMEOUT_SECONDS, wait_until

ATTACKS = EVALUATORS / "attacks"
SECRET = "ATTACK_SECRET"
FORKS = "ATTACK_FORKS"
WITH_UNTRUSTED_PACKAGES = "with untrusted packages"

# These have a network; local sockets must be out of reach even then.
WITH_NETWORK = {"connects_to_sockets_of_this_machine"}
# These may connect to one local port.
WITH_PORT = {"goes_past_its_port"}
MEMORY_MB = 512
PROCESSES = 64
FILE_MB = 64
FOLDER_MB = 128
# More processes than any limit allows.
MOST_FORKS = 8000


def main() -> None:
    folder, *names = sys.argv[1:]
    with _make_targets(Path(folder)) as targets:
        executor = LocalExecutor()
        with _run_other_program(executor, targets):
            found = {name: _run_attack(executor, name, targets) for name in names}
        LAUNCHER_POOL.close()
        left = [str(path) for path in Path(targets["temporary"]).iterdir()]
    facts = {"limitations": [*executor.limitations()], "user": os.geteuid(), "left": left}
    sys.stdout.write(json.dumps({"found": found, **facts}))


@contextlib.contextmanager
def _make_targets(folder: Path) -> Iterator[dict[str, Any]]:
    """The targets of the attacks: files, sockets, a log and shared memory."""
    runner, workspace, temporary = (folder / name for name in ("runner", "workspace", "temporary"))
    for each in (runner, workspace, temporary):
        each.mkdir()
    temporary.chmod(0o1777)
    (runner / "credentials").write_text("s3cr3t")
    (runner / "credentials").chmod(0o600)
    (runner / "set_env").write_text("")
    with contextlib.ExitStack() as stack:
        ports = {
            host: stack.enter_context(_listener(family, (host, 0))).getsockname()[1]
            for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))
            if family != socket.AF_INET6 or _has_ipv6()
        }
        door = stack.enter_context(_listener(socket.AF_INET, ("127.0.0.1", 0)))
        abstract = f"\0attack-{uuid.uuid4().hex}"
        engine = str(runner / "engine.sock")
        for address in (abstract, engine):
            stack.enter_context(_listener(socket.AF_UNIX, address))
        Path(engine).chmod(0o660)
        letterboxes = (f"\0attack-letters-{uuid.uuid4().hex}", str(folder / "letters.sock"))
        for address in letterboxes:
            stack.enter_context(_open_log_socket(address))
        yield {
            "pid": os.getpid(),
            "secret": os.environ[SECRET],
            "runner": str(runner),
            "workspace": str(workspace),
            "home": os.environ.get("HOME", "/root"),
            "temporary": str(temporary),
            "ports": {"::1": 9, **ports},
            "door": door.getsockname()[1],
            "engine": engine,
            "abstract": abstract,
            "letterboxes": letterboxes,
            "segment": stack.enter_context(_shared_segment()),
            "most": MOST_FORKS,
            "word": f"attack-{uuid.uuid4().hex}",
        }


def _listener(family: int, address: Any) -> socket.socket:
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen(64)
    return listener


def _open_log_socket(address: str) -> socket.socket:
    """Open a datagram socket that all local users may send to, like that of the system log."""
    letterbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    letterbox.bind(address)
    if not address.startswith("\0"):
        Path(address).chmod(0o666)
    return letterbox


@contextlib.contextmanager
def _shared_segment() -> Iterator[int]:
    """The id of a System V shared memory segment that all users may use."""
    private, create_for_all, remove = 0, 0o1666, 0
    libc = ctypes.CDLL(None)
    number = libc.shmget(private, 4096, create_for_all)
    try:
        yield number
    finally:
        libc.shmctl(number, remove, None)


def _has_ipv6() -> bool:
    try:
        _listener(socket.AF_INET6, ("::1", 0)).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _run_other_program(executor: LocalExecutor, targets: dict[str, Any]) -> Iterator[None]:
    """Keep another program of the same run running."""
    sleeper = threading.Thread(target=_run, args=(executor, "sleeps", targets, NO_TIMEOUT_SECONDS))
    sleeper.start()
    try:
        wait_until(lambda: any((path / "tmp").exists() for path in _private_folders(targets)))
        yield
    finally:
        executor.stop()
        sleeper.join()


def _run_attack(executor: LocalExecutor, name: str, targets: dict[str, Any]) -> dict[str, Any]:
    """Run one attack; return its result and what it left behind."""
    before = {*_private_folders(targets)}
    seconds = 1.5 if name.startswith("never_stops") else NO_TIMEOUT_SECONDS
    found = _run(executor, name, targets, seconds)
    living = [path for path in Path("/proc").glob("[0-9]*") if targets["word"] in _line(path)]
    left = [str(path) for path in {*_private_folders(targets)} - before]
    return found | {"living": len(living), "left": left}


def _private_folders(targets: dict[str, Any]) -> Iterator[Path]:
    warm_python = "agentci-*/tmp/" if os.environ.get(FORKS) == WITH_UNTRUSTED_PACKAGES else ""
    yield from Path(targets["temporary"]).glob(f"{warm_python}agentci-*")


def _run(
    executor: LocalExecutor, name: str, targets: dict[str, Any], timeout_seconds: float
) -> dict[str, Any]:
    program = ATTACKS / f"{name}.py"
    try:
        response = executor.run(
            (sys.executable, str(program), targets["word"] if name != "sleeps" else ""),
            stdin=json.dumps(targets).encode(),
            timeout_seconds=timeout_seconds,
            cwd=Path(targets["workspace"]),
            environment=make_child_environment({**os.environ, "TMPDIR": targets["temporary"]}),
            sandbox_policy=SandboxPolicy(
                network=name in WITH_NETWORK,
                port=targets["door"] if name in WITH_PORT else None,
                readable=(trust_path(ATTACKS), trust_path(Path(targets["workspace"]))),
                memory_mb=MEMORY_MB,
                processes=PROCESSES,
                file_mb=FILE_MB,
                folder_mb=FOLDER_MB,
                imports=() if FORKS in os.environ else None,
                untrusted_packages=os.environ.get(FORKS) == WITH_UNTRUSTED_PACKAGES
                and name not in WITH_PORT,
            ),
        )
    except EvaluatorError as error:
        return {"error": str(error)}
    try:
        details = json.loads(response.stdout)["details"]
    except ValueError:
        return {"error": f"exit code {response.exit_code}: {response.stderr[-2000:]}"}
    return {**details, "code": response.exit_code}


def _line(process: Path) -> str:
    """The command line of a process whose first thread may have ended."""
    found = b""
    with contextlib.suppress(OSError):
        for thread in (process / "task").iterdir():
            found = found or (thread / "cmdline").read_bytes()
    return found.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
