"""Results of earlier runs: whole, of the commit that is asked for, and not too many."""

import os
import signal
import time
from pathlib import Path

import pytest

from agentci._util.archives import make_zip_archive
from agentci._util.cache_folder import is_cache
from agentci.errors import UnreachableError
from agentci.github.baseline.cache import BaselineCacheStats, BaselineStore
from tests.remote.cache.samples import as_nobody, finish, leftovers, run_python, start_python

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


class TestResults:
    def test_are_found_by_their_commit_and_series(self, store: BaselineStore) -> None:
        store.put(COMMIT, SERIES, b"{}")
        store.put(COMMIT, "small", b"[]")
        assert store.find(COMMIT, SERIES) == b"{}"
        assert store.find(COMMIT, "small") == b"[]"
        assert store.find(OTHER, SERIES) is store.find(COMMIT, "large") is None

    def test_of_a_later_run_take_the_place_of_the_earlier_ones(self, store: BaselineStore) -> None:
        store.put(COMMIT, SERIES, b"1")
        store.put(COMMIT, SERIES, b"2")
        assert store.find(COMMIT, SERIES) == b"2"

    @pytest.mark.parametrize("series", ["../../x", "a/b", "\ud800", "", "x" * 9999])
    def test_of_any_series_are_kept(self, store: BaselineStore, series: str) -> None:
        store.put(COMMIT, series, b"{}")
        assert store.find(COMMIT, series) == b"{}"

    def test_make_a_cache_of_the_folder(self, store: BaselineStore, folder: Path) -> None:
        assert store.find(COMMIT, SERIES) is None
        store.put(COMMIT, SERIES, b"{}")
        assert is_cache(folder)

    def test_that_a_workflow_restored_alone_are_found(self, folder: Path) -> None:
        BaselineStore(folder).put(COMMIT, SERIES, b"{}")
        entry(folder).rename(folder.parent / "kept")
        restored = BaselineStore(folder.parent / "new")
        (folder.parent / "new" / "baselines").mkdir(parents=True)
        name = BaselineStore(folder)._path(COMMIT, SERIES).name
        (folder.parent / "kept").rename(folder.parent / "new" / "baselines" / name)
        assert restored.find(COMMIT, SERIES) == b"{}"
        restored.put(OTHER, SERIES, b"{}")
        assert restored.inspect().sound == 2


class TestTheFolder:
    def test_keeps_the_last_ones(self, folder: Path) -> None:
        store = BaselineStore(folder, most=3)
        for number in range(5):
            store.put(f"{number:040x}", SERIES, b"%d" % number)
            for path in (folder / "baselines").iterdir():
                times = path.stat()
                os.utime(path, (times.st_atime, times.st_mtime - 60))
        found = [store.find(f"{number:040x}", SERIES) for number in range(5)]
        assert found == [None, None, b"2", b"3", b"4"]

    def test_leaves_alone_what_is_not_ours(self, folder: Path) -> None:
        store = BaselineStore(folder, most=1)
        store.put(COMMIT, SERIES, b"{}")
        (folder / "baselines" / "mine.zip").write_text("mine")
        store.put(OTHER, SERIES, b"{}")
        assert (folder / "baselines" / "mine.zip").read_text() == "mine"

    def test_that_is_a_link_is_not_followed(self, folder: Path, tmp_path: Path) -> None:
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

    def test_that_takes_nothing_is_told(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "baselines").write_text("")
        folder.chmod(0o555)
        with (
            as_nobody(),
            pytest.raises(UnreachableError, match="cannot write to the cache") as caught,
        ):
            BaselineStore(folder).put(COMMIT, SERIES, b"{}")
        assert "--cache-dir" in str(caught.value.hint)

    def test_of_somebody_else_is_left_alone(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "thesis.txt").write_text("mine")
        with pytest.raises(UnreachableError, match="is no cache of agentci"):
            BaselineStore(folder).put(COMMIT, SERIES, b"{}")


class TestWhatIsDamaged:
    @pytest.mark.parametrize(
        "content", [b"", b"PK", b"x" * 100, make_zip_archive("other.json", b"{}")]
    )
    def test_is_not_there_and_makes_room(
        self, store: BaselineStore, folder: Path, content: bytes
    ) -> None:
        store.put(COMMIT, SERIES, b"{}")
        entry(folder).write_bytes(content)
        assert store.inspect() == BaselineCacheStats(sound=0, damaged=1, size_bytes=len(content))
        assert store.find(COMMIT, SERIES) is None
        assert list((folder / "baselines").iterdir()) == []

    def test_is_noticed_in_every_byte(self, store: BaselineStore, folder: Path) -> None:
        data = bytes(range(256)) * 4
        store.put(COMMIT, SERIES, data)
        sound = entry(folder).read_bytes()
        for where in range(len(sound)):
            broken = bytearray(sound)
            broken[where] ^= 0x55
            store.put(COMMIT, SERIES, data)
            entry(folder).write_bytes(broken)
            assert store.find(COMMIT, SERIES) in (data, None)

    def test_may_be_a_link_or_a_folder(self, store: BaselineStore, folder: Path) -> None:
        store.put(COMMIT, SERIES, b"{}")
        kept = entry(folder)
        kept.rename(folder.parent / "other.zip")
        kept.symlink_to(folder.parent / "other.zip")
        assert store.find(COMMIT, SERIES) is None
        kept.mkdir()
        assert store.find(COMMIT, SERIES) is None
        assert (folder.parent / "other.zip").exists()


class TestSeveralProcesses:
    def test_write_and_read_at_once(self, folder: Path) -> None:
        finish([start_python(PUT, folder, letter) for letter in "abc"])
        assert BaselineStore(folder).inspect().damaged == 0
        assert BaselineStore(folder).inspect().sound == 5
        assert leftovers(folder) == []

    def test_that_are_killed_leave_what_was_there(self, folder: Path) -> None:
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
