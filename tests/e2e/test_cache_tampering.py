"""A tampered evaluator cache, even a consistent one, cannot replace pinned evaluators."""

import hashlib
from pathlib import Path

import pytest

from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.remote.cache_index import read_index
from agentci.remote.evaluator_cache import EvaluatorCache
from tests._util.http.servers import Answer, serve
from tests.e2e.remote import REF, REPOSITORY, agentci, configure, files, scores
from tests.helpers.support import cache_of, run_agentci
from tests.remote.sources.archives import zipped
from tests.remote.sources.fake_github import FakeGitHub

BOAST = b"print('{\"score\": 1.0}')\n"
MODEST = b"print('{\"score\": 0.75}')\n"


@pytest.fixture
def store(folder: Path) -> EvaluatorCache:
    return EvaluatorCache(cache_of(folder))


def poison(store: EvaluatorCache, **others: bytes) -> None:
    """Replace files of the cached evaluator by ``others`` and update all digests."""
    [path] = (store.folder / "evaluators" / "index").iterdir()
    inventory = read_index(path)
    assert inventory is not None
    tree = store.folder / "evaluators" / "trees" / inventory.digest
    kept = {name: ProgramFile(content=(tree / name).read_bytes()) for name in inventory.files}
    kept |= {f"{name}.py": ProgramFile(content=content) for name, content in others.items()}
    store.put(inventory.key, ProgramSnapshot(entry=inventory.entry, files=kept))


def swap(store: EvaluatorCache, entry: str) -> None:
    """Make another file of the folder the entry file of the cached evaluator."""
    [path] = (store.folder / "evaluators" / "index").iterdir()
    inventory = read_index(path)
    assert inventory is not None
    tree = store.folder / "evaluators" / "trees" / inventory.digest
    kept = {name: ProgramFile(content=(tree / name).read_bytes()) for name in inventory.files}
    store.put(inventory.key, ProgramSnapshot(entry=entry, files=kept))


class TestLockedEvaluator:
    def test_tampered_cache_does_not_replace_locked_evaluator(
        self, folder: Path, github: FakeGitHub, store: EvaluatorCache
    ) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "lock")
        poison(store, fixed=BOAST)
        assert agentci(folder, github, "run", "--locked", "--offline").code == 2
        assert scores(agentci(folder, github, "run", "--locked")) == [0.75]

    def test_cache_cannot_change_entry_file_of_locked_evaluator(
        self, folder: Path, github: FakeGitHub, store: EvaluatorCache
    ) -> None:
        github.publish(REPOSITORY, files(**{"evaluators/fixed/example.py": BOAST.decode()}))
        agentci(folder, github, "lock")
        swap(store, "example.py")
        ran = agentci(folder, github, "run", "--locked", "--offline")
        assert ran.code == 2
        assert "the cache contains another program" in ran.results["problems"][0]["message"]
        assert scores(agentci(folder, github, "run", "--locked")) == [0.75]

    def test_cache_cannot_change_entry_file_of_locked_archive(
        self, folder: Path, store: EvaluatorCache
    ) -> None:
        archive = zipped({"a/fixed.py": MODEST, "a/example.py": BOAST})
        with serve(lambda _: Answer(body=archive)) as server:
            at(folder, f"{server.url}/x.zip#a/fixed.py", archive)
            assert run_agentci(["lock"], cwd=folder).code == 0
            swap(store, "example.py")
            assert scores(run_agentci(["run", "--locked"], cwd=folder)) == [0.75]


class TestUrlEvaluator:
    def test_cached_url_evaluator_matches_its_sha256(
        self, folder: Path, store: EvaluatorCache
    ) -> None:
        with serve(lambda _: Answer(body=MODEST)) as server:
            at(folder, f"{server.url}/fixed.py?as=it", MODEST)
            assert scores(run_agentci(["run"], cwd=folder)) == [0.75]
            poison(store, fixed=BOAST)
            assert scores(run_agentci(["run"], cwd=folder)) == [0.75]


class TestWorkspaceEvaluator:
    """It has no lock entry; the files of the workspace are used."""

    def test_tampered_cache_does_not_replace_workspace_evaluator(
        self, folder: Path, store: EvaluatorCache
    ) -> None:
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
    """Write a config with the evaluator at ``url``."""
    configure(folder, "source: url", f"sha256: {hashlib.sha256(content).hexdigest()}")
    config = folder / "agentci.yaml"
    config.write_text(config.read_text().replace(REF, url))
