"""Programs run to their end, and end with all that they started."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.local import LocalExecutor
from agentci.execution.registry import EXECUTORS
from agentci.model.requests import ProgramOutput
from tests.execution.conftest import Marked
from tests.helpers.support import EVALUATORS, ROOT
from tests.helpers.waiting import NO_TIMEOUT_SECONDS, wait_until

RESULT = {"score": 1.0}

COUNT_THE_DEAD = """\
import os, pathlib, sys
from agentci.execution.local import LocalExecutor

executor = LocalExecutor()
for _ in range(3):
    executor.run(
        (sys.executable, sys.argv[1]), stdin=b"", timeout_seconds=900,
        cwd=pathlib.Path.cwd(), environment={},
    )
files = pathlib.Path("/proc").glob("[0-9]*/stat")
print(sum(f") Z {os.getpid()} " in file.read_text() for file in files))
"""


def test_a_program_that_ends_leaves_its_output_and_its_code(marked: Marked) -> None:
    response = marked.run("exits_3.py")
    assert response.exit_code == 3
    assert response.stdout == b'{"score": 1.0}\n'
    assert response.stderr == "nope\nline2\n"


def test_a_signal_is_a_negative_code(marked: Marked) -> None:
    assert marked.run("kills_itself.py").exit_code == -signal.SIGKILL


def test_the_local_executor_is_what_configs_call_local() -> None:
    assert isinstance(EXECUTORS["local"](), LocalExecutor)


class TestPipes:
    @pytest.mark.parametrize(
        "program",
        [
            pytest.param("floods_stderr.py", id="which logs 1 MB before it reads"),
            pytest.param("reads_nothing.py", id="which never reads"),
            pytest.param("closes_stdin.py", id="which closes stdin"),
        ],
    )
    def test_two_megabytes_of_input_do_not_block_a_program(
        self, program: str, marked: Marked
    ) -> None:
        stdin = json.dumps({"text": "x" * 2_000_000}).encode()
        assert json.loads(marked.run(program, stdin=stdin).stdout) == RESULT

    def test_input_and_output_may_be_in_flight_at_once(self, marked: Marked) -> None:
        stdin = os.urandom(4_000_000)
        assert marked.run("echoes.py", stdin=stdin).stdout == stdin

    def test_input_may_be_empty(self, marked: Marked) -> None:
        assert marked.run("echoes.py", stdin=b"").stdout == b""

    def test_only_the_end_of_a_long_log_is_kept(self, marked: Marked) -> None:
        response = marked.run("floods_stderr.py")
        assert response.stderr.endswith("noise\nthe last line\n")
        assert len(response.stderr) == 64 * 1024

    @pytest.mark.parametrize(
        ("program", "complaint"),
        [
            pytest.param("floods_stdout.py", "printed more than 10 MiB to stdout", id="stdout"),
            pytest.param(
                "floods_stderr_for_ever.py", "printed more than 64 MiB to stderr", id="stderr"
            ),
        ],
    )
    def test_a_flood_is_an_error_that_says_how_much_is_borne(
        self, program: str, complaint: str, marked: Marked
    ) -> None:
        with pytest.raises(EvaluatorError, match=f"^{complaint}"):
            marked.run(program)
        marked.wait_for_end()

    def test_undecodable_log_bytes_are_replaced(self, tmp_path: Path) -> None:
        program = tmp_path / "log.py"
        program.write_text("import os; os.write(2, b'caf\\xe9')")
        assert _run(program).stderr == "caf\ufffd"


class TestTimeOut:
    @pytest.mark.parametrize(
        "program",
        [
            "hangs.py",
            "ignores_sigterm.py",
            "forks_and_sleeps.py",
            "closes_its_pipes_and_hangs.py",
        ],
    )
    def test_ends_the_program_with_its_children_on_time(self, program: str, marked: Marked) -> None:
        begun = time.monotonic()
        with pytest.raises(EvaluatorError, match=r"^timed out after 0\.5 s"):
            marked.run(program, timeout_seconds=0.5)
        assert time.monotonic() - begun >= 0.5
        marked.wait_for_end()

    def test_tells_a_way_out_and_the_last_words(self, marked: Marked) -> None:
        seconds, message = 1, ""
        while "last line" not in message:  # until the program had time to print it
            seconds *= 2
            with pytest.raises(EvaluatorError) as caught:
                marked.run("hangs.py", timeout_seconds=seconds)
            message = str(caught.value)
        assert message == (
            f"timed out after {seconds} s; raise `timeout` if it needs longer;"
            " last line on stderr: waiting for the model"
        )

    def test_reaches_a_daemon_of_a_program_that_hangs(self, marked: Marked, tmp_path: Path) -> None:
        program = tmp_path / "hangs_with_a_daemon.py"
        program.write_text(
            "import os, time\nif os.fork() == 0: os.setsid(); os.closerange(0, 3)\ntime.sleep(300)"
        )
        with pytest.raises(EvaluatorError, match="timed out"):
            marked.run(str(program), timeout_seconds=0.5)
        marked.wait_for_end()


class TestWhatAProgramLeavesBehind:
    @pytest.mark.parametrize("program", ["leaves_a_background_process.py", "leaves_a_daemon.py"])
    def test_does_not_delay_its_result_and_is_ended(self, program: str, marked: Marked) -> None:
        assert json.loads(marked.run(program).stdout) == RESULT
        marked.wait_for_end()

    def test_takes_up_no_number_once_it_is_dead(self, tmp_path: Path) -> None:
        program = EVALUATORS / "leaves_a_background_process.py"
        ran = subprocess.run(
            [sys.executable, "-c", COUNT_THE_DEAD, program],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout == "0\n"

    def test_may_finish_what_it_prints(self, marked: Marked) -> None:
        assert json.loads(marked.run("prints_late_from_a_child.py").stdout) == RESULT

    def test_is_ended_where_nothing_tells_of_it(self, marked: Marked) -> None:
        assert json.loads(marked.run("leaves_a_silent_daemon.py").stdout) == RESULT
        assert marked.left() == []


class TestStop:
    def test_in_the_middle_of_forty_runs_leaves_no_process_behind(self, marked: Marked) -> None:
        programs = ["forks_and_sleeps.py", "leaves_a_daemon.py", "ignores_sigterm.py", "hangs.py"]
        with ThreadPoolExecutor(max_workers=40) as pool:
            runs = [pool.submit(marked.run, programs[number % 4]) for number in range(40)]
            wait_until(marked.left)
            time.sleep(0.3)  # so that others start meanwhile
            marked.executor.stop()
            errors = [run.exception() for run in runs]
        marked.wait_for_end()
        assert Counter(str(error) for error in errors if error)["was interrupted"] >= 30

    def test_lets_nothing_start_any_more(self, marked: Marked) -> None:
        marked.executor.stop()
        with pytest.raises(EvaluatorError, match=r"^was interrupted$"):
            marked.run("reads_nothing.py")

    def test_may_come_from_a_signal_handler_in_the_middle_of_a_run(self, marked: Marked) -> None:
        before = signal.signal(signal.SIGUSR1, lambda *_: marked.executor.stop())
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        try:
            with pytest.raises(EvaluatorError, match=r"^was interrupted$"):
                marked.run("hangs.py")
        finally:
            timer.join()
            signal.signal(signal.SIGUSR1, before)
        marked.wait_for_end()


def test_many_programs_at_once_do_not_mix_their_output(marked: Marked) -> None:
    inputs = [str(number).encode() * 50_000 for number in range(40)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        replies = pool.map(lambda stdin: marked.run("echoes.py", stdin=stdin), inputs)
        assert [response.stdout for response in replies] == inputs


def test_the_program_sees_its_environment_its_folder_and_no_more(tmp_path: Path) -> None:
    program = EVALUATORS / "prints_its_environment.py"
    response = LocalExecutor().run(
        (sys.executable, str(program)),
        stdin=b"",
        timeout_seconds=NO_TIMEOUT_SECONDS,
        cwd=tmp_path,
        environment={"ONLY": "this"},
    )
    details = json.loads(response.stdout)["details"]
    assert details["cwd"] == str(tmp_path)
    assert set(details["environment"]) - {"LC_CTYPE"} == {"ONLY", "AGENTCI_EVALUATOR_RUN"}


def test_the_program_can_be_asked_to_end_like_any_other(tmp_path: Path) -> None:
    program = tmp_path / "asks.py"
    program.write_text(
        "import signal\n"
        "asked = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)\n"
        "print([each.name for each in asked if signal.getsignal(each) is signal.SIG_IGN])\n"
    )
    response = _run_command((sys.executable, str(program)), tmp_path)
    assert response.stdout == b"['SIGPIPE']\n"  # which Python itself ignores


class TestStart:
    def test_of_a_script_without_a_first_line_is_explained(self, tmp_path: Path) -> None:
        program = tmp_path / "script"
        program.write_text("echo hello\n")
        program.chmod(0o755)
        with pytest.raises(EvaluatorError, match=r"could not be started: .*#!/usr/bin/env bash"):
            _run_command((str(program),), tmp_path)

    def test_of_a_file_that_is_not_executable_is_explained(self, tmp_path: Path) -> None:
        program = tmp_path / "script"
        program.write_text("#!/bin/sh\n")
        with pytest.raises(EvaluatorError, match=r"could not be started: .*chmod \+x"):
            _run_command((str(program),), tmp_path)

    def test_of_a_script_whose_interpreter_is_closed_is_explained(self, tmp_path: Path) -> None:
        interpreter, program = tmp_path / "interpreter", tmp_path / "script"
        interpreter.write_text("")
        program.write_text(f"#!{interpreter}\n")
        program.chmod(0o755)
        with pytest.raises(EvaluatorError, match=r"started: .*; the interpreter in its first line"):
            _run_command((str(program),), tmp_path)

    def test_of_what_is_not_there_is_explained(self, tmp_path: Path) -> None:
        with pytest.raises(EvaluatorError, match=r"^could not be started: "):
            _run_command((str(tmp_path / "nothing"),), tmp_path)


def _run(program: Path) -> ProgramOutput:
    return _run_command((sys.executable, str(program)), program.parent)


def _run_command(command: tuple[str, ...], cwd: Path) -> ProgramOutput:
    return LocalExecutor().run(
        command,
        stdin=b"",
        timeout_seconds=NO_TIMEOUT_SECONDS,
        cwd=cwd,
        environment=make_child_environment({}),
    )
