"""Write to a child's stdin and read its output in one thread, without deadlock, within limits."""

import os
import selectors
from functools import partial
from typing import IO, Final, Protocol

from agentci.errors import EvaluatorError
from agentci.execution.executor_api import MEBIBYTE

MAX_OUTPUT_BYTES: Final = 10 * MEBIBYTE
# Only the end of stderr is kept, but the total is limited too.
MAX_LOG_BYTES: Final = 64 * MEBIBYTE
KEPT_LOG_BYTES: Final = 64 * 1024
CHUNK_BYTES: Final = 64 * 1024


class OutputBuffer:
    """The last bytes of a stream.

    Args:
        stream: its name in the error message.
        limit: maximum number of bytes received; more is an error.
        kept: number of bytes kept from the end.
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
        """Add ``chunk``.

        Raises:
            EvaluatorError: the stream has exceeded its limit.
        """
        self._received += len(chunk)
        if self._received > self._limit:
            size = f"{self._limit // MEBIBYTE} MiB"
            raise EvaluatorError(f"printed more than {size} to {self._stream} and was killed")
        self._bytes += chunk
        if len(self._bytes) > 2 * self._kept:
            del self._bytes[: -self._kept]


class PipedChild(Protocol):
    """A child process: this process's ends of its pipes, and a descriptor that reports its end."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def fileno(self) -> int:
        """Return a descriptor that is readable when the child has a report."""
        ...


class ChildPipes:
    """The pipes of a child, served step by step until the other ends are closed.

    Attributes:
        output: what the child printed to stdout.
        log: what the child printed to stderr.
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
        """Whether any process still holds stdout or stderr open."""
        return self._open_outputs > 0

    def step(self, seconds: float) -> None:
        """Wait up to ``seconds`` for a pipe or a report of the child, then transfer what is ready.

        Raises:
            EvaluatorError: the child exceeded an output limit.
        """
        for key, _ in self._selector.select(seconds):
            key.data()

    def ignore_child(self, child: PipedChild) -> None:
        """Stop waiting for reports of the child itself."""
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
        except BrokenPipeError:  # the child may stop reading at any time
            sent = len(self._unsent)
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._selector.unregister(stream)
            stream.close()
