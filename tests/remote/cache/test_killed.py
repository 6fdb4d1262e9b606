"""A process that is killed in the middle of writing leaves no garbage to whoever comes next."""

from pathlib import Path

import pytest

from tests.remote.cache.samples import leftovers, run_python

pytestmark = pytest.mark.slow

# One process forks a hundred that write; each is killed at a random moment.
SCRIPT = """
import os, random, sys, time
from pathlib import Path
from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.remote.cache.index import EvaluatorKey
from agentci.remote.cache.store import clear_cache
from agentci.remote.cache.store import EvaluatorCache
from tests.remote.cache.samples import KEY, SNAPSHOT

folder = Path(sys.argv[1])
store = EvaluatorCache(folder)
keys = [
    EvaluatorKey(source="github", repository="a/b", commit=str(n), ref="0.py") for n in range(4)
]

def content(key, n):
    return f"{key.commit} {n}".encode() * 5000

def snapshot(key):
    files = {f"{n % 3}/{n}.py": ProgramFile(content=content(key, n)) for n in range(10)}
    return ProgramSnapshot(entry="0/0.py", files=files)

def write_for_ever():
    while True:
        for key in keys:
            store.put(key, snapshot(key))
        clear_cache(folder)

begun = time.monotonic()
store.put(keys[0], snapshot(keys[0]))
# Long enough for some to be done, on a slow disk, too.
longest = min(0.1, 4 * (time.monotonic() - begun))

found, half_made = 0, 0
for _ in range(100):
    child = os.fork()
    if not child:
        write_for_ever()
    time.sleep(random.uniform(0, longest))
    os.kill(child, 9)
    os.waitpid(child, 0)
    half_made += len(list(folder.rglob(".tmp-*")))
    assert [e.corruption for e in store.list_entries() if e.corruption] == []
    for key in keys:
        stored = store.find(key)
        if stored is not None:
            found += 1
            for n in range(10):
                assert (stored.folder / f"{n % 3}/{n}.py").read_bytes() == content(key, n)
    assert store.put(KEY, SNAPSHOT) == store.find(KEY)
print(found, half_made)
"""


def test_a_hundred_killed_writers_leave_nothing_but_whole_evaluators(tmp_path: Path) -> None:
    found, half_made = run_python(SCRIPT, tmp_path / "cache").split()
    # Else none was killed at a moment that matters.
    assert int(found) > 0
    assert int(half_made) > 0
    assert (tmp_path / "cache" / "CACHEDIR.TAG").is_file()
    assert all(path.name.startswith(".tmp-") for path in leftovers(tmp_path))
