"""Errors of installers are reported with a limited length."""

import sys
from pathlib import Path

import pytest

from agentci._util.workspace import find_workspace
from agentci.errors import EvaluatorError
from agentci.execution.installers import LAST_LINES, MAX_OUTPUT_CHARS, InstallerRunner
from agentci.execution.local import LocalExecutor


@pytest.fixture
def installer_runner() -> InstallerRunner:
    workspace = find_workspace(Path.cwd())
    executor = LocalExecutor()
    return InstallerRunner(executor=executor, environment={}, search_path="", workspace=workspace)


def make_failing_command(code: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-c", f"import sys\n{code}\nsys.exit(1)")


def fail_with(installer_runner: InstallerRunner, code: str) -> str:
    with pytest.raises(EvaluatorError) as failed:
        installer_runner.run(make_failing_command(code))
    return str(failed.value)


def test_stdout_of_installer_is_returned(installer_runner: InstallerRunner) -> None:
    assert installer_runner.run((sys.executable, "-P", "-c", "print(1)")) == b"1\n"


def test_error_shows_last_lines(installer_runner: InstallerRunner) -> None:
    message = fail_with(installer_runner, "for i in range(50): print(f'line {i}', file=sys.stderr)")
    assert "line 49" in message
    assert f"line {49 - LAST_LINES}" not in message


def test_long_error_line_is_cut(installer_runner: InstallerRunner) -> None:
    assert (
        len(fail_with(installer_runner, "print('x' * 100_000, file=sys.stderr)"))
        < MAX_OUTPUT_CHARS + 300
    )


def test_error_shows_stdout_if_stderr_is_empty(installer_runner: InstallerRunner) -> None:
    assert "only here" in fail_with(installer_runner, "print('only here')")


def test_error_without_output_shows_exit_code(installer_runner: InstallerRunner) -> None:
    assert "exit code 1" in fail_with(installer_runner, "")


@pytest.mark.parametrize(
    ("output", "hint"),
    [
        ("ensurepip is not available", "install uv, or install pip"),
        ("OSError: [Errno 28] No space left on device", "free disk space"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "agentci lock"),
        ("Connection refused", "is reachable"),
    ],
)
def test_known_error_has_hint(installer_runner: InstallerRunner, output: str, hint: str) -> None:
    assert hint in fail_with(installer_runner, f"print({output!r})")


def test_missing_installer_raises_start_error(installer_runner: InstallerRunner) -> None:
    with pytest.raises(EvaluatorError, match=r"could not install.*could not be started"):
        installer_runner.run(("/nowhere/uv",))
