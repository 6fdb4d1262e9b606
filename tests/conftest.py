"""What every test gets: a home and a network that it cannot harm, and golden files."""

import gc
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable, Generator
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, settings

GOLDEN = Path(__file__).resolve().parent / "golden"
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TERM", "TMPDIR")
# Where coverage is measured: the tests of the pure packages, and the others that execute lines or
# branches of these which no other test does. Measuring the rest would take longer than they do.
MEASURED = (
    *("tests/_util/", "tests/model/", "tests/recordings/", "tests/evaluators/", "tests/config/"),
    *("tests/gate/", "tests/reports/", "tests/judges/", "tests/conformance/"),
    *("tests/cli/commands/test_evaluator_run_graders", "tests/cli/commands/test_init"),
    *("tests/cli/commands/test_show", "tests/record/test_printed_answer"),
    "tests/record/test_replay",
    *(
        f"tests/e2e/test_{name}.py"
        for name in (
            *("agents", "agentv_runs", "agentv_targets", "agentv_version5", "baseline"),
            *("baseline_in_repository", "emit_otel", "eval_sets", "evaluator_caches", "examples"),
            *("false_passes", "judge_metrics", "judge_oidc", "judge_response_cache"),
            *("lock_conflicts", "openai_eval", "planted_links", "prompt_evaluators", "repeat"),
            *("response_cache", "results_of_tools", "shards", "target_proxy", "transcripts"),
            *("trials", "unused_settings"),
        )
    ),
)

Golden: TypeAlias = Callable[[str, str], None]
MakeOnce: TypeAlias = Callable[[Path, Callable[[Path], object]], None]

settings.register_profile(
    "agentci",
    derandomize=bool(os.environ.get("CI")),
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("agentci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many of the attacks of tests/attacks were refused, and why others did not run."""
    outcomes = {
        name: [
            each
            for each in terminalreporter.getreports(name)
            if each.nodeid.startswith("tests/attacks/")
        ]
        for name in ("passed", "failed", "error", "skipped")
    }
    refused, skipped = len(outcomes["passed"]), outcomes["skipped"]
    run = refused + len(outcomes["failed"]) + len(outcomes["error"])
    if run or skipped:
        reasons = sorted({str(each.longrepr[2]) for each in skipped})
        not_run = "".join(f"; not run: {reason}" for reason in reasons)
        terminalreporter.write_line(f"attacks: {refused} of {run} refused{not_run}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure coverage only during tests that add to it, and during fixtures."""
    measurement = _find_measurement()
    if measurement is None or item.nodeid.startswith(MEASURED):
        return (yield)
    measurement.stop()
    try:
        return (yield)
    finally:
        measurement.start()


def _find_measurement() -> Any:
    """The measurement of coverage in this process; None if there is none."""
    coverage = sys.modules.get("coverage")
    return coverage.Coverage.current() if coverage else None


def pytest_sessionstart(session: pytest.Session) -> None:
    gc.disable()  # collecting tests makes a million objects, none of which is garbage
    measurement = _find_measurement()
    if measurement is not None and session.config.pluginmanager.has_plugin("dsession"):
        measurement.stop()  # pytest-xdist runs no test in this process


def pytest_collection_finish() -> None:
    gc.freeze()  # so that no garbage collection looks through all tests
    gc.enable()


@pytest.fixture(scope="session")
def _make_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes empty folders by counting; pytest itself looks through all others for each."""
    base, numbers = tmp_path_factory.getbasetemp(), count()

    def make_folder(name: str) -> Path:
        folder = base / f"{name}-{next(numbers)}"
        folder.mkdir(mode=0o700)
        return folder

    return make_folder


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, _make_folder: Callable[[str], Path]) -> Path:
    """A new folder with a part of the test's name."""
    return _make_folder(re.sub(r"\W", "_", request.node.name)[:30])


@pytest.fixture(scope="module")
def _templates() -> dict[str, Path]:
    """Folders that are made by the first test of a module and copied for the others."""
    return {}


@pytest.fixture
def make_once(
    _make_folder: Callable[[str], Path], _templates: dict[str, Path], _guarded: None
) -> MakeOnce:
    """Fill a folder by a function, or by a copy of what it made for an earlier test."""

    def make_once(folder: Path, make: Callable[[Path], object]) -> None:
        name = make.__qualname__
        if name not in _templates:
            make(folder)
            _templates[name] = _make_folder("template")
            shutil.copytree(folder, _templates[name], dirs_exist_ok=True, symlinks=True)
        else:
            shutil.copytree(_templates[name], folder, dirs_exist_ok=True, symlinks=True)

    return make_once


@pytest.fixture(scope="session")
def _homes() -> list[Path]:
    """The home of the last test, which the next one gets if nothing is in it."""
    return []


@pytest.fixture(autouse=True)
def _guarded(
    _make_folder: Callable[[str], Path], _homes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test sees the machine's environment, writes to its home or talks to the internet."""
    for name in list(os.environ):
        if name not in KEPT_VARIABLES and not name.startswith(("PYTEST_", "COV_CORE_")):
            monkeypatch.delenv(name)
    if not _homes or not _homes[-1].is_dir() or os.listdir(_homes[-1]):  # noqa: PTH208 (is faster)
        _homes[:] = [_make_folder("home")]
    home = _homes[-1]
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    # No test needs its files after a power failure, and the disk is what most of them wait for.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    connect = socket.socket.connect

    def connect_locally(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and not str(address).startswith("('127.0.0.1'"):
            pytest.fail(f"a test connects to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect_locally)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a text with tests/golden/NAME; ``--update-golden`` writes it instead."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        assert text == file.read_text(encoding="utf-8"), f"see tests/golden/{name}"

    return compare
