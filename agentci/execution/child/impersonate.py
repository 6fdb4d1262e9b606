"""How a fork of a warm Python comes to look like ``python file`` from the inside."""

import builtins
import ctypes
import os
import signal
import site
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import BuiltinImporter
from types import ModuleType
from typing import Final, TypeAlias

from agentci.execution.child import kernel
from agentci.execution.child.messages import Message
from agentci.execution.child.preload import Imports
from agentci.execution.child.supervisor import Imitated

# A function of the interpreter, and its arguments.
Call: TypeAlias = tuple[object, ...]
RUN: Final = ctypes.pythonapi.PyRun_SimpleFileExFlags
RUN.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]

# A Python that starts ignores or handles them; a ward has reset them.
IGNORED: Final = (signal.SIGPIPE, signal.SIGXFSZ)
# Of the fields of /proc/PID/stat, those after the name counted from 0.
ARG_START, ARG_END = 45, 46
# As Python has it where the last of what was printed could not be written.
EXIT_UNFLUSHED: Final = 120


class Guise:
    """Makes a fork the program of an order.

    Args:
        hook: for interactive use, as every Python has it before it looks at a file.
    """

    def __init__(self, imports: Imports, *, hook: Callable[[], None] | None) -> None:
        self._imports = imports
        self._hook = hook
        self._command_line = _command_line()
        self._file = 0
        self._script = b""

    def foresee(self, names: Sequence[str]) -> None:
        """See :meth:`Imports.foresee`."""
        self._imports.foresee(names)

    def imitate(self, order: Message) -> None:
        """Become the program; returns where only a Python that starts anew is the same.

        Raises:
            Imitated: this process is the program.
        """
        # To clear and to update it would copy twice as many pages of the warm Python.
        for name in [*os.environb]:
            del os.environb[name]
        for name, value in order["environment"].items():
            os.environb[name] = value
        _, script, *arguments = order["command"]
        # As Python has it: a file is run by its whole path, whatever its name in ``sys.argv``.
        file = os.path.join(os.getcwdb(), script)
        path = os.fsdecode(file)
        searched = _searched(order["environment"].get(b"PYTHONPATH", b""))
        own = [] if sys.flags.safe_path else [folder_of(path)]
        if (
            searched is None
            or _has_packages_of_the_user()
            or self._imports.hides((*own, *searched), at_start=searched)
            or _is_archive(path)
        ):
            return
        kernel.LIBC.fopen.restype = ctypes.c_void_p
        self._file, self._script = kernel.LIBC.fopen(file, b"rb"), file
        if not self._file:
            return
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # so that it can look at itself
        sys.argv = [*map(os.fsdecode, (script, *arguments))]
        sys.orig_argv = [sys.executable, *sys.argv]
        self._show(order["command"])
        sys.path[:] = [*own, *searched, *(each for each in sys.path if each not in searched)]
        raise Imitated

    def _show(self, command: Sequence[bytes]) -> None:
        """Be called as the program is in lists of processes, where there is room for its name."""
        start, size = self._command_line
        line = b"".join(part + b"\0" for part in command)
        if len(line) <= size:
            ctypes.memmove(start, line.ljust(size, b"\0"), size)

    def put_on(self) -> Call:
        """Do what is left to do when all frames of ours are gone; what then runs the program."""
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._hook is None:
            del sys.__interactivehook__
        else:
            sys.__interactivehook__ = self._hook
        main = ModuleType("__main__")
        main.__dict__.update(__builtins__=builtins, __annotations__={}, __loader__=BuiltinImporter)
        sys.modules["__main__"] = main
        if "threading" in sys.modules:
            sys.modules["threading"].main_thread()._set_native_id()  # noqa: SLF001 (forks keep it)
        closes_it, flags = 1, None
        return RUN, self._file, self._script, closes_it, flags

    @staticmethod
    def take_off(*, failed: bool) -> Call:
        """What ends the process as the interpreter does, as far as a program can see."""
        interrupted = failed and getattr(sys, "last_type", None) is KeyboardInterrupt
        vars(sys)["_agentci_exit"] = _Exit(int(failed), interrupted=interrupted)
        return ctypes.pythonapi.Py_Exit, int(failed)


class _Exit:
    """Ends the process when the last module is cleared: what would follow costs time, unseen."""

    def __init__(self, code: int, *, interrupted: bool) -> None:
        self._code = code
        self._interrupted = interrupted
        self._streams = (sys.__stdout__, sys.__stderr__)

    def __del__(self) -> None:
        for stream in self._streams:
            try:
                if stream is not None and not stream.closed:
                    stream.flush()
            except (OSError, ValueError):
                self._code = EXIT_UNFLUSHED
        kernel.LIBC.fflush(None)
        if self._interrupted:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        os._exit(self._code)


def _command_line() -> tuple[int, int]:
    """Where the arguments of this process stand in its memory, and how many bytes they are."""
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    start, end = int(fields[ARG_START]), int(fields[ARG_END])
    return start, end - start


def folder_of(script: str) -> str:
    """Where a program finds its modules first: links to it are followed once, as Python does."""
    with suppress(OSError):
        script = os.path.join(os.path.dirname(script), os.readlink(script))
    return os.path.realpath(os.path.dirname(script))


def _has_packages_of_the_user() -> bool:
    """Whether Python would look into them when it starts; the names of their folders are set."""
    site.USER_BASE = site.USER_SITE = None
    return os.path.isdir(site.getusersitepackages()) and bool(site.ENABLE_USER_SITE)


def _searched(named: bytes) -> list[str] | None:
    """The folders of PYTHONPATH; None where a Python that starts would make others of them."""
    folders = os.fsdecode(named).split(os.pathsep) if named else []
    plain = all(os.path.abspath(folder) == folder and os.path.isdir(folder) for folder in folders)
    return list(dict.fromkeys(folders)) if plain else None


def _is_archive(script: str) -> bool:
    """Whether Python would look for a program inside of the file."""
    for hook in sys.path_hooks:
        with suppress(ImportError):
            hook(script)
            return True
    sys.path_importer_cache[script] = None
    return False
