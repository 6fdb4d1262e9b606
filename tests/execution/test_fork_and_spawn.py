"""A program behaves the same as a fork of a preloaded interpreter and as a new process."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import threading
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import pytest

from agentci._util.workspace import trust_path
from agentci.errors import EvaluatorError
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.launcher_client import LAUNCHER_POOL
from agentci.execution.local import LocalExecutor
from agentci.execution.runtimes import find_python_imports
from tests.helpers.support import EVALUATORS
from tests.helpers.waiting import NO_TIMEOUT_SECONDS, is_running, wait_until

pytestmark = pytest.mark.slow

STDIN = b'{"question": "q"}\nsecond line\n'
# For programs that never end, to compare how they are killed.
HURRIED_SECONDS = 1.5

# Each program prints all that it can observe about one subject.
CURIOUS = {
    "its interpreter state": """\
'''A document.'''
import sys
print(sys.argv, sys.orig_argv, sys.executable, sys.path, sys.flags, sys.warnoptions, sys._xoptions)
print(sorted(globals()), __name__, __file__, __spec__, __package__, __doc__, __cached__)
print(type(__loader__), __loader__.path, __loader__.name, __builtins__)
print(sorted(vars(sys)), sys.__interactivehook__, sys.path_importer_cache[__file__])
print(sys.prefix, sys.base_prefix, sys.dont_write_bytecode, sys.getrecursionlimit())
print(sys.getswitchinterval(), sys.gettrace(), sys.getprofile(), sys.excepthook, sys.displayhook)
""",
    "its call stack": """\
import inspect, sys, traceback, warnings
print(len(inspect.stack()), inspect.currentframe().f_back, inspect.stack()[-1].filename)
traceback.print_stack()
warnings.warn("from far away", stacklevel=2)
try:
    sys._getframe(1)
except ValueError as error:
    print(error)
""",
    "its process state": """\
import os, resource, signal, stat
print(sorted(os.environ.items()))
print(os.environb == {os.fsencode(k): os.fsencode(v) for k, v in os.environ.items()})
print(os.getenv("HOME") == os.path.expanduser("~"), os.system("echo $HOME $PYTHONINSPECT"))
print(os.getcwd(), os.umask(0), os.getpgrp() == os.getpid() == os.getsid(0), os.nice(0))
print([(each, signal.getsignal(each)) for each in sorted(signal.valid_signals())])
print([resource.getrlimit(n) for n in range(1, 16)])
print(sorted(os.listdir("/proc/self/fd"))[:-1], len(os.listdir("/proc/self/task")))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
shown = "Umask Uid Gid Groups Threads SigQ SigBlk SigIgn SigCgt CapPrm CapEff CapBnd CapAmb"
print([status[name] for name in f"{shown} NoNewPrivs Seccomp Seccomp_filters".split()])
print([oct(os.fstat(n).st_mode) for n in range(3)], open("/proc/self/oom_score_adj").read())
print(os.path.exists("/proc/self/mem"), os.stat("/proc/self/environ").st_uid == os.getuid())
""",
    "its streams": """\
import sys
for each in (sys.stdin, sys.stdout, sys.stderr):
    print(each.name, each.mode, each.encoding, each.errors, each.line_buffering, each.newlines)
    print(each.write_through, each.isatty(), each.seekable(), each.readable(), each.writable())
    print(each.fileno(), each.closed, type(each.buffer), each.buffer.raw, each.buffer.raw.closefd)
print(sys.__stdin__ is sys.stdin, sys.__stdout__ is sys.stdout, sys.__stderr__ is sys.stderr)
print(input("prompt> "), sys.stdin.buffer.read())
sys.stdout.buffer.write(b"\\xff bytes\\n")
print("\\udcff", "\\u20ac", file=sys.stderr)
""",
    "stdin by path": "print(open('/dev/stdin').read(), open('/dev/stdin').read())",
    "the end of stdin": "import sys; sys.stdin.read(); input()",
    "its command line": "print(open('/proc/self/cmdline').read().rstrip('\\0').split('\\0'))",
    "its locale": """\
import locale, sys, time
print(sys.getfilesystemencoding(), sys.getdefaultencoding(), locale.getpreferredencoding())
print(locale.getlocale(), locale.setlocale(locale.LC_ALL), time.tzname, time.timezone)
""",
    "its packages": """\
import importlib.util, site, sysconfig
print(site.ENABLE_USER_SITE, site.getusersitepackages(), site.getuserbase(), sysconfig.get_paths())
print([importlib.util.find_spec(name).origin for name in ("pydantic", "agentci", "agentci.sdk")])
import agentci
print(agentci.__file__, agentci.__path__, agentci.__spec__.origin)
""",
    "hashes": "print(hash('text'), hash(b'bytes'), {'a', 'b', 'c', 'd'}, id(None) > 0)",
    "local modules": "import helper; from package import within; print(helper.NAME, within.NAME)",
    "a module in place of a standard one": "import textwrap; print(textwrap.NAME)",
    "threads": """\
import atexit, threading
print(threading.main_thread() is threading.current_thread(), threading.active_count())
print(threading.main_thread().name, threading.get_ident() == threading.main_thread().ident)
print(threading.get_native_id() == threading.main_thread().native_id)
atexit.register(print, "at exit")
threading.Thread(target=lambda: (threading.Event().wait(0.1), print("from a thread"))).start()
threading.Thread(target=lambda: threading.Event().wait(60), daemon=True).start()
""",
    "an error in a thread": """\
import threading
thread = threading.Thread(target=lambda: 1 / 0, name="worker")
thread.start()
thread.join()
""",
    "processes": """\
import multiprocessing, os, subprocess, sys
def double(number):
    return 2 * number
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(double, [1, 2, 3]))
    print(multiprocessing.current_process().name, multiprocessing.parent_process())
    print(subprocess.run([sys.executable, "-c", "print(input())"], capture_output=True, input=b"x"))
    print(os.popen("echo from a shell").read())
""",
    "a fork of its own": """\
import os, sys
print("before", flush=True)
if os.fork() == 0:
    print("child", flush=True)
    sys.exit(5)
print(os.waitstatus_to_exitcode(os.wait()[1]))
""",
    "asyncio": """\
import asyncio, signal
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print, "signal")
    signal.raise_signal(signal.SIGUSR1)
    await asyncio.sleep(0.01)
    process = await asyncio.create_subprocess_exec("echo", "from a process")
    return await process.wait()
print(asyncio.run(main()))
""",
    "signals": """\
import os, signal
signal.signal(signal.SIGUSR1, lambda number, frame: print(number, frame.f_code.co_name))
os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.pause()
""",
    "sigint": "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(5)",
    "sigterm": "import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)",
    "sigpipe": """\
import os
reader, writer = os.pipe()
os.close(reader)
os.write(writer, b"x")
""",
    "an error": "def fall():\n    raise KeyError('k') from ValueError('v')\nfall()",
    "an exception group": "raise ExceptionGroup('all', [ValueError(1), TypeError(2)])",
    "an error with a note": "e = ValueError('v')\ne.add_note('a note')\nraise e",
    "a module that does not compile": "import broken",
    "a missing module": "import nowhere",
    "a syntax error": "def f(:\n    pass\n",
    "a byte that is not UTF-8": "x = '\\xff'\n",
    "a null byte": "x = 1\0\n",
    "endless recursion": """\
def again():
    again()
try:
    again()
except RecursionError as error:
    print(error)
""",
    "an exception hook": """\
import sys
sys.excepthook = lambda kind, error, trace: print(kind, error, trace.tb_lineno, trace.tb_next)
raise ValueError("v")
""",
    "an interrupt": "raise KeyboardInterrupt",
    "exit": "import sys; print('out'); sys.exit()",
    "exit 3": "import sys; sys.exit(3)",
    "exit -1": "import sys; sys.exit(-1)",
    "exit 256": "import sys; sys.exit(256)",
    "exit with a message": "import sys; sys.exit('words \\u20ac')",
    "exit with a tuple": "raise SystemExit(1, 2)",
    "exit without import": "exit(4)",
    "os._exit": "import os; print('lost'); os._exit(6)",
    "abort": "import os; os.abort()",
    "a segmentation fault": "import ctypes; ctypes.string_at(0)",
    "exit in atexit": "import atexit, sys; atexit.register(lambda: sys.exit(9)); print('end')",
    "an error in atexit": "import atexit; atexit.register(lambda: 1 / 0); print('end')",
    "the order of finalization": """\
import atexit, sys, tempfile, threading, weakref
class Loud:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("del", self.name, sys.is_finalizing(), file=sys.__stderr__)
atexit.register(print, "first")
atexit.register(print, "second")
weakref.finalize(Loud, print, "finalized")
kept, _under, cycle = Loud("kept"), Loud("under"), Loud("cycle")
cycle.cycle = cycle
sys.loud = Loud("in sys")
import helper
helper.loud = Loud("in helper")
folder = tempfile.TemporaryDirectory()
print(threading._shutdown is not None)
""",
    "an error in __del__": "class Falls:\n    def __del__(self):\n        1 / 0\nkept = Falls()",
    "stdout that is closed": "import sys; print('out'); sys.stdout.close()",
    "stdout that fails": "import os, sys; print('out'); os.close(1)",
    "stdout that is replaced": "import io, sys; sys.stdout = io.StringIO(); print('nowhere')",
    "no streams": "import os; [os.close(n) for n in range(3)]; print('nowhere')",
    "output of C libraries": "import ctypes; ctypes.CDLL(None).puts(b'from C'); print('Python')",
    "an unfinished generator": """\
def numbers():
    try:
        yield 1
    finally:
        print("closed")
kept = numbers()
next(kept)
""",
    "pickles": """\
import copy, pickle
from dataclasses import dataclass
@dataclass
class Here:
    number: int
print(pickle.loads(pickle.dumps(Here(1))), copy.deepcopy(Here(2)), Here.__module__)
print(pickle.dumps(Here(1)))
""",
    "its source": "import inspect\ndef f():\n    pass\nprint(inspect.getsource(f), __file__)",
    "annotations": "x: int = 1\nprint(__annotations__)",
    "an import of __main__": "import __main__, sys; print(__main__ is sys.modules['__main__'])",
    "logs": """\
import logging
logging.warning("once")
logging.basicConfig(level="INFO", force=True)
logging.getLogger(__name__).info("twice")
""",
    "arguments": "import argparse; argparse.ArgumentParser(description='d').parse_args(['--no'])",
    "a pydantic model": """\
from pydantic import BaseModel, ValidationError
class Run(BaseModel):
    question: str
    score: float = 0.5
print(Run.model_validate_json('{"question": "q"}'), Run.model_json_schema())
try:
    Run.model_validate({"score": "x"})
except ValidationError as error:
    print(error)
""",
    "our sdk": """\
import json, sys
from agentci.sdk import evaluator
print(evaluator.__module__, sys.modules[evaluator.__module__].__file__)
""",
    "temporary folders": """\
import os, tempfile
print(os.path.dirname(tempfile.gettempdir()) == os.path.dirname(os.environ["HOME"]))
print(oct(os.stat(tempfile.gettempdir()).st_mode), os.listdir(tempfile.gettempdir()))
open(os.path.join(tempfile.mkdtemp(), "x"), "w").write("x")
try:
    open(__file__, "a")
except OSError as error:
    print(error)
""",
}
BESIDE = {
    "helper.py": "NAME = __name__, __file__, __spec__.name",
    "package/__init__.py": "",
    "package/within.py": "from . import other\nNAME = __name__, other.__name__",
    "package/other.py": "",
    "broken.py": "def f(:",
}
# A preloaded interpreter with untrusted packages runs all its programs as one user, in its own
# folder and without shared memory; these programs observe the difference.
OF_THE_USER = {"its process state", "processes"}
# What differs between any two runs of the same program.
VARYING = (
    (re.compile(r"\b0x[0-9a-f]+"), "0x…"),
    (re.compile(r"agentci-[0-9a-f]{16}"), "agentci-…"),
    (re.compile(r"(AGENTCI_EVALUATOR_RUN\W+|tmp_?)[\w.]+"), r"\1…"),
    (re.compile(r"Thread-\d+|ident=\d+|pid \d+|SigQ\D*\d+/"), "…"),
)


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    executor = LocalExecutor()
    yield executor
    executor.stop()


def seen(
    executor: LocalExecutor,
    program: Path,
    *,
    forks: bool,
    own_packages: bool = False,
    python: str = sys.executable,
    seconds: float = NO_TIMEOUT_SECONDS,
    variables: Mapping[str, str] = MappingProxyType({}),
    words: Sequence[str] = (),
) -> tuple[str, ...]:
    """Run a program; return its exit code, stdout and stderr, or the error.

    Args:
        words: the program relative to its folder, and its arguments.
    """
    sandbox_policy = SandboxPolicy(
        readable=(trust_path(program.parent), trust_path(Path(python).parent.parent)),
        imports=find_python_imports(program) if forks else None,
        untrusted_packages=own_packages,
    )
    try:
        response = executor.run(
            (python, *(words or (str(program),))),
            stdin=STDIN,
            timeout_seconds=seconds,
            cwd=program.parent if words else Path("/"),
            environment={**make_child_environment(os.environ), **variables},
            sandbox_policy=sandbox_policy,
        )
    except EvaluatorError as error:
        return (str(error).partition(";")[0],)  # the output until then may differ
    texts = (
        str(response.exit_code),
        response.stdout.decode("utf-8", "backslashreplace"),
        response.stderr,
    )
    return tuple(_settled(text) for text in texts)


def written(folder: Path, text: str) -> Path:
    """Write a program that all users can read."""
    folder.mkdir(exist_ok=True)
    for each in (folder, folder.parent):
        each.chmod(0o755)
    program = folder / "program.py"
    program.write_text(text)
    return program


def children_of(parents: Collection[int]) -> list[int]:
    """The ids of their running child processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, *_ = entry.read_text().rpartition(")")[2].split()
            if int(parent) in parents and state != "Z":
                found.append(int(entry.parent.name))
    return found


def _settled(text: str) -> str:
    for pattern, stand_in in VARYING:
        text = pattern.sub(stand_in, text)
    return text


@pytest.mark.parametrize("name", CURIOUS)
def test_fork_observes_same_state_as_new_process(
    name: str, executor: LocalExecutor, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    for file, text in BESIDE.items():
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    if "in place of" in name:
        (tmp_path / "textwrap.py").write_text("NAME = __file__")
    program = tmp_path / "program.py"
    program.write_bytes(CURIOUS[name].encode().replace(b"'\\xff'", b"'\xff'"))
    spawned = seen(executor, program, forks=False)
    assert seen(executor, program, forks=True) == spawned
    if name not in OF_THE_USER:
        assert seen(executor, program, forks=True, own_packages=True) == spawned


@pytest.mark.parametrize("name", ["program.py", "./program.py", ".//program.py", "../x/program.py"])
def test_fork_observes_same_relative_program_path(
    name: str, executor: LocalExecutor, tmp_path: Path
) -> None:
    text = "import os, sys; print(sys.argv, sys.orig_argv, sys.path, __file__, os.getcwd())"
    program = written(tmp_path / "x", f"{text}; print(sys.path_importer_cache[__file__])")
    words = (name, "--option", "a b")
    spawned = seen(executor, program, forks=False, words=words)
    assert spawned[0] == "0"
    assert seen(executor, program, forks=True, words=words) == spawned


# Removes packages from its path that a fork has already imported.
SPAWNED_ONLY = {"imports_what_is_not_there.py"}
PROGRAMS = sorted(path for path in EVALUATORS.glob("*.py") if path.name not in SPAWNED_ONLY)
HANGING = {
    "closes_its_pipes_and_hangs.py", "forks_and_sleeps.py", "hangs.py", "ignores_sigterm.py",
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_evaluator_behaves_same_as_fork(program: Path, executor: LocalExecutor) -> None:
    seconds = HURRIED_SECONDS if program.name in HANGING else NO_TIMEOUT_SECONDS
    spawned = seen(executor, program, forks=False, seconds=seconds)
    assert seen(executor, program, forks=True, seconds=seconds) == spawned


class TestFork:
    """Properties of forks, including what differs from a new process."""

    def test_fork_has_preloaded_imports(self, executor: LocalExecutor, tmp_path: Path) -> None:
        program = written(
            tmp_path, "import sys; print('pydantic' in sys.modules)\nif False:\n import pydantic"
        )
        assert seen(executor, program, forks=True) == ("0", "True\n", "")
        assert seen(executor, program, forks=False) == ("0", "False\n", "")

    def test_files_that_are_not_modules_allow_fork(
        self, executor: LocalExecutor, tmp_path: Path
    ) -> None:
        program = written(
            tmp_path, "import sys; print('pydantic' in sys.modules)\nif False:\n import pydantic"
        )
        for name in ("pydantic.yaml", "json.txt", "pydantic-results"):
            (tmp_path / name).touch()
        assert seen(executor, program, forks=True) == ("0", "True\n", "")

    def test_forks_get_different_random_numbers(
        self, executor: LocalExecutor, tmp_path: Path
    ) -> None:
        program = written(
            tmp_path, "import os, random, uuid; print(random.random(), os.urandom(4), uuid.uuid4())"
        )
        assert len({seen(executor, program, forks=True) for _ in range(3)}) == 3

    def test_fork_imports_from_its_pythonpath(
        self, executor: LocalExecutor, tmp_path: Path
    ) -> None:
        folder = tmp_path / "elsewhere"
        folder.mkdir()
        (folder / "far.py").write_text("NAME = __name__")
        (folder / "textwrap.py").write_text("NAME = __file__")
        for text in ("import far, sys; print(far.NAME, sys.path)", "import json, textwrap, sys"):
            program = written(tmp_path, text)
            twice = f"{folder}:{sysconfig.get_path('stdlib')}:{folder}"
            variables = {"PYTHONPATH": twice}
            spawned = seen(executor, program, forks=False, variables=variables)
            assert seen(executor, program, forks=True, variables=variables) == spawned
            assert spawned[0] == "0"

    @pytest.mark.parametrize(
        "variable", ["PYTHONOPTIMIZE", "PYTHONWARNINGS=error", "PYTHONSAFEPATH", "TZ=Asia/Tokyo"]
    )
    def test_fork_respects_interpreter_variables(
        self, variable: str, executor: LocalExecutor, tmp_path: Path
    ) -> None:
        name, _, value = variable.partition("=")
        variables = {name: value or "1"}
        program = written(
            tmp_path, "import sys, time; print(sys.flags, sys.warnoptions, time.tzname, sys.path)"
        )
        spawned = seen(executor, program, forks=False, variables=variables)
        assert seen(executor, program, forks=True, variables=variables) == spawned
        assert spawned != seen(executor, program, forks=True)

    def test_fork_runs_zip_archive(self, executor: LocalExecutor, tmp_path: Path) -> None:
        program = tmp_path / "archive.py"
        with zipfile.ZipFile(program, "w") as archive:
            archive.writestr("__main__.py", "print(__name__, __spec__.name)")
        tmp_path.chmod(0o755)
        assert seen(executor, program, forks=True) == seen(executor, program, forks=False)
        assert seen(executor, program, forks=True) == ("0", "__main__ __main__\n", "")

    def test_fork_resolves_symlink_like_python(
        self, executor: LocalExecutor, tmp_path: Path
    ) -> None:
        program = written(tmp_path / "real", "import beside, sys; print(beside, sys.path[0])")
        program.with_name("beside.py").touch()
        link = tmp_path / "link.py"
        link.symlink_to("real/program.py")
        spawned = seen(executor, link, forks=False)
        assert seen(executor, link, forks=True) == spawned
        assert spawned[0] == "0"


class TestPreloadedInterpreter:
    def test_preloading_does_not_import_from_workspace(
        self, executor: LocalExecutor, tmp_path: Path
    ) -> None:
        """An editable install points there; its code may run only in the sandbox."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
        [packages] = tmp_path.glob("v/lib/python*/site-packages")
        (packages / "editable.pth").write_text(f"{tmp_path / 'workspace'}\n")
        mark = tmp_path / "mark"
        program = written(tmp_path / "workspace", "import pydantic; print(pydantic.HERE)")
        program.with_name("pydantic.py").write_text(
            f"HERE = __file__\ntry: open({str(mark)!r}, 'w')\nexcept OSError: pass"
        )
        python = str(tmp_path / "v/bin/python")
        spawned = seen(executor, program, forks=False, python=python)
        assert seen(executor, program, forks=True, python=python) == spawned
        assert spawned[0] == "0"
        assert not mark.exists()

    def test_preloading_does_not_run_user_site_files(
        self, executor: LocalExecutor, tmp_path: Path
    ) -> None:
        """An earlier program may have written there."""
        python = os.path.realpath(sys.executable)
        packages = sysconfig.get_path("purelib", f"{os.name}_user", {"userbase": tmp_path / "u"})
        Path(packages).mkdir(parents=True)
        mark = tmp_path / "mark"
        Path(packages, "of_the_user.pth").write_text(
            f"import os, sys; sys.found = os.path.isdir('/'); os.system('touch {mark} 2>/dev/null')"
        )
        program = written(tmp_path / "workspace", "import site, sys; print(sys.found, sys.path)")
        variables = {"PYTHONUSERBASE": str(tmp_path / "u")}
        spawned = seen(executor, program, forks=False, python=python, variables=variables)
        forked = seen(executor, program, forks=True, python=python, variables=variables)
        assert forked == spawned
        assert not mark.exists()

    def test_killed_interpreter_is_replaced(self, executor: LocalExecutor, tmp_path: Path) -> None:
        program = written(tmp_path, "import os, sys; print('json' in sys.modules)\nimport json")
        LAUNCHER_POOL.close()
        before = seen(executor, program, forks=True)
        launchers = LAUNCHER_POOL.list_process_ids()
        killed = (*launchers, *children_of(launchers))
        for number in killed:
            os.kill(number, signal.SIGKILL)
        wait_until(lambda: not any(map(is_running, killed)))
        assert seen(executor, program, forks=True) == before == ("0", "True\n", "")

    def test_program_is_rerun_after_its_supervisor_dies(
        self, executor: LocalExecutor, tmp_path: Path
    ) -> None:
        program = written(
            tmp_path,
            "import sys, time; warm = 'pydantic' in sys.modules\n"
            "print(warm); time.sleep(300 * warm)\n"
            "if False:\n import pydantic",
        )

        def find_supervisors() -> list[int]:
            supervisors = children_of(LAUNCHER_POOL.list_process_ids())
            return [each for each in supervisors if any(map(runs_program, children_of([each])))]

        def runs_program(number: int) -> bool:
            with suppress(OSError):
                return os.fsencode(program) in Path(f"/proc/{number}/cmdline").read_bytes()
            return False

        def kill_supervisor() -> None:
            wait_until(find_supervisors)
            for supervisor in find_supervisors():
                os.kill(supervisor, signal.SIGKILL)

        thread = threading.Thread(target=kill_supervisor)
        thread.start()
        try:
            assert seen(executor, program, forks=True) == ("0", "False\n", "")
        finally:
            thread.join()
