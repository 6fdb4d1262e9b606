"""What installers say when they fail is passed on, and not too much of it."""

import sys

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.environments.installers import LAST_LINES, MAX_OUTPUT_CHARS, InstallerRunner
from agentci.execution.local import LocalExecutor


@pytest.fixture
def workshop() -> InstallerRunner:
    return InstallerRunner(executor=LocalExecutor(), environment={}, search_path="")


def failing(code: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-c", f"import sys\n{code}\nsys.exit(1)")


def said_by(workshop: InstallerRunner, code: str) -> str:
    with pytest.raises(EvaluatorError) as failed:
        workshop.run(failing(code))
    return str(failed.value)


def test_what_is_printed_comes_back(workshop: InstallerRunner) -> None:
    assert workshop.run((sys.executable, "-P", "-c", "print(1)")) == b"1\n"


def test_the_last_lines_are_shown(workshop: InstallerRunner) -> None:
    said = said_by(workshop, "for i in range(50): print(f'line {i}', file=sys.stderr)")
    assert "line 49" in said
    assert f"line {49 - LAST_LINES}" not in said


def test_one_long_line_is_cut(workshop: InstallerRunner) -> None:
    assert len(said_by(workshop, "print('x' * 100_000, file=sys.stderr)")) < MAX_OUTPUT_CHARS + 300


def test_stdout_is_shown_where_stderr_is_empty(workshop: InstallerRunner) -> None:
    assert "only here" in said_by(workshop, "print('only here')")


def test_silence_is_an_exit_code(workshop: InstallerRunner) -> None:
    assert "exit code 1" in said_by(workshop, "")


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("ensurepip is not available", "install uv, or install pip"),
        ("OSError: [Errno 28] No space left on device", "free disk space"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "agentci lock"),
        ("Connection refused", "is reachable"),
    ],
)
def test_a_way_out_is_named(workshop: InstallerRunner, said: str, hint: str) -> None:
    assert hint in said_by(workshop, f"print({said!r})")


def test_what_cannot_be_started_is_said(workshop: InstallerRunner) -> None:
    with pytest.raises(EvaluatorError, match=r"could not install.*could not be started"):
        workshop.run(("/nowhere/uv",))
    assert not workshop.succeeds(("/nowhere/uv",))
