"""A process that is killed while it writes leaves no incomplete entries."""

from pathlib import Path

import pytest

from tests.remote.cache_samples import leftovers, run_python

pytestmark = pytest.mark.slow

# One process forks 100 writers and kills each at a random moment.
SCRIPT = """
import os, random, sys, time
from pathlib import Path
from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.remote.cache_index import EvaluatorKey
from agentci.remote.evaluator_cache import clear_cache
from agentci.remote.evaluator_cache import EvaluatorCache
from tests.remote.cache_samples import KEY, SNAPSHOT

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

def write_forever():
    while True:
        for key in keys:
            store.put(key, snapshot(key))
        clear_cache(folder)

start = time.monotonic()
store.put(keys[0], snapshot(keys[0]))
# Long enough for some writes to finish, even on a slow disk.
longest = min(0.1, 4 * (time.monotonic() - start))

found, partial = 0, 0
for _ in range(100):
    child = os.fork()
    if not child:
        write_forever()
    time.sleep(random.uniform(0, longest))
    os.kill(child, 9)
    os.waitpid(child, 0)
    partial += len(list(folder.rglob(".tmp-*")))
    assert [e.corruption for e in store.list_entries() if e.corruption] == []
    for key in keys:
        stored = store.find(key)
        if stored is not None:
            found += 1
            for n in range(10):
                assert (stored.folder / f"{n % 3}/{n}.py").read_bytes() == content(key, n)
    assert store.put(KEY, SNAPSHOT) == store.find(KEY)
print(found, partial)
"""


def test_killed_writers_leave_only_complete_evaluators(tmp_path: Path) -> None:
    found, partial = run_python(SCRIPT, tmp_path / "cache").split()
    # Otherwise, no writer was killed during a write.
    assert int(found) > 0
    assert int(partial) > 0
    assert (tmp_path / "cache" / "CACHEDIR.TAG").is_file()
    assert all(path.name.startswith(".tmp-") for path in leftovers(tmp_path))
