"""What launchers and wards tell us: believed no more than what a program prints.

Where packages are imported that nobody vouches for, their code may speak in a launcher's place.
"""

import select
import socket
import time
from typing import Annotated, Final, Generic, TypedDict, TypeVar

import msgspec
from msgspec import Meta, Struct

from agentci.execution.child.messages import LENGTH

# More than any of them says.
MOST_BYTES: Final = 64 * 1024

Kind = TypeVar("Kind")


class Facts(TypedDict):
    """What a jail can do on this machine, see ``agentci.execution.child.capabilities``."""

    system: str
    users: int | None
    tasks: int
    searches: bool
    searching: bool
    root: bool
    landlock: int
    filters: bool
    machine: str


class Refusal(Struct, frozen=True):
    """Why a program was not started; see ``agentci.execution.child.supervisor``."""

    stage: str
    errno: int | None
    reason: str


class Answer(Struct, frozen=True):
    """What became of a program; see ``agentci.execution.child.supervisor``."""

    code: Annotated[int, Meta(ge=-64, le=255)] | None = None
    gone: bool = False
    left: bool = False
    excess: str = ""
    refusal: Refusal | None = None


class Answers(Generic[Kind]):
    """Answers of one kind, which may come in pieces.

    Args:
        channel: to whoever gives them.
    """

    def __init__(self, channel: socket.socket, kind: type[Kind]) -> None:
        self._channel = channel
        self._decoder = msgspec.json.Decoder(kind)
        self._heard = bytearray()
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)

    def next(self, seconds: float) -> Kind | None:
        """The next one; None where there will be none, or it makes no sense.

        Raises:
            TimeoutError: it has not come whole in that time.
        """
        deadline = time.monotonic() + seconds
        while (size := self._missing()) > 0:
            if not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError
            try:
                chunk = self._channel.recv(size)
            except ConnectionError:
                return None
            if not chunk:
                return None
            self._heard += chunk
        try:
            return self._decoder.decode(self._heard[LENGTH.size :]) if size == 0 else None
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None
        finally:
            self._heard.clear()

    def _missing(self) -> int:
        """How many bytes are to come of what is known to come; below 0 where it is too much."""
        known = LENGTH.size
        if len(self._heard) >= known:
            [length] = LENGTH.unpack_from(self._heard)
            if length > MOST_BYTES:
                return -1
            known += length
        return known - len(self._heard)
