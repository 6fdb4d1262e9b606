"""An interrupted run leaves no processes behind and reports all finished checks."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentci.cli.main import run_command
from agentci.runner.services import Interruption
from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import ROOT, make_session
from tests.helpers.waiting import find_processes, is_running, wait_until

CONFIG = """\
evaluators:
- {name: quick, type: code, path: quick.py}
- {name: slow, type: code, path: slow.py, timeout: 900}
traces: trace.json
"""
SLOW = """\
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", __file__])
time.sleep(300)
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_signal_ends_child_processes_and_writes_partial_results(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (tmp_path / "eval_config.yaml").write_text(CONFIG)
    (tmp_path / "trace.json").write_text(otlp())
    (tmp_path / "quick.py").write_text("print('{\"score\": 1}')")
    (tmp_path / "slow.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "agentci", "run", "--jobs", "1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Tests that nohup started ignore SIGHUP, and so would this process.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # noqa: PLW1509 (no threads here)
    )
    slow = str(tmp_path / "slow.py")
    wait_until(lambda: len(find_processes(slow)) == 2)
    process_ids = find_processes(slow)
    process.send_signal(number)
    out, _ = process.communicate()
    assert process.returncode == code, out
    assert not any(map(is_running, process_ids))
    report = json.loads((tmp_path / "agentci-results" / "results.json").read_text())
    assert not report["complete"]
    assert not report["decision"]["passed"]
    assert [result["evaluator"] for result in report["results"]] == ["quick"]
    assert "Traceback" not in out


def test_signal_while_reading_traces_writes_incomplete_report(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(otlp())
    (tmp_path / "set.json").write_text(eval_set())
    interruption = _WhileReading()
    session = make_session(tmp_path, {}, interruption=interruption)
    given = ["--traces", "trace.json", "--eval-set", "set.json"]
    arguments = ["run", "--metric", "response_match_score", *given]
    assert run_command(arguments, session) == 130
    assert not interruption.is_immediate_allowed
    report = json.loads((tmp_path / "agentci-results" / "results.json").read_text())
    assert (report["complete"], report["results"]) == (False, [])
    assert "interrupted by SIGINT" in report["decision"]["reasons"][0]


class _WhileReading(Interruption):
    """Simulates a signal that arrives before the first trace is read."""

    def is_requested(self) -> bool:
        if self.is_immediate_allowed:
            self.request_stop(signal.SIGINT)
            self.raise_if_allowed()
        return super().is_requested()


def test_signal_ends_other_commands_immediately(tmp_path: Path) -> None:
    program = """
import os, signal, sys, time
from agentci.cli.session import run_in_process

def command(session):
    signal.raise_signal(signal.SIGTERM)
    time.sleep(300)

sys.exit(run_in_process(command, os.environ))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (143, "")


TWICE = """\
import itertools, signal, sys
from agentci.runner.services import Interruption
from agentci.execution.local import LocalExecutor

def interrupt(moment):
    '''The first signal; a second one comes when the handler has gone on by MOMENT lines.'''
    lines = itertools.count()
    interruption, executor = Interruption(), LocalExecutor()
    def end(number, frame):
        interruption.request_stop(number)
        executor.stop()
    def trace(frame, event, argument):
        if event == "line" and next(lines) == moment:
            signal.raise_signal(signal.SIGTERM)
        return trace
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    sys.settrace(trace)
    signal.raise_signal(signal.SIGINT)
    sys.settrace(None)
    return interruption.is_requested() and next(lines) > moment

print(sum(interrupt(moment) for moment in range(30)))
"""


def test_second_signal_during_first_handler_is_safe() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", TWICE],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "30\n"


DAEMON = """\
import os, pathlib, subprocess, sys, time
program = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()} '); time.sleep(300)"
file = pathlib.Path(os.environ["TMPDIR"], "pid")
subprocess.Popen(["setsid", "-f", "env", "-i", sys.executable, "-c", program, file])
while not file.exists() or not file.read_text():
    time.sleep(0.01)
print('{"score": 1, "details": {"pid": %s}}' % file.read_text())
"""


def test_daemon_of_evaluator_does_not_outlive_run(tmp_path: Path) -> None:
    (tmp_path / "eval_config.yaml").write_text(CONFIG.partition("- {name: slow")[0])
    (tmp_path / "trace.json").write_text(otlp())
    (tmp_path / "quick.py").write_text(DAEMON)
    ran = subprocess.run(
        [sys.executable, "-m", "agentci", "run", "--traces", "trace.json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert ran.returncode == 0
    report = json.loads((tmp_path / "agentci-results" / "results.json").read_text())
    assert not is_running(report["results"][0]["details"]["pid"])
