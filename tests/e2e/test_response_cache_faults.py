"""A response cache that is corrupt, locked or shared costs time, never a wrong result."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agentci._util.cache_folder import RESPONSES_FILE
from agentci.cli.commands.cache import inspect_responses
from agentci.model.requests import ProgramOutput
from agentci.runner.response_cache.store import SELECT_ROWS, ResponseRow, parse_row
from tests.e2e.cached_runs import configure, run, write_program
from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import ROOT, cache_of, run_agentci
from tests.helpers.waiting import find_processes, wait_until

pytestmark = pytest.mark.slow

# Set sys.path here: programs would inherit PYTHONPATH.
MAIN = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    "from agentci.cli.main import main; sys.exit(main())"
)
NOT_CACHED = "responses are not cached: "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace whose program has run once."""
    write_program(tmp_path)
    run(tmp_path)
    return tmp_path


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_truncated_cache_file_is_recreated(folder: Path, size: int) -> None:
    os.truncate(cache_of(folder) / RESPONSES_FILE, size)
    assert [run(folder).cached for _ in range(2)] == [[False], [True]]


def test_cache_file_with_other_content_is_recreated(folder: Path) -> None:
    (cache_of(folder) / RESPONSES_FILE).write_bytes(os.urandom(50_000))
    assert [run(folder).cached for _ in range(2)] == [[False], [True]]


def test_cache_file_of_other_version_is_ignored_with_note(folder: Path) -> None:
    with sqlite3.connect(cache_of(folder) / RESPONSES_FILE) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    ran = run(folder)
    assert (ran.code, ran.cached) == (0, [False])
    file = cache_of(folder) / RESPONSES_FILE
    assert f"note: {NOT_CACHED}{file} was created by another version of agentci" in ran.out


def test_tampered_response_is_not_used(folder: Path) -> None:
    with sqlite3.connect(cache_of(folder) / RESPONSES_FILE) as connection:
        connection.execute("UPDATE responses SET stdout = stdout || ' '")
    connection.close()
    assert [run(folder).cached for _ in range(2)] == [[False], [True]]


def test_cached_response_without_verdict_is_discarded(folder: Path) -> None:
    with sqlite3.connect(cache_of(folder) / RESPONSES_FILE) as connection:
        row = parse_row(connection.execute(SELECT_ROWS).fetchone())
        assert row is not None
        broken = ProgramOutput(stdout=b"no verdict", stderr="", exit_code=1)
        forged = ResponseRow(key=row.key, response=broken, used=row.used)
        marks = ", ".join("?" * 6)
        connection.execute(
            f"INSERT OR REPLACE INTO responses VALUES ({marks})", forged.to_columns()
        )
    connection.close()
    ran = run(folder)
    assert (ran.code, ran.cached) == (0, [False])
    assert run(folder).cached == [True]


def test_cache_in_checkout_is_ignored_with_note(folder: Path) -> None:
    cache_of(folder).rename(folder / "cache")
    for _ in range(2):
        ran = run(folder, "--cache-dir", "cache")
        assert (ran.code, ran.cached) == (0, [False])
        assert (
            ran.out.count(f"note: the cache cache is not used: it is in the checkout {folder}") == 1
        )


def test_file_in_place_of_cache_folder_disables_cache(tmp_path: Path) -> None:
    write_program(tmp_path)
    cache_of(tmp_path).touch()
    ran = run(tmp_path)
    assert (ran.code, ran.cached, NOT_CACHED in ran.out) == (0, [False], True)
    assert "(name another folder with --cache-dir)" in ran.out


def test_concurrent_processes_leave_valid_cache_file(tmp_path: Path) -> None:
    write_program(tmp_path)
    for number in range(10):
        (tmp_path / f"trace-{number}.json").write_text(otlp(trace=number + 1))
    halves = [
        _start(tmp_path, "--output-dir", half, "--traces", f"trace-[{half}].json")
        for half in ("01234", "56789")
    ]
    assert [process.wait(60) for process in halves] == [0, 0]
    assert inspect_responses(cache_of(tmp_path)).corrupt == 0
    run(tmp_path)
    assert run(tmp_path).cached == [True] * 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_caches_finished_checks(tmp_path: Path, number: signal.Signals) -> None:
    write_program(tmp_path)
    slow = tmp_path / "slow.py"
    slow.write_text("import time; time.sleep(60)")
    config = (tmp_path / "eval_config.yaml").read_text()
    (tmp_path / "eval_config.yaml").write_text(
        config + "- {name: slow, type: code, path: slow.py, timeout: 60}\n"
    )
    process = _start(tmp_path, "--jobs", "1")
    wait_until(lambda: find_processes(str(slow)))
    process.send_signal(number)
    assert process.wait(20) == 128 + number
    (tmp_path / "eval_config.yaml").write_text(config)
    assert _start(tmp_path).wait(60) == 0
    results = json.loads((tmp_path / "agentci-results" / "results.json").read_text())["results"]
    assert [result["cached"] for result in results] == [True]


@pytest.mark.parametrize(
    ("command", "code", "expected"),
    [
        ("run", 0, f"note: {NOT_CACHED}this Python has no `sqlite3` module"),
        ("cache verify", 2, "damaged: responses.sqlite3: this Python has no `sqlite3` module"),
        ("cache clean", 0, "removed 0 evaluators and 0 environments: "),
    ],
)
def test_python_without_sqlite3_disables_cache(
    folder: Path, command: str, code: int, expected: str
) -> None:
    program = f"import sys; sys.modules['_sqlite3'] = None; {MAIN}"
    cache = ("--cache-dir", str(cache_of(folder)))
    ran = subprocess.run(
        [sys.executable, "-c", program, *command.split(), *cache],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, expected in ran.stdout) == (code, True), ran.stdout + ran.stderr


def test_cache_in_checkout_causes_no_note_without_caching(tmp_path: Path) -> None:
    write_program(tmp_path)
    configure(tmp_path, cache="")
    assert "is not used" not in run(tmp_path, "--cache-dir", "cache").out


def test_metrics_create_no_cache_folder(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(otlp())
    (tmp_path / "set.json").write_text(eval_set())
    given = ["--traces", "trace.json", "--eval-set", "set.json"]
    assert run_agentci(["run", "--metric", "response_match_score", *given], cwd=tmp_path).code == 0
    assert not cache_of(tmp_path).exists()


def _start(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, "run", "--cache-dir", str(cache_of(folder)), *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
