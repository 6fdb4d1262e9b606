"""The local executor: input and output, time limits, and killing of all processes."""

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

COUNT_ZOMBIES = """\
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


def test_output_and_exit_code_are_returned(marked: Marked) -> None:
    response = marked.run("exits_3.py")
    assert response.exit_code == 3
    assert response.stdout == b'{"score": 1.0}\n'
    assert response.stderr == "nope\nline2\n"


def test_signal_becomes_negative_exit_code(marked: Marked) -> None:
    assert marked.run("kills_itself.py").exit_code == -signal.SIGKILL


def test_name_local_selects_local_executor() -> None:
    assert isinstance(EXECUTORS["local"](), LocalExecutor)


class TestPipes:
    @pytest.mark.parametrize(
        "program",
        [
            pytest.param("floods_stderr.py", id="logs 1 MB before it reads"),
            pytest.param("reads_nothing.py", id="never reads"),
            pytest.param("closes_stdin.py", id="closes stdin"),
        ],
    )
    def test_two_megabytes_of_stdin_do_not_block_program(
        self, program: str, marked: Marked
    ) -> None:
        stdin = json.dumps({"text": "x" * 2_000_000}).encode()
        assert json.loads(marked.run(program, stdin=stdin).stdout) == RESULT

    def test_stdin_and_stdout_are_transferred_concurrently(self, marked: Marked) -> None:
        stdin = os.urandom(4_000_000)
        assert marked.run("echoes.py", stdin=stdin).stdout == stdin

    def test_empty_stdin_is_accepted(self, marked: Marked) -> None:
        assert marked.run("echoes.py", stdin=b"").stdout == b""

    def test_long_stderr_is_cut_to_its_end(self, marked: Marked) -> None:
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
    def test_too_much_output_raises_error_with_limit(
        self, program: str, complaint: str, marked: Marked
    ) -> None:
        with pytest.raises(EvaluatorError, match=f"^{complaint}"):
            marked.run(program)
        marked.wait_for_end()

    def test_undecodable_stderr_bytes_are_replaced(self, tmp_path: Path) -> None:
        program = tmp_path / "log.py"
        program.write_text("import os; os.write(2, b'caf\\xe9')")
        assert _run(program).stderr == "caf\ufffd"


class TestTimeout:
    @pytest.mark.parametrize(
        "program",
        [
            "hangs.py",
            "ignores_sigterm.py",
            "forks_and_sleeps.py",
            "closes_its_pipes_and_hangs.py",
        ],
    )
    def test_timeout_kills_program_and_its_children(self, program: str, marked: Marked) -> None:
        begun = time.monotonic()
        with pytest.raises(EvaluatorError, match=r"^timed out after 0\.5 s"):
            marked.run(program, timeout_seconds=0.5)
        assert time.monotonic() - begun >= 0.5
        marked.wait_for_end()

    def test_timeout_message_has_last_stderr_line(self, marked: Marked) -> None:
        seconds, message = 1, ""
        while "last line" not in message:  # until the program had enough time to print it
            seconds *= 2
            with pytest.raises(EvaluatorError) as caught:
                marked.run("hangs.py", timeout_seconds=seconds)
            message = str(caught.value)
        assert message == (
            f"timed out after {seconds} s; last line on stderr: waiting for the model"
        )

    def test_timeout_kills_daemon_of_hanging_program(self, marked: Marked, tmp_path: Path) -> None:
        program = tmp_path / "hangs_with_a_daemon.py"
        program.write_text(
            "import os, time\nif os.fork() == 0: os.setsid(); os.closerange(0, 3)\ntime.sleep(300)"
        )
        with pytest.raises(EvaluatorError, match="timed out"):
            marked.run(str(program), timeout_seconds=0.5)
        marked.wait_for_end()


class TestLeftoverProcesses:
    @pytest.mark.parametrize("program", ["leaves_a_background_process.py", "leaves_a_daemon.py"])
    def test_background_process_is_killed_without_delaying_result(
        self, program: str, marked: Marked
    ) -> None:
        assert json.loads(marked.run(program).stdout) == RESULT
        marked.wait_for_end()

    def test_dead_background_process_leaves_no_zombie(self, tmp_path: Path) -> None:
        program = EVALUATORS / "leaves_a_background_process.py"
        process = subprocess.run(
            [sys.executable, "-c", COUNT_ZOMBIES, program],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert process.stdout == "0\n"

    def test_late_output_of_child_is_read(self, marked: Marked) -> None:
        assert json.loads(marked.run("prints_late_from_a_child.py").stdout) == RESULT

    def test_daemon_without_open_files_is_killed(self, marked: Marked) -> None:
        assert json.loads(marked.run("leaves_a_silent_daemon.py").stdout) == RESULT
        assert marked.left() == []


class TestStop:
    def test_stop_during_forty_runs_leaves_no_process(self, marked: Marked) -> None:
        programs = ["forks_and_sleeps.py", "leaves_a_daemon.py", "ignores_sigterm.py", "hangs.py"]
        with ThreadPoolExecutor(max_workers=40) as pool:
            runs = [pool.submit(marked.run, programs[number % 4]) for number in range(40)]
            wait_until(marked.left)
            time.sleep(0.3)  # so that more programs start
            marked.executor.stop()
            errors = [run.exception() for run in runs]
        marked.wait_for_end()
        assert Counter(str(error) for error in errors if error)["was interrupted"] >= 30

    def test_program_does_not_start_after_stop(self, marked: Marked) -> None:
        marked.executor.stop()
        with pytest.raises(EvaluatorError, match=r"^was interrupted$"):
            marked.run("reads_nothing.py")

    def test_stop_works_from_signal_handler_during_run(self, marked: Marked) -> None:
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


def test_concurrent_programs_do_not_mix_output(marked: Marked) -> None:
    inputs = [str(number).encode() * 50_000 for number in range(40)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        replies = pool.map(lambda stdin: marked.run("echoes.py", stdin=stdin), inputs)
        assert [response.stdout for response in replies] == inputs


def test_program_sees_only_given_environment_and_folder(tmp_path: Path) -> None:
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


def test_program_starts_without_ignored_signals(tmp_path: Path) -> None:
    program = tmp_path / "asks.py"
    program.write_text(
        "import signal\n"
        "asked = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)\n"
        "print([each.name for each in asked if signal.getsignal(each) is signal.SIG_IGN])\n"
    )
    response = _run_command((sys.executable, str(program)), tmp_path)
    assert response.stdout == b"['SIGPIPE']\n"  # Python itself ignores SIGPIPE


class TestStartErrors:
    def test_script_without_shebang_raises_error_with_hint(self, tmp_path: Path) -> None:
        program = tmp_path / "script"
        program.write_text("echo hello\n")
        program.chmod(0o755)
        with pytest.raises(EvaluatorError, match=r"could not be started: .*#!/usr/bin/env bash"):
            _run_command((str(program),), tmp_path)

    def test_file_without_execute_bit_raises_error_with_hint(self, tmp_path: Path) -> None:
        program = tmp_path / "script"
        program.write_text("#!/bin/sh\n")
        with pytest.raises(EvaluatorError, match=r"could not be started: .*chmod \+x"):
            _run_command((str(program),), tmp_path)

    def test_non_executable_interpreter_is_named_as_cause(self, tmp_path: Path) -> None:
        interpreter, program = tmp_path / "interpreter", tmp_path / "script"
        interpreter.write_text("")
        program.write_text(f"#!{interpreter}\n")
        program.chmod(0o755)
        with pytest.raises(EvaluatorError, match=r"started: .*; the interpreter in its first line"):
            _run_command((str(program),), tmp_path)

    def test_missing_program_raises_start_error(self, tmp_path: Path) -> None:
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
