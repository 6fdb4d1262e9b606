"""One thread of one process holds a cache lock; a dead process does not block others."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci._util.cache_folder import hold_cache_lock
from agentci.remote.evaluator_cache import EvaluatorCache
from tests.helpers.waiting import NO_TIMEOUT_SECONDS
from tests.remote.cache_samples import (
    KEY,
    finish,
    index_of,
    leftovers,
    run_python,
    start_python,
    trees_of,
)

PATIENCE_SECONDS = 20

HOLD = """
import sys, time
from pathlib import Path
from agentci._util.cache_folder import hold_cache_lock
with hold_cache_lock(Path(sys.argv[1]), "x"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def _locks(cache: Path) -> list[Path]:
    return sorted((cache / "locks").iterdir())


def _is_held(cache: Path, *, wait_seconds: float = 0.2) -> bool:
    """Whether another thread does not get ``x`` within ``wait_seconds``."""
    free = threading.Event()

    def wait() -> None:
        with hold_cache_lock(cache, "x"):
            free.set()

    threading.Thread(target=wait, daemon=True).start()
    return not free.wait(wait_seconds)


class TestCacheLock:
    def test_one_thread_holds_lock_at_a_time(self, cache: Path) -> None:
        holders, most = [], []

        def work() -> None:
            for _ in range(50):
                with hold_cache_lock(cache, "x"):
                    holders.append(1)
                    most.append(len(holders))
                    time.sleep(0)
                    holders.pop()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        assert (len(most), max(most)) == (200, 1)

    def test_one_process_holds_lock_at_a_time(self, cache: Path) -> None:
        script = """
import os, sys
from pathlib import Path
from agentci._util.cache_folder import hold_cache_lock
log = os.open(f"{sys.argv[1]}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for _ in range(100):
    with hold_cache_lock(Path(sys.argv[1]), "x"):
        os.write(log, b"in ")
        os.write(log, b"out\\n")
"""
        finish([start_python(script, cache) for _ in range(2)])
        assert Path(f"{cache}.log").read_text() == "in out\n" * 200

    def test_locks_of_different_names_are_independent(self, cache: Path) -> None:
        with hold_cache_lock(cache, "y"):
            assert not _is_held(cache, wait_seconds=NO_TIMEOUT_SECONDS)

    def test_any_name_can_be_locked(self, cache: Path) -> None:
        with hold_cache_lock(cache, "../\0" + "x" * 10_000):
            assert [path.suffix for path in _locks(cache)] == [".lock"]

    def test_exception_releases_lock(self, cache: Path) -> None:
        with pytest.raises(ZeroDivisionError), hold_cache_lock(cache, "x"):
            raise ZeroDivisionError
        assert not _is_held(cache, wait_seconds=NO_TIMEOUT_SECONDS)

    def test_killed_process_releases_lock(self, cache: Path) -> None:
        holder = start_python(HOLD, cache)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert _is_held(cache)
        holder.send_signal(signal.SIGKILL)
        holder.communicate(timeout=PATIENCE_SECONDS)
        assert not _is_held(cache, wait_seconds=NO_TIMEOUT_SECONDS)

    def test_child_process_does_not_keep_lock(self, cache: Path) -> None:
        script = """
import os, sys, time
from pathlib import Path
from agentci._util.cache_folder import hold_cache_lock
with hold_cache_lock(Path(sys.argv[1]), "x"):
    child = os.fork()
    if not child:
        time.sleep(60)
with hold_cache_lock(Path(sys.argv[1]), "x"):
    print("held again")
os.kill(child, 9)
os.waitpid(child, 0)
"""
        assert run_python(script, cache) == "held again\n"

    def test_removed_lock_file_is_not_used(self, cache: Path) -> None:
        begun, ended = threading.Event(), threading.Event()

        def wait() -> None:
            begun.set()
            with hold_cache_lock(cache, "x"):
                assert len(_locks(cache)) == 1
                ended.wait(PATIENCE_SECONDS)

        waiting = threading.Thread(target=wait)
        with hold_cache_lock(cache, "x"):
            waiting.start()
            begun.wait(PATIENCE_SECONDS)
            time.sleep(0.1)
            _locks(cache)[0].unlink()
        time.sleep(0.1)
        assert _is_held(cache)
        ended.set()
        waiting.join(PATIENCE_SECONDS)


class TestUnusableLockFile:
    @pytest.fixture(params=["file", "link", "folder", "foreign folder"])
    def odd_cache(self, cache: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
        with hold_cache_lock(cache, "x"):
            lock = _locks(cache)[0]
        match request.param:
            case "file":
                lock.unlink()
                (cache / "locks").rmdir()
                (cache / "locks").touch()
            case "link":
                lock.unlink()
                lock.symlink_to("../../made")
            case "folder":
                lock.unlink()
                lock.mkdir()
            case _:
                lock.unlink()
                (cache / "locks").rmdir()
                (cache / "CACHEDIR.TAG").unlink()
                (cache / "thesis.tex").touch()
        yield cache
        assert not (cache.parent / "made").exists()

    def test_unusable_lock_file_does_not_block(self, odd_cache: Path) -> None:
        with hold_cache_lock(odd_cache, "x"):
            pass

    def test_pipe_as_lock_file_does_not_block(self, cache: Path) -> None:
        with hold_cache_lock(cache, "x"):
            lock = _locks(cache)[0]
        lock.unlink()
        os.mkfifo(lock)
        with hold_cache_lock(cache, "x"):
            pass


class TestSeveralProcesses:
    def test_evaluator_is_fetched_once(self, cache: Path) -> None:
        script = """
import sys, time
from pathlib import Path
from agentci.remote.evaluator_cache import EvaluatorCache
from tests.remote.cache_samples import KEY, SNAPSHOT
store = EvaluatorCache(Path(sys.argv[1]))
with store.lock(KEY):
    stored = store.find(KEY)
    if stored is None:
        print("fetched")
        time.sleep(0.3)
        stored = store.put(KEY, SNAPSHOT)
assert stored == store.find(KEY)
"""
        outputs = finish([start_python(script, cache) for _ in range(3)])
        assert sorted(outputs) == ["", "", "fetched\n"]

    def test_concurrent_puts_keep_cache_consistent(self, cache: Path) -> None:
        script = """
import sys
from pathlib import Path
from agentci.remote.cache_index import EvaluatorKey
from agentci.remote.evaluator_cache import EvaluatorCache
from tests.remote.cache_samples import KEY, SNAPSHOT
from tests.helpers.waiting import NO_TIMEOUT_SECONDS
store = EvaluatorCache(Path(sys.argv[1]))
own = EvaluatorKey(source="github", repository="a/b", commit=sys.argv[2], ref="x.py")
for _ in range(30):
    for key in (KEY, own):
        assert store.put(key, SNAPSHOT) == store.find(key)
"""
        finish([start_python(script, cache, number) for number in range(3)])
        store = EvaluatorCache(cache)
        assert [entry.corruption for entry in store.list_entries()] == [None] * 4
        assert len(index_of(store)) == 4
        assert len(trees_of(store)) == 1
        assert leftovers(cache) == []
        assert store.find(KEY) is not None
