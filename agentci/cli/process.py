"""One process: the real world it runs in, the signals it gets, and the only catch-all."""

import atexit
import errno
import gc
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, TypeAlias

from agentci._util.action_inputs import without_inputs
from agentci._util.files import say
from agentci._util.http.client import HttpClient
from agentci._util.text.escape import log, one_line
from agentci._util.workspace import workspace_of
from agentci.cli.cache_location import default_folder
from agentci.errors import InputError, InterruptionError
from agentci.execution.environment_variables import child_environment
from agentci.execution.environments.variables import installer_environment
from agentci.execution.registry import Executors, makers
from agentci.github.api.access import access_of
from agentci.github.api.client import GitHubApi
from agentci.github.context import github_of
from agentci.remote.run_sources import Sources
from agentci.remote.sources.variables import surroundings_of
from agentci.runner.services import Interruption, World
from agentci.version import __version__

EXIT_INVALID = 2
EXIT_BUG = 70
STDERR = 2
# A cancelled job, a stopped container, a closed terminal.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# What only the machine is to blame for.
NO_THREAD: Final = "can't start new thread"
SHORTAGES: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)

# Next to nothing of ours is garbage in cycles, and to look for it as often as Python does by itself
# takes a tenth of a short run. Memory may grow by as many objects, a few MB.
YOUNG_OBJECTS: Final = 100_000

Command: TypeAlias = Callable[[World], int]


def run_guarded(command: Command, environ: Mapping[str, str]) -> int:
    """Run ``command`` in the real world and return the process's exit code.

    Wrong input is told in full (exit 2); any other exception is a bug of ours (exit 70).
    """
    gc.set_threshold(YOUNG_OBJECTS)
    # All goes with the process; Python would search it for cycles first, several times.
    atexit.register(gc.freeze)
    _open_streams()
    try:
        world = world_of(environ)
        _listen(world)
        try:
            code = command(world)
        finally:
            world.interruption.at_once = False
            _stop(world)
        sys.stdout.flush()
    except InterruptionError as interruption:
        code = 128 + interruption.signal_number
    except Exception as error:  # noqa: BLE001 (the last resort)
        code, said = _told(error)
        say("".join(f"{line}\n" for line in said), sys.stderr)
        say("", sys.stdout)
    return code


def _open_streams() -> None:
    """Have three streams that take any text, whatever was closed before.

    The first files to be opened would else take their places, and get what is printed.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        pass
    os.close(descriptor)
    for number, name in enumerate(("stdout", "stderr"), start=1):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8"))
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _told(error: Exception) -> tuple[int, Sequence[str]]:
    """The exit code for what broke a command off, and what is said about it."""
    if isinstance(error, InputError):
        return EXIT_INVALID, [one_line(str(problem)) for problem in error.problems]
    if isinstance(error, BrokenPipeError):
        return 128 + signal.SIGPIPE, ()
    if shortage := _shortage(error):
        return EXIT_INVALID, [f"agentci had to stop: {one_line(shortage)}"]
    return EXIT_BUG, [log(_bug_report(error))]


def _shortage(error: Exception) -> str | None:
    """What the machine has too little of, None where something else is to blame."""
    match error:
        case OSError() if error.errno in SHORTAGES:
            return str(error)
        case MemoryError():
            return "there is not enough memory"
        case RuntimeError() if str(error) == NO_THREAD:
            return f"{error}; run fewer at a time with --jobs"
        case _:
            return None


def world_of(environ: Mapping[str, str]) -> World:
    """The real world, as ``environ`` says.

    Raises:
        InputError: there is no working directory.
    """
    github = github_of(environ)
    interruption = Interruption()
    workspace = workspace_of(_cwd(), root=github.workspace)
    http = HttpClient(
        tell=lambda text: say(f"{one_line(text)}\n", sys.stderr), stopped=interruption.asked
    )
    return World(
        workspace=workspace,
        executors=Executors(makers(environ)),
        child_environment=child_environment(environ),
        installer_environment=installer_environment(environ),
        variables=without_inputs(environ),
        search_path=environ.get("PATH", os.defpath),
        sources=Sources(surroundings_of(environ, http=http, workspace=workspace.root)),
        cache_folder=default_folder(environ, github),
        github=github,
        github_api=GitHubApi(access_of(environ), http),
        out=sys.stdout,
        err=sys.stderr,
        clock=time.monotonic,
        processors=len(os.sched_getaffinity(0)),
        interruption=interruption,
    )


def _cwd() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        message = f"the working directory does not exist, or may not be read: {error.strerror}"
        raise InputError.of(message, hint="start agentci from a folder that is there") from None


def _listen(world: World) -> None:
    """On a signal the evaluators' programs are ended at once; a run then ends by itself."""

    def end(signal_number: int, _frame: FrameType | None) -> None:
        world.interruption.ask(signal_number)
        _stop(world)
        world.interruption.break_off()

    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, end)
    # Whoever started us may ignore it; how our children ended would then be lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _stop(world: World) -> None:
    """Leave no program of an evaluator behind."""
    world.executors.stop()


def _bug_report(error: Exception) -> str:
    python = f"Python {platform.python_version()} on {platform.platform()}"
    return (
        f"{''.join(traceback.format_exception(error))}\n"
        f"This is a bug in agentci {__version__} ({python}), not in your evaluators.\n"
        "Please report it, with the lines above, in the issues of agentci's repository."
    )
