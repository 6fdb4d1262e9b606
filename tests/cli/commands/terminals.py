"""A pseudo-terminal for tests."""

import os
import struct
import termios
import tty
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from threading import Thread

from agentci.cli.main import run_command
from agentci.model.values import replace
from tests.helpers.support import make_session


def shown_on_terminal(
    arguments: Sequence[str],
    *,
    cwd: Path,
    columns: int = 80,
    environ: Mapping[str, str] | None = None,
) -> str:
    """Run the command line on a terminal of ``columns`` columns and return its output."""
    master, slave = os.openpty()
    tty.setraw(slave)
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    received = bytearray()
    reader = Thread(target=_read, args=(master, received))
    reader.start()
    try:
        with open(slave, "w", encoding="utf-8") as out:  # noqa: PTH123 (a descriptor)
            run_command(arguments, replace(make_session(cwd, environ or {}), out=out))
    finally:
        reader.join()
        os.close(master)
    return received.decode()


def _read(master: int, received: bytearray) -> None:
    try:
        while chunk := os.read(master, 65536):
            received += chunk
    except OSError:
        return  # Linux raises EIO when the other end is closed
