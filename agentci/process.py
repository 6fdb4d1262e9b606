"""One process: the real world it runs in, the signals it gets, and the only catch-all."""

import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import TypeAlias

from agentci.engines.world import World
from agentci.errors import InputError
from agentci.executors.environment import child_environment
from agentci.executors.registry import EXECUTORS
from agentci.github.context import github_of
from agentci.version import __version__
from agentci.workspace import workspace_of

EXIT_INVALID = 2
EXIT_BUG = 70
SIGNALS = (signal.SIGINT, signal.SIGTERM)

Command: TypeAlias = Callable[[World], int]


def run_guarded(command: Command, environ: Mapping[str, str]) -> int:
    """Run ``command`` in the real world and return the process's exit code.

    Wrong input is told in full (exit 2); any other exception is a bug of ours (exit 70).
    """
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        world = _world(environ)
        _listen(world)
        try:
            return command(world)
        finally:
            _stop(world)
    except InputError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        return EXIT_INVALID
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception:  # noqa: BLE001 (the last resort)
        print(_bug_report(), file=sys.stderr)
        return EXIT_BUG


def _world(environ: Mapping[str, str]) -> World:
    github = github_of(environ)
    return World(
        workspace=workspace_of(Path.cwd(), root=github.workspace),
        executors={name: make() for name, make in EXECUTORS.items()},
        child_environment=child_environment(environ),
        search_path=environ.get("PATH", os.defpath),
        github=github,
        out=sys.stdout,
        err=sys.stderr,
        clock=time.monotonic,
        processors=len(os.sched_getaffinity(0)),
    )


def _listen(world: World) -> None:
    """On a signal the evaluators' programs are ended at once; the run then ends by itself."""

    def end(signal_number: int, _frame: FrameType | None) -> None:
        world.interruption.ask(signal_number)
        _stop(world)

    for number in SIGNALS:
        signal.signal(number, end)


def _stop(world: World) -> None:
    """Leave no program of an evaluator behind."""
    for executor in world.executors.values():
        executor.stop()


def _bug_report() -> str:
    python = f"Python {platform.python_version()} on {platform.platform()}"
    return (
        f"{traceback.format_exc()}\n"
        f"This is a bug in agentci {__version__} ({python}), not in your evaluators.\n"
        "Please report it, with the lines above, in the issues of agentci's repository."
    )
