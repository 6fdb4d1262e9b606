"""Caches that somebody else could write to: consistent in themselves, and not what was pinned."""

import hashlib
from pathlib import Path

import pytest

from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.remote.cache.index import read_index
from agentci.remote.cache.store import EvaluatorCache
from tests._util.http.servers import Answer, serve
from tests.e2e.remote import REF, REPOSITORY, agentci, configure, files, scores
from tests.helpers.support import run_agentci
from tests.remote.sources.archives import zipped
from tests.remote.sources.fake_github import FakeGitHub

BOAST = b"print('{\"score\": 1.0}')\n"
MODEST = b"print('{\"score\": 0.75}')\n"


@pytest.fixture
def store(folder: Path) -> EvaluatorCache:
    return EvaluatorCache(folder / ".agentci" / "cache")


def poison(store: EvaluatorCache, **others: bytes) -> None:
    """Put ``others`` in the place of files of the one evaluator there is, all digests included."""
    [path] = (store.folder / "evaluators" / "index").iterdir()
    inventory = read_index(path)
    assert inventory is not None
    tree = store.folder / "evaluators" / "trees" / inventory.digest
    kept = {name: ProgramFile(content=(tree / name).read_bytes()) for name in inventory.files}
    kept |= {f"{name}.py": ProgramFile(content=content) for name, content in others.items()}
    store.put(inventory.key, ProgramSnapshot(entry=inventory.entry, files=kept))


def swap(store: EvaluatorCache, entry: str) -> None:
    """Have another file of the folder run in place of the program."""
    [path] = (store.folder / "evaluators" / "index").iterdir()
    inventory = read_index(path)
    assert inventory is not None
    tree = store.folder / "evaluators" / "trees" / inventory.digest
    kept = {name: ProgramFile(content=(tree / name).read_bytes()) for name in inventory.files}
    store.put(inventory.key, ProgramSnapshot(entry=entry, files=kept))


class TestALockedEvaluator:
    def test_is_not_replaced(self, folder: Path, github: FakeGitHub, store: EvaluatorCache) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "lock")
        poison(store, fixed=BOAST)
        assert agentci(folder, github, "run", "--locked", "--offline").code == 2
        assert scores(agentci(folder, github, "run", "--locked")) == [0.75]

    def test_is_no_other_file_of_its_folder(
        self, folder: Path, github: FakeGitHub, store: EvaluatorCache
    ) -> None:
        github.publish(REPOSITORY, files(**{"evaluators/fixed/example.py": BOAST.decode()}))
        agentci(folder, github, "lock")
        swap(store, "example.py")
        ran = agentci(folder, github, "run", "--locked", "--offline")
        assert ran.code == 2
        assert "the cache contains another program" in ran.results["problems"][0]["message"]
        assert scores(agentci(folder, github, "run", "--locked")) == [0.75]

    def test_is_no_other_file_of_its_archive(self, folder: Path, store: EvaluatorCache) -> None:
        archive = zipped({"a/fixed.py": MODEST, "a/example.py": BOAST})
        with serve(lambda _: Answer(body=archive)) as server:
            at(folder, f"{server.url}/x.zip#a/fixed.py", archive)
            assert run_agentci(["lock"], cwd=folder).code == 0
            swap(store, "example.py")
            assert scores(run_agentci(["run", "--locked"], cwd=folder)) == [0.75]


class TestAnEvaluatorAtAnAddress:
    def test_is_what_its_digest_says_from_the_cache_too(
        self, folder: Path, store: EvaluatorCache
    ) -> None:
        with serve(lambda _: Answer(body=MODEST)) as server:
            at(folder, f"{server.url}/fixed.py?as=it", MODEST)
            assert scores(run_agentci(["run"], cwd=folder)) == [0.75]
            poison(store, fixed=BOAST)
            assert scores(run_agentci(["run"], cwd=folder)) == [0.75]


class TestAnEvaluatorOfTheWorkspace:
    """No lock speaks of it: what lies in the repository is what counts."""

    def test_is_what_lies_there(self, folder: Path, store: EvaluatorCache) -> None:
        (folder / "fixed.py").write_bytes(MODEST)
        (folder / "index.yaml").write_text("evaluators: [{name: fixed, path: fixed.py}]\n")
        configure(folder, "source: local")
        config = folder / "agentci.yaml"
        config.write_text(config.read_text().replace(REF, "fixed"))
        assert scores(run_agentci(["run"], cwd=folder)) == [0.75]
        poison(store, fixed=BOAST)
        for more in ([], ["--locked"], ["--offline"]):
            assert scores(run_agentci(["run", *more], cwd=folder)) == [0.75]


def at(folder: Path, url: str, content: bytes) -> None:
    """Name the evaluator at ``url`` in the config."""
    configure(folder, "source: url", f"sha256: {hashlib.sha256(content).hexdigest()}")
    config = folder / "agentci.yaml"
    config.write_text(config.read_text().replace(REF, url))
