"""A Python that has imported modules in advance, and whose forks become programs.

A program must not be able to tell such a fork from ``python file``. So the call stack below the
program has no frame of agentci: the interpreter itself calls the program, through its interactive
hook, which runs after the code given with ``-c`` has ended. The hook is replaced by functions
written in C; between two calls, they ask a generator of this module for the next program.
"""

import atexit
import builtins
import ctypes
import gc
import os
import signal
import site
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.machinery import BuiltinImporter
from itertools import starmap
from operator import call
from types import ModuleType
from typing import Final, TypeAlias

from agentci.execution.child import kernel
from agentci.execution.child.socket_messages import Message
from agentci.execution.child.supervisor import BecameProgram, LauncherServer, open_channel

# Every starting Python looks for these on its search path.
STARTUP_MODULES: Final = frozenset({"sitecustomize", "usercustomize"})
MODULE_SUFFIXES: Final = (".py", ".pyc", ".so")
# The interpreter clears these itself, after all others.
INTERPRETER_MODULES: Final = frozenset({"sys", "builtins", "__main__"})


class PreloadedModules:
    """The modules imported before a program begins; they stay alive until the program's end.

    Args:
        bare: names of the modules that every Python has before it runs a file.
        ours: the folder that contains the package agentci.
    """

    def __init__(self, bare: Iterable[str], *, ours: str) -> None:
        self._startup_names = frozenset(bare)
        self._ours = ours
        self._requested: set[str] = set()
        self._kept: dict[str, object] = {}
        self._names: frozenset[str] = frozenset()
        self._later_names: frozenset[str] = frozenset()
        # Registered first, so that it is called last.
        atexit.register(self._forget_modules)

    def preload(self, names: Sequence[str]) -> None:
        """Import the modules that a program will import; skip those that fail.

        Raises:
            RuntimeError: an import started a thread, which a fork would lack.
        """
        new = [each for each in names if each and each not in self._requested]
        self._requested.update(new)
        with self._only_installed():
            for name in new:
                with suppress(Exception):  # the program's own import reports it
                    import_module(name)
                    WARM_UPS.get(name, lambda: None)()
        if len(os.listdir("/proc/self/task")) > 1:
            raise RuntimeError("an import started a thread")
        self._freeze_modules()

    def shadows(self, folders: Sequence[str], at_start: Sequence[str]) -> bool:
        """Whether a program's folders contain a module that would replace a preloaded one.

        Args:
            folders: folders that the program searches before the installed packages.
            at_start: those of them that Python searches already while it starts.
        """
        return any(_contains_module(folder, self._names) for folder in at_start) or any(
            _contains_module(folder, self._later_names) for folder in folders
        )

    def _freeze_modules(self) -> None:
        """Keep forks from touching preloaded objects: each touched page has to be copied."""
        for name, module in sys.modules.items():
            if name not in self._kept and name not in INTERPRETER_MODULES:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
                self._kept[name] = module
        # Each program must look through workspace folders itself.
        for path in [each for each in sys.path_importer_cache if not self._is_installed(each)]:
            del sys.path_importer_cache[path]
        # Computed here, because a fork that reads all names would have to copy their pages.
        names = {name.partition(".")[0] for name in (*self._startup_names, *self._kept)}
        self._names = frozenset(names | STARTUP_MODULES)
        self._later_names = frozenset(names - self._startup_names - set(sys.builtin_module_names))
        gc.collect()
        gc.freeze()

    @contextmanager
    def _only_installed(self) -> Iterator[None]:
        """Import nothing from a workspace, where paths of editable installs may lead.

        Authors of workspace changes are not trusted to run code outside a sandbox.
        """
        path, finders = sys.path[:], sys.meta_path[:]
        sys.path[:] = filter(self._is_installed, path)
        sys.meta_path[:] = [each for each in finders if each.__module__.startswith("_frozen_")]
        try:
            yield
        finally:
            sys.path[:], sys.meta_path[:] = path, finders

    def _is_installed(self, path: str) -> bool:
        folders = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
        return path == self._ours or path.startswith(tuple(f"{each}/" for each in folders))

    def _forget_modules(self) -> None:
        """Skip the invisible teardown of preloaded modules at a program's end."""
        for name, module in self._kept.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def _contains_module(folder: str, names: frozenset[str]) -> bool:
    try:
        return any(
            entry.partition(".")[0] in names
            and ("." not in entry or entry.endswith(MODULE_SUFFIXES))
            for entry in os.listdir(folder)
        )
    except OSError:
        return False


def _warm_up_pydantic() -> None:
    """Define and use a model, which imports most of pydantic."""
    from pydantic import BaseModel, Field  # noqa: PLC0415 (installed only for some programs)

    class Model(BaseModel):
        texts: list[str] = []
        number: float | None = Field(default=None, ge=0)
        values: dict[str, object] = {}

    Model.model_validate_json(Model().model_dump_json())


WARM_UPS: Final[Mapping[str, Callable[[], None]]] = {"pydantic": _warm_up_pydantic}


# A C function of the interpreter, and its arguments.
InterpreterCall: TypeAlias = tuple[object, ...]
RUN_FILE: Final = ctypes.pythonapi.PyRun_SimpleFileExFlags
RUN_FILE.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]

# A starting Python ignores these; the supervisor has reset them.
IGNORED_SIGNALS: Final = (signal.SIGPIPE, signal.SIGXFSZ)
# Indexes among the fields of /proc/PID/stat after the name, from 0.
ARG_START, ARG_END = 45, 46
# Python's exit code if the last output could not be flushed.
EXIT_UNFLUSHED: Final = 120


class ProgramImpersonator:
    """Turns a fork into the program of a start request.

    Args:
        imports: the preloaded modules.
        hook: the interactive hook that every Python has before it runs a file.
    """

    def __init__(self, imports: PreloadedModules, *, hook: Callable[[], None] | None) -> None:
        self._imports = imports
        self._hook = hook
        self._command_line = _find_command_line()
        self._file = 0
        self._script = b""

    def preload(self, names: Sequence[str]) -> None:
        """See :meth:`PreloadedModules.preload`."""
        self._imports.preload(names)

    def become_program(self, start_request: Message) -> None:
        """Become the program; return if only a newly started Python behaves the same.

        Raises:
            BecameProgram: this process is now the program.
        """
        # ``clear`` and ``update`` would copy twice as many pages of the prefork interpreter.
        for name in [*os.environb]:
            del os.environb[name]
        for name, value in start_request["environment"].items():
            os.environb[name] = value
        _, script, *arguments = start_request["command"]
        # As in Python: a file is run by its absolute path, even if ``sys.argv`` has another one.
        file = os.path.join(os.getcwdb(), script)
        path = os.fsdecode(file)
        searched = _parse_pythonpath(start_request["environment"].get(b"PYTHONPATH", b""))
        own = [] if sys.flags.safe_path else [find_script_folder(path)]
        if (
            searched is None
            or _has_user_packages()
            or self._imports.shadows((*own, *searched), at_start=searched)
            or _is_archive(path)
        ):
            return
        kernel.LIBC.fopen.restype = ctypes.c_void_p
        self._file, self._script = kernel.LIBC.fopen(file, b"rb"), file
        if not self._file:
            return
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # so that it can read its own /proc files
        sys.argv = [*map(os.fsdecode, (script, *arguments))]
        sys.orig_argv = [sys.executable, *sys.argv]
        self._set_process_title(start_request["command"])
        sys.path[:] = [*own, *searched, *(each for each in sys.path if each not in searched)]
        raise BecameProgram

    def _set_process_title(self, command: Sequence[bytes]) -> None:
        """Show the program's command line in process lists, if there is room for it."""
        start, size = self._command_line
        line = b"".join(part + b"\0" for part in command)
        if len(line) <= size:
            ctypes.memmove(start, line.ljust(size, b"\0"), size)

    def prepare_run(self) -> InterpreterCall:
        """Do the steps left once agentci's frames are gone; return the call to run the program."""
        for number in IGNORED_SIGNALS:
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
        return RUN_FILE, self._file, self._script, closes_it, flags

    @staticmethod
    def prepare_exit(*, failed: bool) -> InterpreterCall:
        """Return the call that ends the process as the interpreter would, as a program sees it."""
        interrupted = failed and getattr(sys, "last_type", None) is KeyboardInterrupt
        vars(sys)["_agentci_exit"] = _ExitAtFinalization(int(failed), interrupted=interrupted)
        return ctypes.pythonapi.Py_Exit, int(failed)


class _ExitAtFinalization:
    """Ends the process when the last module is cleared; later teardown has no visible effect."""

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


def _find_command_line() -> tuple[int, int]:
    """Return the address of this process's arguments in memory and their size in bytes."""
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    start, end = int(fields[ARG_START]), int(fields[ARG_END])
    return start, end - start


def find_script_folder(script: str) -> str:
    """Return the first folder on a program's module path; a link is followed once, as in Python."""
    with suppress(OSError):
        script = os.path.join(os.path.dirname(script), os.readlink(script))
    return os.path.realpath(os.path.dirname(script))


def _has_user_packages() -> bool:
    """Whether a starting Python would use user packages; resets the cached folders of ``site``."""
    site.USER_BASE = site.USER_SITE = None
    return os.path.isdir(site.getusersitepackages()) and bool(site.ENABLE_USER_SITE)


def _parse_pythonpath(named: bytes) -> list[str] | None:
    """Return the folders of PYTHONPATH; None if a starting Python would change any of them."""
    folders = os.fsdecode(named).split(os.pathsep) if named else []
    plain = all(os.path.abspath(folder) == folder and os.path.isdir(folder) for folder in folders)
    return list(dict.fromkeys(folders)) if plain else None


def _is_archive(script: str) -> bool:
    """Whether Python would look for a program inside the file."""
    for hook in sys.path_hooks:
        with suppress(ImportError):
            hook(script)
            return True
    sys.path_importer_cache[script] = None
    return False


PACKAGE_NAME: Final = "agentci"
STDIN, STDOUT, STDERR = range(3)
INSPECT_VARIABLE: Final = "PYTHONINSPECT"


def main(bare: Sequence[str]) -> None:
    """Make the interpreter serve requests for programs after this function has returned.

    Stdin is the channel to the client, stderr a terminal.

    Args:
        bare: names of the modules that every Python has before it runs a file.
    """
    imports = PreloadedModules(bare, ours=os.path.dirname(sys.argv[1]))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE_NAME]:
        del sys.modules[name]  # a program imports its own
    impersonator = ProgramImpersonator(imports, hook=getattr(sys, "__interactivehook__", None))
    codes: deque[int] = deque(maxlen=1)
    programs = _serve_programs(open_channel(os.dup(STDIN)), impersonator, codes)
    # Python calls the hook only if stdin is a terminal.
    os.dup2(STDERR, STDIN)
    os.dup2(STDOUT, STDERR)
    os.putenv(INSPECT_VARIABLE, "1")
    sys.__interactivehook__ = partial(codes.extend, starmap(call, programs))


def _serve_programs(
    channel: socket.socket, impersonator: ProgramImpersonator, codes: deque[int]
) -> Iterator[InterpreterCall]:
    """Yield the calls that run and end a program, in a fork; the server itself exits in here.

    Args:
        codes: the result of the previous call.
    """
    os.unsetenv(INSPECT_VARIABLE)
    os.dup2(STDOUT, STDIN)
    with suppress(OSError):  # once for all forks, which then find nothing left to drop
        kernel.shrink_bounding_set()
    try:
        LauncherServer(
            channel, preload=impersonator.preload, become_program=impersonator.become_program
        ).serve()
        os._exit(0)
    except BecameProgram:
        pass
    except BaseException:  # noqa: BLE001 (nothing reads an error message here)
        os._exit(1)
    yield impersonator.prepare_run()
    yield impersonator.prepare_exit(failed=codes[-1] != 0)
