"""A Python evaluator over many recordings: whole runs, and what a check takes by itself."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentci._util.workspace import trust_path
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import ProgramJob, SandboxPolicy
from agentci.execution.launcher_client import (
    LAUNCHER_POOL,
    find_job_imports,
    find_prefork_interpreter,
)
from agentci.execution.local import LocalExecutor, start_program
from agentci.execution.runtimes import find_python_imports
from agentci.execution.sandbox import Sandbox, SandboxBuilder
from benchmarks.processes import run_in_turns
from benchmarks.recordings import write_recordings

TRACES: Final = 100
# Of the time of agentevals, and of that of starting each program by itself.
MAX_RATIO: Final = 0.1
# Of a check, above a fork of a warm Python with three pipes that runs the script.
MAX_SECONDS_OVER_FLOOR: Final = 0.005
# What the sandbox may add to a fork, in relation to the fork: milliseconds differ by machine.
MAX_SANDBOX_RATIO: Final = 0.35

EVALUATOR: Final = """\
from agentevals_evaluator_sdk import EvalInput, EvalResult, evaluator

@evaluator
def answers(input: EvalInput) -> EvalResult:
    answered = [float(bool(turn.final_response)) for turn in input.invocations]
    return EvalResult(score=min(answered), per_invocation_scores=answered)

if __name__ == "__main__":
    answers.run()
"""
CONFIG: Final = "evaluators:\n  - {name: answers, type: code, path: ./answers.py}\n"
STDIN: Final = b"""\
{"protocol_version": "1.1", "metric_name": "answers", "threshold": 0.5, "config": {},
"invocations": [{"invocation_id": "1", "user_content": "q", "final_response": "a"}]}
"""
# The least that a warm Python can do for a check, once a line: it prints the seconds that it took.
FLOOR: Final = """\
import os, runpy, sys, time
import agentevals_evaluator_sdk
script, stdin = sys.argv[1], sys.argv[2].encode()
for _ in sys.stdin:
    begun = time.perf_counter()
    pipes = [os.pipe() for _ in range(3)]
    if os.fork() == 0:
        for number, pipe in enumerate(pipes):
            os.dup2(pipe[number > 0], number)
        os.closerange(3, 64)
        sys.argv = [script]
        runpy.run_path(script, run_name="__main__")
        sys.stdout.flush()
        os._exit(0)
    for number, pipe in enumerate(pipes):
        os.close(pipe[number > 0])
    os.write(pipes[0][1], stdin)
    os.close(pipes[0][1])
    for pipe in pipes[1:]:
        while os.read(pipe[0], 65536):
            pass
        os.close(pipe[0])
    os.wait()
    print(time.perf_counter() - begun, flush=True)
"""


def measure(agentevals: Path | None, times: int) -> bool:
    """Print what whole runs and single checks take; tell whether that is within the limits.

    Args:
        agentevals: the program of agentevals-cli 0.11.0; None leaves out the comparison.
        times: how often each run is done, in turns; of a check, twenty times as often.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        write_recordings(folder / "traces.jsonl", TRACES)
        (folder / "answers.py").write_text(EVALUATOR)
        (folder / "eval.yaml").write_text(f"{CONFIG}traces: [traces.jsonl]\n")
        (folder / "theirs.yaml").write_text(CONFIG)
        whole = agentevals is None or _measure_runs(agentevals, folder, times)
        return _measure_checks(folder / "answers.py", 20 * times) and whole


def _measure_runs(agentevals: Path, folder: Path, times: int) -> bool:
    ours = [sys.executable, "-m", "agentci", "run", "eval.yaml", "--quiet", "--no-cache"]
    theirs = [str(agentevals), "run", "traces.jsonl", "--config", "theirs.yaml", "-o", "json"]
    our_runs, their_runs = run_in_turns([ours, theirs], cwd=folder, times=times)
    ratio = our_runs.seconds / their_runs.seconds
    print(f"{TRACES} traces, one evaluator with the SDK of agentevals")
    print(f"  agentevals {their_runs}")
    print(f"  agentci    {our_runs}")
    print(f"  ratio      {ratio:6.3f}  (at most {MAX_RATIO})")
    return ratio <= MAX_RATIO


def _measure_checks(script: Path, times: int) -> bool:
    executor, command = LocalExecutor(), (sys.executable, str(script))
    environment = make_child_environment({})

    def checked(imports: tuple[str, ...] | None) -> Callable[[], object]:
        sandbox_policy = SandboxPolicy(readable=(trust_path(script.parent),), imports=imports)
        return lambda: executor.run(
            command,
            stdin=STDIN,
            timeout_seconds=30,
            cwd=script.parent,
            environment=environment,
            sandbox_policy=sandbox_policy,
        )

    imports = find_python_imports(script)
    job = ProgramJob(
        command=command,
        stdin=STDIN,
        timeout_seconds=30,
        cwd=script.parent,
        environment=environment,
        sandbox_policy=SandboxPolicy(readable=(trust_path(script.parent),), imports=imports),
    )
    with _floor(script) as floor:
        medians = _medians(
            {
                "by subprocess": _timed(lambda: _plainly(command)),
                "isolation: spawn": _timed(checked(None)),
                "isolation: fork": _timed(checked(imports)),
                "fork": _timed(lambda: _forked(job, sandboxed=False)),
                "fork, sandboxed": _timed(lambda: _forked(job, sandboxed=True)),
                "floor": floor,
            },
            times,
        )
    executor.stop()
    print(f"one check of it, {times} times each")
    for name, seconds in medians.items():
        print(f"  {name:<17} {seconds * 1000:7.2f} ms")
    over_floor = medians["isolation: fork"] - medians["floor"]
    ratio = medians["isolation: fork"] / medians["by subprocess"]
    sandbox = medians["fork, sandboxed"] / medians["fork"] - 1
    print(f"  over the floor    {over_floor * 1000:7.2f} ms  (at most 5)")
    print(f"  fork to subprocess {ratio:6.3f}     (at most {MAX_RATIO})")
    print(f"  sandbox to fork    {sandbox:6.3f}     (at most {MAX_SANDBOX_RATIO})")
    return (
        over_floor <= MAX_SECONDS_OVER_FLOOR and ratio <= MAX_RATIO and sandbox <= MAX_SANDBOX_RATIO
    )


def _medians(ways: Mapping[str, Callable[[], float]], times: int) -> dict[str, float]:
    """Seconds that each way takes, done in turns: none has the processor's caches to itself."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(times + 1):
        for name, act in ways.items():
            taken[name].append(act())
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}


def _timed(act: Callable[[], object]) -> Callable[[], float]:
    def seconds() -> float:
        begun = time.perf_counter()
        act()
        return time.perf_counter() - begun

    return seconds


def _plainly(command: Sequence[str]) -> None:
    subprocess.run(command, input=STDIN, capture_output=True, check=True)


@contextmanager
def _floor(script: Path) -> Iterator[Callable[[], float]]:
    """What does the least for a check, and tells the seconds that it took."""
    command = [sys.executable, "-c", FLOOR, str(script), STDIN.decode()]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1) as warm:
        asked, told = warm.stdin, warm.stdout
        assert asked is not None
        assert told is not None

        def least() -> float:
            asked.write("\n")
            return float(told.readline())

        yield least


def _forked(job: ProgramJob, *, sandboxed: bool) -> None:
    """Run a program as a fork, as an executor does, but with blocking pipes."""
    launcher = LAUNCHER_POOL.get_launcher(find_prefork_interpreter(job))
    sandbox = Sandbox(restrictions=None, environment=job.environment)
    if sandboxed:
        sandbox = SandboxBuilder(capabilities=launcher.capabilities).build(
            job.sandbox_policy,
            command=job.command,
            cwd=job.cwd,
            environment=job.environment,
            timeout_seconds=job.timeout_seconds,
            number=0,
        )
    request = sandbox.make_start_request(job.command, job.cwd)
    process = start_program(request, launcher, find_job_imports(job))
    process.stdin.write(STDIN)
    process.stdin.close()
    process.stdout.read()
    while not process.has_ended():
        time.sleep(0.0001)
    if process.finish() != 0:
        raise RuntimeError("the evaluator failed")
