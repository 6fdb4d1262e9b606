"""Feeds a child and listens to it: in one thread, without deadlock, within bounds."""

import os
import selectors
from functools import partial
from typing import IO, Final, Protocol

from agentci.errors import EvaluatorError

MEBIBYTE: Final = 1024**2
MAX_OUTPUT_BYTES: Final = 10 * MEBIBYTE
# Only the end of stderr is kept, but nobody may write to it for ever either.
MAX_LOG_BYTES: Final = 64 * MEBIBYTE
KEPT_LOG_BYTES: Final = 64 * 1024
CHUNK_BYTES: Final = 64 * 1024


class OutputBuffer:
    """The last bytes of a stream.

    Args:
        stream: its name, for the message.
        limit: how many bytes may come; more is an error.
        kept: how many of them, the last ones, are of use.
    """

    def __init__(self, stream: str, *, limit: int, kept: int) -> None:
        self._stream = stream
        self._limit = limit
        self._kept = kept
        self._received = 0
        self._bytes = bytearray()

    def __bytes__(self) -> bytes:
        return bytes(self._bytes[-self._kept :])

    def append(self, chunk: bytes) -> None:
        """Keep ``chunk``.

        Raises:
            EvaluatorError: the stream is over its limit.
        """
        self._received += len(chunk)
        if self._received > self._limit:
            size = f"{self._limit // MEBIBYTE} MiB"
            raise EvaluatorError(f"printed more than {size} to {self._stream} and was ended")
        self._bytes += chunk
        if len(self._bytes) > 2 * self._kept:
            del self._bytes[: -self._kept]


class PipedChild(Protocol):
    """Whoever has three pipes, ours the other ends of them, and says when it has ended."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def fileno(self) -> int:
        """What can be read from as soon as it has something to say."""
        ...


class ChildPipes:
    """The pipes of a child, moved on step by step until whoever holds them closes them.

    Attributes:
        output, log: what came on stdout and on stderr.
    """

    def __init__(self, child: PipedChild, stdin: bytes) -> None:
        self.output = OutputBuffer("stdout", limit=MAX_OUTPUT_BYTES, kept=MAX_OUTPUT_BYTES)
        self.log = OutputBuffer("stderr", limit=MAX_LOG_BYTES, kept=KEPT_LOG_BYTES)
        self._unsent = memoryview(stdin)
        self._selector = selectors.PollSelector()
        self._open_outputs = 0
        self._selector.register(child, selectors.EVENT_READ, lambda: None)
        self._register_output(child.stdout, self.output)
        self._register_output(child.stderr, self.log)
        self._register_input(child.stdin)

    @property
    def open(self) -> bool:
        """Whether anybody can still print."""
        return self._open_outputs > 0

    def step(self, seconds: float) -> None:
        """Move what can be moved, after up to ``seconds``; at once when the child says something.

        Raises:
            EvaluatorError: the child printed more than is bearable.
        """
        for key, _ in self._selector.select(seconds):
            key.data()

    def ignore_child(self, child: PipedChild) -> None:
        """Have no ear any more for what the child says itself."""
        self._selector.unregister(child)

    def _register_output(self, stream: IO[bytes], sink: OutputBuffer) -> None:
        self._selector.register(stream, selectors.EVENT_READ, partial(self._read, stream, sink))
        self._open_outputs += 1

    def _register_input(self, stream: IO[bytes]) -> None:
        os.set_blocking(stream.fileno(), False)
        self._selector.register(stream, selectors.EVENT_WRITE, partial(self._write, stream))

    def _read(self, stream: IO[bytes], sink: OutputBuffer) -> None:
        chunk = os.read(stream.fileno(), CHUNK_BYTES)
        if chunk:
            sink.append(chunk)
        else:
            self._selector.unregister(stream)
            self._open_outputs -= 1

    def _write(self, stream: IO[bytes]) -> None:
        try:
            sent = os.write(stream.fileno(), self._unsent[:CHUNK_BYTES])
        except BrokenPipeError:  # it may stop reading whenever it likes
            sent = len(self._unsent)
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._selector.unregister(stream)
            stream.close()
