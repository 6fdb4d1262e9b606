"""Limit the processor time and the memory that this process spends on reading one input.

The limits grow with the size of the input. They hold only in the main thread, which reads all files
that users name, and only after ``enable_input_limits``.
"""

import math
import resource
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from agentci.errors import InputError
from agentci.model.values import COMMAND_LINE, Place

# Far above what any realistic input needs.
BASE_SECONDS: Final = 60.0
SECONDS_PER_BYTE: Final = 5.0 / 1024**2
BASE_MEMORY_BYTES: Final = 2 * 1024**3
MEMORY_PER_BYTE: Final = 32

# Environment variable with a number by which both limits are multiplied.
FACTOR_VARIABLE: Final = "AGENTCI_INPUT_LIMITS"
# Index of the data and stack pages in /proc/self/statm; see proc(5).
DATA_PAGES: Final = 5


class _TimeLimitReached(BaseException):
    """The processor time is spent; a BaseException, so that error handlers do not catch it."""


class _Limits:
    """The limits on the input that is read now, and on those that it is a part of.

    Attributes:
        factor: by which the limits are multiplied; 0 for no limits.
    """

    def __init__(self) -> None:
        self.factor = 0.0
        self._is_armed = False
        # Seconds left for the inputs that the current one is a part of, outermost first.
        self._outer: list[float] = []
        self._depth = 0
        self._soft_limit = resource.RLIM_INFINITY

    def start(self) -> None:
        """Start to read an input, which may be a part of another."""
        if self._depth:
            self._outer.append(self._disarm())
        else:
            self._soft_limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
        self._depth += 1
        self._set_memory(_measure_data_bytes() + int(self.factor * BASE_MEMORY_BYTES))
        self._arm(self.factor * BASE_SECONDS)

    def end(self) -> None:
        """End what ``start`` has started."""
        self._depth -= 1
        if not self._depth:
            # First of all: there may be no memory left for anything else.
            with suppress(OSError, ValueError):
                _, hard = resource.getrlimit(resource.RLIMIT_DATA)
                resource.setrlimit(resource.RLIMIT_DATA, (self._soft_limit, hard))
        self._disarm()
        if self._depth:
            self._arm(self._outer.pop())

    def add(self, size: int) -> None:
        """Raise the limits for ``size`` more bytes of the current input."""
        if self._depth:
            seconds = self.factor * SECONDS_PER_BYTE * size
            self._outer = [left + seconds for left in self._outer]
            self._arm(self._disarm() + seconds)
            soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
            if soft != resource.RLIM_INFINITY:
                self._set_memory(soft + int(self.factor * MEMORY_PER_BYTE * size))

    def handle_signal(self, *_: object) -> None:
        """Handle the signal of the timer."""
        if self._is_armed:
            raise _TimeLimitReached

    def _arm(self, seconds: float) -> None:
        self._is_armed = True
        # A timer of 0 seconds would never end.
        signal.setitimer(signal.ITIMER_PROF, max(seconds, 1e-3))

    def _disarm(self) -> float:
        """Stop the timer; return the seconds left."""
        self._is_armed = False
        return signal.setitimer(signal.ITIMER_PROF, 0)[0]

    def _set_memory(self, limit: int) -> None:
        """Limit the memory to ``limit`` bytes, unless it was limited to less."""
        with suppress(OSError, ValueError):  # such as a system without this limit
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            known = [each for each in (self._soft_limit, hard) if each != resource.RLIM_INFINITY]
            resource.setrlimit(resource.RLIMIT_DATA, (min([limit, *known]), hard))


def _measure_data_bytes() -> int:
    """Return the bytes that RLIMIT_DATA counts; 0 if the system does not tell.

    The peak of the resident memory would not do: a process starts with that of its parent.
    """
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 (pathlib is slower)
            return int(file.read().split()[DATA_PAGES]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


_LIMITS: Final = _Limits()


def enable_input_limits(environ: Mapping[str, str]) -> None:
    """Enable the limits in this process; call it in the main thread.

    Raises:
        InputError: the variable ``FACTOR_VARIABLE`` is not a positive number.
    """
    text = environ.get(FACTOR_VARIABLE, "") or "1"
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not (0 < factor < math.inf):
        raise InputError.from_message(
            f"{FACTOR_VARIABLE} must be a positive number", place=COMMAND_LINE
        )
    signal.signal(signal.SIGPROF, _LIMITS.handle_signal)
    _LIMITS.factor = factor


@contextmanager
def limit_input(name: str, *, size: int = 0) -> Iterator[None]:
    """Limit the processor time and the memory for reading one input.

    The files that are read inside raise the limits, see ``add_input_size``.

    Args:
        name: the input's file, for messages.
        size: bytes that were read before.

    Raises:
        InputError: a limit is reached, or Python cannot handle the nesting of the input.
    """
    place, hint = Place(file=name), f"make it smaller, or raise the limits with {FACTOR_VARIABLE}=4"
    is_limited = _LIMITS.factor and threading.current_thread() is threading.main_thread()
    try:
        if not is_limited:
            yield
            return
        try:
            _LIMITS.start()
            _LIMITS.add(size)
            yield
        finally:
            _LIMITS.end()
    except _TimeLimitReached:
        message = "reading this file and what it names takes too much processor time"
        raise InputError.from_message(message, place=place, hint=hint) from None
    except MemoryError:
        message = "reading this file and what it names takes too much memory"
        raise InputError.from_message(message, place=place, hint=hint) from None
    except RecursionError:
        raise InputError.from_message(
            "the file is nested too deeply to be read", place=place
        ) from None


def add_input_size(size: int) -> None:
    """Raise the limits of the input that is read now for ``size`` more bytes."""
    if threading.current_thread() is threading.main_thread():
        _LIMITS.add(size)
