"""Responses are stored in one file, which may be corrupt, locked, foreign or full."""

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci._util.cache_folder import RESPONSES_FILE, is_cache
from agentci.cli.commands.cache import inspect_responses
from agentci.model.requests import ProgramOutput
from agentci.runner.response_cache.store import MAX_RESPONSE_BYTES, PRELOAD_BYTES, ResponseStore
from tests.helpers.support import ROOT
from tests.remote.cache_samples import as_nobody

RESPONSE = ProgramOutput(stdout=b"\xff{}", stderr="half a pair: \ud800", exit_code=0)


def _key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def _put(folder: Path, *numbers: int, response: ProgramOutput = RESPONSE) -> str:
    store = ResponseStore(folder)
    for number in numbers:
        store.put(_key(number), response)
    store.close()
    return store.problem


def _found(folder: Path, *numbers: int) -> list[int]:
    store = ResponseStore(folder)
    found = [number for number in numbers if store.find(_key(number)) is not None]
    store.close()
    return found


def test_stored_response_is_found_unchanged(tmp_path: Path) -> None:
    _put(tmp_path, 1)
    store = ResponseStore(tmp_path)
    assert store.find(_key(1)) == RESPONSE
    assert store.find(_key(2)) is None
    store.close()


def test_lookup_creates_no_cache(tmp_path: Path) -> None:
    assert _found(tmp_path / "cache", 1) == []
    assert not (tmp_path / "cache").exists()


def test_cache_file_is_private_in_marked_folder(tmp_path: Path) -> None:
    _put(tmp_path / "cache", 1)
    assert is_cache(tmp_path / "cache")
    assert stat.S_IMODE((tmp_path / "cache" / RESPONSES_FILE).stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_cache_file_belongs_to_workspace_owner(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    os.chown(workspace, 1234, 1235)
    store = ResponseStore(workspace / "cache", owner=workspace)
    store.put(_key(1), RESPONSE)
    store.close()
    status = (workspace / "cache" / RESPONSES_FILE).stat()
    assert (status.st_uid, status.st_gid) == (1234, 1235)


def test_later_response_replaces_earlier_one(tmp_path: Path) -> None:
    _put(tmp_path, 1)
    _put(tmp_path, 1, response=ProgramOutput(stdout=b"2", stderr="", exit_code=2))
    store = ResponseStore(tmp_path)
    row = store.find(_key(1))
    assert row is not None
    assert (row.stdout, row.exit_code) == (b"2", 2)
    store.close()


def test_stored_response_can_be_dropped(tmp_path: Path) -> None:
    _put(tmp_path, 1, 2)
    store = ResponseStore(tmp_path)
    store.drop(_key(1))
    store.close()
    assert _found(tmp_path, 1, 2) == [2]


def test_dropped_response_is_not_written(tmp_path: Path) -> None:
    store = ResponseStore(tmp_path)
    store.put(_key(1), RESPONSE)
    store.put(_key(2), RESPONSE)
    store.drop(_key(1))
    store.close()
    assert _found(tmp_path, 1, 2) == [2]


def test_response_stored_after_a_drop_is_kept(tmp_path: Path) -> None:
    _put(tmp_path, 1)
    store = ResponseStore(tmp_path)
    store.drop(_key(1))
    store.put(_key(1), RESPONSE)
    store.close()
    assert _found(tmp_path, 1) == [1]


def test_oversized_response_is_not_stored(tmp_path: Path) -> None:
    large = ProgramOutput(stdout=b"x" * (MAX_RESPONSE_BYTES + 1), stderr="", exit_code=0)
    assert _put(tmp_path, 1, response=large) == ""
    assert _found(tmp_path, 1) == []


def test_response_is_found_in_large_cache(tmp_path: Path) -> None:
    large = ProgramOutput(stdout=b"x" * 900_000, stderr="", exit_code=0)
    _put(tmp_path, *range(6), response=large)
    assert (tmp_path / RESPONSES_FILE).stat().st_size > PRELOAD_BYTES
    assert _found(tmp_path, 5, 1, 7) == [5, 1]


def test_responses_are_flushed_before_close(tmp_path: Path) -> None:
    """A killed process loses few responses."""
    store = ResponseStore(tmp_path)
    for number in range(300):
        store.put(_key(number), RESPONSE)
    assert len(_found(tmp_path, *range(300))) == 256
    store.close()
    assert len(_found(tmp_path, *range(300))) == 300


class TestSizeLimit:
    def test_least_recently_used_responses_are_removed_first(self, tmp_path: Path) -> None:
        _put(
            tmp_path,
            *range(100),
            response=ProgramOutput(stdout=b"x" * 1000, stderr="", exit_code=0),
        )
        with sqlite3.connect(tmp_path / RESPONSES_FILE) as connection:
            connection.execute("UPDATE responses SET used = used - 30")
        connection.close()
        assert _found(tmp_path, 1, 2, 3) == [1, 2, 3]
        store = ResponseStore(tmp_path, max_bytes=64 * 1024)
        store.put(_key(100), RESPONSE)
        store.close()
        left = _found(tmp_path, *range(101))
        assert {1, 2, 3, 100} <= set(left)
        assert len(left) < 60
        assert (tmp_path / RESPONSES_FILE).stat().st_size <= 64 * 1024


class TestDamagedFile:
    @pytest.mark.parametrize("damage", [b"no database at all" * 99, b""])
    def test_non_database_file_is_recreated(self, tmp_path: Path, damage: bytes) -> None:
        _put(tmp_path, 1)
        (tmp_path / RESPONSES_FILE).write_bytes(damage)
        assert _found(tmp_path, 1) == []
        assert _put(tmp_path, 2) == ""
        assert _found(tmp_path, 1, 2) == [2]

    @pytest.mark.parametrize("size", [50, 4000, 5000, 20_000])
    def test_truncated_file_is_recreated(self, tmp_path: Path, size: int) -> None:
        _put(tmp_path, *range(200))
        os.truncate(tmp_path / RESPONSES_FILE, size)
        _found(tmp_path, *range(200))
        assert _put(tmp_path, 300) == ""
        assert _found(tmp_path, 300) == [300]

    def test_malformed_non_utf8_schema_is_recreated(self, tmp_path: Path) -> None:
        _put(tmp_path, 1)
        file = tmp_path / RESPONSES_FILE
        data = file.read_bytes().replace(b"tableresponsesresponses", b"table\xffesponsesresponses")
        file.write_bytes(data.replace(b"CREATE TABLE responses", b"CREATE TABEL responses"))
        assert "malformed" in str(inspect_responses(tmp_path).error)
        assert _found(tmp_path, 1) == []
        assert _put(tmp_path, 2) == ""
        assert _found(tmp_path, 1, 2) == [2]

    def test_file_without_tables_is_recreated(self, tmp_path: Path) -> None:
        _put(tmp_path, 1)
        with sqlite3.connect(tmp_path / RESPONSES_FILE) as connection:
            connection.execute("DROP TABLE responses")
        connection.close()
        assert _put(tmp_path, 2) == ""
        assert _found(tmp_path, 1, 2) == [2]

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE responses SET stdout = x'7b7d'",
            "UPDATE responses SET stderr = x''",
            "UPDATE responses SET exit_code = 1",
            "UPDATE responses SET stdout = 'text'",
            "UPDATE responses SET exit_code = 'text'",
            "UPDATE responses SET checksum = x'00'",
            "UPDATE responses SET used = 'text'",
            "UPDATE responses SET stdout = CAST(x'ff' AS TEXT)",
        ],
    )
    def test_corrupt_response_is_removed(self, tmp_path: Path, change: str) -> None:
        _put(tmp_path, 1, 2)
        with sqlite3.connect(tmp_path / RESPONSES_FILE) as connection:
            connection.execute(f"{change} WHERE rowid = 1")
        connection.close()
        assert _found(tmp_path, 1, 2) == [2]
        with sqlite3.connect(tmp_path / RESPONSES_FILE) as connection:
            assert connection.execute("SELECT count(*) FROM responses").fetchone() == (1,)
        connection.close()


class TestForeignFile:
    def _left_alone(self, folder: Path) -> str:
        before = (folder / RESPONSES_FILE).read_bytes()
        assert _found(folder, 1) == []
        trouble = _put(folder, 1)
        assert (folder / RESPONSES_FILE).read_bytes() == before
        return trouble

    @pytest.mark.parametrize(
        ("change", "whose"),
        [
            ("PRAGMA user_version = 99", "version of agentci"),
            ("PRAGMA application_id = 7", "program"),
        ],
    )
    def test_file_of_other_program_or_version_is_unchanged(
        self, tmp_path: Path, change: str, whose: str
    ) -> None:
        _put(tmp_path, 1)
        with sqlite3.connect(tmp_path / RESPONSES_FILE) as connection:
            connection.execute(change)
        connection.close()
        assert f" was created by another {whose} (" in self._left_alone(tmp_path)

    def test_symlinked_cache_file_is_not_followed(self, tmp_path: Path) -> None:
        cache, other = tmp_path / "cache", tmp_path / "other"
        _put(cache, 1)
        (cache / RESPONSES_FILE).rename(other)
        (cache / RESPONSES_FILE).symlink_to(other)
        assert " is not a regular file (" in self._left_alone(cache)

    def test_cache_is_not_created_in_foreign_folder(self, tmp_path: Path) -> None:
        (tmp_path / "theirs.txt").touch()
        assert "is not an agentci cache" in _put(tmp_path, 1)
        assert [path.name for path in tmp_path.iterdir()] == ["theirs.txt"]


class TestUnwritableCache:
    @pytest.fixture
    def cache(self) -> Iterator[Path]:
        """A cache with one response, in a folder that every user can enter."""
        with tempfile.TemporaryDirectory() as name:
            Path(name).chmod(0o755)
            folder = Path(name, "cache")
            _put(folder, 1)
            yield folder

    @pytest.mark.parametrize(("mode", "found"), [(0o444, [1]), (0o000, [])])
    def test_unwritable_cache_is_read_if_permitted(
        self, cache: Path, mode: int, found: list[int]
    ) -> None:
        (cache / RESPONSES_FILE).chmod(mode)
        cache.chmod(0o555)
        with as_nobody():
            assert _found(cache, 1) == found
            assert f"{cache / RESPONSES_FILE} cannot be used: " in _put(cache, 2)
        assert _found(cache, 1, 2) == [1]

    def test_uncreatable_file_is_reported(self, cache: Path) -> None:
        (cache / RESPONSES_FILE).unlink()
        with as_nobody():
            assert f"{cache / RESPONSES_FILE} cannot be used: " in _put(cache, 2)
        assert _found(cache, 2) == []


class TestConcurrentUse:
    def test_response_stored_by_another_store_is_found(self, tmp_path: Path) -> None:
        _put(tmp_path, 1)
        store = ResponseStore(tmp_path)
        assert store.find(_key(1)) is not None
        _put(tmp_path, 2)
        assert store.find(_key(2)) is not None
        assert store.find(_key(1)) is not None
        store.close()

    def test_processes_share_one_cache(self, tmp_path: Path) -> None:
        program = (
            "import sys\nfrom pathlib import Path\n"
            "from tests.runner.response_cache.test_store import _put\n"
            "numbers = range(int(sys.argv[2]), int(sys.argv[2]) + 40)\n"
            "print(*(each for each in numbers if not _put(Path(sys.argv[1]), each)))"
        )
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(tmp_path), str(first)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for first in (0, 100, 200)
        ]
        outputs = [process.communicate(timeout=60)[0] for process in processes]
        kept = sorted(int(number) for text in outputs for number in text.split())
        assert [process.returncode for process in processes] == [0, 0, 0]
        assert _found(tmp_path, *range(300)) == kept
        assert len(kept) > 100  # the others were reported as not stored

    def test_first_runs_create_the_file_at_the_same_time(self, tmp_path: Path) -> None:
        """Each of them stores its responses; about every eighth time, one found a foreign file.

        One that waited BUSY_SECONDS for a slow disk stores none, and says so.
        """
        problems: dict[int, str] = {}

        def store_responses(folder: Path, first: int, start: threading.Barrier) -> None:
            store = ResponseStore(folder)
            start.wait()
            for number in range(first, first + 4):
                store.put(_key(number), RESPONSE)
            store.close()
            problems[first] = store.problem

        locked = 0
        for number in range(40):
            folder, start = tmp_path / str(number), threading.Barrier(2)
            threads = [
                threading.Thread(target=store_responses, args=(folder, first, start))
                for first in (0, 4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            stored = [first for first in (0, 4) if not problems[first]]
            assert _found(folder, *range(8)) == [
                each for first in stored for each in range(first, first + 4)
            ]
            others = [each for each in problems.values() if each]
            assert all("database is locked" in each for each in others), others
            locked += len(others)
        assert locked < 40

    def test_threads_share_one_store(self, tmp_path: Path) -> None:
        store = ResponseStore(tmp_path)

        def work(first: int) -> None:
            for number in range(first, first + 100):
                store.put(_key(number), RESPONSE)
                store.find(_key(number))

        threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 200, 300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store.close()
        assert len(_found(tmp_path, *range(400))) == 400

    def test_locked_cache_is_skipped(self, tmp_path: Path) -> None:
        _put(tmp_path, 1)
        holder = sqlite3.connect(tmp_path / RESPONSES_FILE, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        assert _found(tmp_path, *range(100)) == []
        assert "locked" in _put(tmp_path, 2)
        holder.execute("ROLLBACK")
        holder.close()
        assert _put(tmp_path, 3) == ""
        assert _found(tmp_path, 1, 2, 3) == [1, 3]
