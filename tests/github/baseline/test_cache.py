"""Cached baselines: complete, found by commit, and limited in number."""

import os
import signal
import time
from pathlib import Path

import pytest

from agentci._util.archives import make_zip_archive
from agentci._util.cache_folder import is_cache
from agentci.errors import UnreachableError
from agentci.github.baseline.cache import BaselineCacheStats, BaselineStore
from tests.remote.cache_samples import as_nobody, finish, leftovers, run_python, start_python

COMMIT, OTHER = "a" * 40, "b" * 40
SERIES = "agentci-results"

PUT = """
import sys
from pathlib import Path
from agentci.github.baseline.cache import BaselineStore
store = BaselineStore(Path(sys.argv[1]), most=5)
for number in range(40):
    commit = f"{number % 8:040x}"
    store.put(commit, "s", sys.argv[2].encode() * 50_000)
    found = store.find(commit, "s")
    assert found is None or len(set(found)) == 1 and len(found) == 50_000, found[:9]
"""
PUT_FOR_EVER = """
import os, sys
from pathlib import Path
from agentci.github.baseline.cache import BaselineStore
store = BaselineStore(Path(sys.argv[1]))
print("started", flush=True)
while True:
    store.put("a" * 40, "s", os.urandom(1) * 3_000_000)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def store(folder: Path) -> BaselineStore:
    return BaselineStore(folder)


def entry(folder: Path) -> Path:
    [path] = (folder / "baselines").iterdir()
    return path


class TestStoredResults:
    def test_results_are_found_by_commit_and_series(self, store: BaselineStore) -> None:
        store.put(COMMIT, SERIES, b"{}")
        store.put(COMMIT, "small", b"[]")
        assert store.find(COMMIT, SERIES) == b"{}"
        assert store.find(COMMIT, "small") == b"[]"
        assert store.find(OTHER, SERIES) is store.find(COMMIT, "large") is None

    def test_later_results_replace_earlier_results(self, store: BaselineStore) -> None:
        store.put(COMMIT, SERIES, b"1")
        store.put(COMMIT, SERIES, b"2")
        assert store.find(COMMIT, SERIES) == b"2"

    @pytest.mark.parametrize("series", ["../../x", "a/b", "\ud800", "", "x" * 9999])
    def test_any_series_name_is_stored(self, store: BaselineStore, series: str) -> None:
        store.put(COMMIT, series, b"{}")
        assert store.find(COMMIT, series) == b"{}"

    def test_storing_results_marks_folder_as_cache(
        self, store: BaselineStore, folder: Path
    ) -> None:
        assert store.find(COMMIT, SERIES) is None
        store.put(COMMIT, SERIES, b"{}")
        assert is_cache(folder)

    def test_restored_baselines_are_read_without_cache_tag(self, folder: Path) -> None:
        BaselineStore(folder).put(COMMIT, SERIES, b"{}")
        entry(folder).rename(folder.parent / "kept")
        restored = BaselineStore(folder.parent / "new")
        (folder.parent / "new" / "baselines").mkdir(parents=True)
        name = BaselineStore(folder)._path(COMMIT, SERIES).name
        (folder.parent / "kept").rename(folder.parent / "new" / "baselines" / name)
        assert restored.find(COMMIT, SERIES) == b"{}"
        restored.put(OTHER, SERIES, b"{}")
        assert restored.inspect().sound == 2


class TestBaselineFolder:
    def test_only_newest_baselines_are_kept(self, folder: Path) -> None:
        store = BaselineStore(folder, most=3)
        for number in range(5):
            store.put(f"{number:040x}", SERIES, b"%d" % number)
            for path in (folder / "baselines").iterdir():
                times = path.stat()
                os.utime(path, (times.st_atime, times.st_mtime - 60))
        found = [store.find(f"{number:040x}", SERIES) for number in range(5)]
        assert found == [None, None, b"2", b"3", b"4"]

    def test_foreign_file_is_not_removed(self, folder: Path) -> None:
        store = BaselineStore(folder, most=1)
        store.put(COMMIT, SERIES, b"{}")
        (folder / "baselines" / "mine.zip").write_text("mine")
        store.put(OTHER, SERIES, b"{}")
        assert (folder / "baselines" / "mine.zip").read_text() == "mine"

    def test_symlinked_baselines_folder_is_not_followed(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        folder.mkdir()
        (folder / "baselines").symlink_to(tmp_path / "elsewhere")
        store = BaselineStore(folder)
        evil = make_zip_archive("results.json", b"evil")
        store._path(COMMIT, SERIES).write_bytes(evil)
        assert store.find(COMMIT, SERIES) is None
        store.put(COMMIT, SERIES, b"{}")
        assert store.find(COMMIT, SERIES) == b"{}"
        assert not (folder / "baselines").is_symlink()

    def test_read_only_folder_is_reported(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "baselines").write_text("")
        folder.chmod(0o555)
        with (
            as_nobody(),
            pytest.raises(UnreachableError, match="cannot write to the cache") as caught,
        ):
            BaselineStore(folder).put(COMMIT, SERIES, b"{}")
        assert "--cache-dir" in str(caught.value.hint)

    def test_foreign_folder_is_not_used_as_cache(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "thesis.txt").write_text("mine")
        with pytest.raises(UnreachableError, match="is not an agentci cache"):
            BaselineStore(folder).put(COMMIT, SERIES, b"{}")


class TestDamagedBaseline:
    @pytest.mark.parametrize(
        "content", [b"", b"PK", b"x" * 100, make_zip_archive("other.json", b"{}")]
    )
    def test_damaged_baseline_is_ignored_and_removed(
        self, store: BaselineStore, folder: Path, content: bytes
    ) -> None:
        store.put(COMMIT, SERIES, b"{}")
        entry(folder).write_bytes(content)
        assert store.inspect() == BaselineCacheStats(sound=0, damaged=1, size_bytes=len(content))
        assert store.find(COMMIT, SERIES) is None
        assert list((folder / "baselines").iterdir()) == []

    def test_flipped_byte_never_yields_wrong_results(
        self, store: BaselineStore, folder: Path
    ) -> None:
        data = bytes(range(256)) * 4
        store.put(COMMIT, SERIES, data)
        sound = entry(folder).read_bytes()
        for offset in range(len(sound)):
            broken = bytearray(sound)
            broken[offset] ^= 0x55
            store.put(COMMIT, SERIES, data)
            entry(folder).write_bytes(broken)
            assert store.find(COMMIT, SERIES) in (data, None)

    def test_symlink_or_folder_is_not_read_as_baseline(
        self, store: BaselineStore, folder: Path
    ) -> None:
        store.put(COMMIT, SERIES, b"{}")
        stored = entry(folder)
        stored.rename(folder.parent / "other.zip")
        stored.symlink_to(folder.parent / "other.zip")
        assert store.find(COMMIT, SERIES) is None
        stored.mkdir()
        assert store.find(COMMIT, SERIES) is None
        assert (folder.parent / "other.zip").exists()


class TestConcurrentProcesses:
    def test_concurrent_processes_leave_no_damaged_baseline(self, folder: Path) -> None:
        finish([start_python(PUT, folder, letter) for letter in "abc"])
        assert BaselineStore(folder).inspect().damaged == 0
        assert BaselineStore(folder).inspect().sound == 5
        assert leftovers(folder) == []

    def test_killed_writer_leaves_no_damaged_baseline(self, folder: Path) -> None:
        store = BaselineStore(folder)
        for _ in range(3):
            process = start_python(PUT_FOR_EVER, folder)
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.1)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            found = store.find("a" * 40, "s")
            assert found is None or (len(found), len(set(found))) == (3_000_000, 1)
        run_python(PUT, folder, "x")
        assert store.inspect().damaged == 0
