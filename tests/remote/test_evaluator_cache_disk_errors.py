"""On a full or read-only disk, stored evaluators are found and no partial files remain."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci.errors import UnreachableError
from agentci.model.program import ProgramSnapshot
from agentci.remote.evaluator_cache import EvaluatorCache
from tests.remote.cache_samples import KEY, SNAPSHOT, index_of, leftovers, run_python, trees_of

SCRIPT = """
import codecs, os, resource, sys
from pathlib import Path
from agentci.errors import UnreachableError
from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.remote.evaluator_cache import clear_cache
from agentci.remote.evaluator_cache import EvaluatorCache
from tests.remote.cache_samples import KEY, NOBODY, OTHER_KEY, SNAPSHOT

store = EvaluatorCache(Path(sys.argv[1]))
large = ProgramSnapshot(entry="a", files={**SNAPSHOT.files, "a": ProgramFile(content=bytes(5000))})

def put(key, snapshot):
    try:
        with store.lock(key):
            store.put(key, snapshot)
        print("kept")
    except UnreachableError as error:
        print(f"{error} ({error.hint})".replace(sys.argv[1], "FOLDER"))

def become_nobody():
    codecs.lookup("utf-8-sig")  # loaded on first use; the user nobody cannot read root's Python
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

"""
HINT = "(free disk space, make it writable, or choose another one with `--cache-dir`)"
DENIED = f"the cache FOLDER is not writable: Permission denied {HINT}\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can read, unlike the folders of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def read_only(folder: Path) -> Iterator[EvaluatorCache]:
    """A cache with one evaluator, writable by root only."""
    store = EvaluatorCache(folder / "cache")
    store.put(KEY, SNAPSHOT)
    _set_modes(store.folder, 0o555)
    yield store
    _set_modes(store.folder, 0o755)


def _set_modes(folder: Path, mode: int) -> None:
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(mode)


class TestFullDisk:
    @pytest.mark.parametrize("limit", [0, 50, 4000])
    def test_failed_write_is_reported_and_leaves_no_files(self, folder: Path, limit: int) -> None:
        limits = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        output = run_python(f"{SCRIPT}{limits}put(KEY, large)", folder / "cache")
        assert output == f"the cache FOLDER is not writable: File too large {HINT}\n"
        store = EvaluatorCache(folder / "cache")
        assert leftovers(folder) == []
        assert index_of(store) == []
        assert store.put(KEY, SNAPSHOT) == store.find(KEY)

    def test_failed_write_keeps_existing_evaluator(self, folder: Path) -> None:
        store = EvaluatorCache(folder / "cache")
        put = store.put(KEY, SNAPSHOT)
        limits = "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        run_python(f"{SCRIPT}{limits}put(KEY, large)", folder / "cache")
        assert store.find(KEY) == put

    def test_too_long_file_name_leaves_no_partial_tree(self, folder: Path) -> None:
        deep = folder.joinpath(*["d" * 250] * 13)
        files = {**SNAPSHOT.files, "/".join(["f" * 250] * 4): SNAPSHOT.files["tone.py"]}
        store = EvaluatorCache(deep)
        with pytest.raises(UnreachableError, match="File name too long"):
            store.put(KEY, ProgramSnapshot(entry="tone.py", files=files))
        assert [path.name for path in trees_of(store)] == []
        assert store.put(KEY, SNAPSHOT) == store.find(KEY)


class TestReadOnlyCache:
    def test_read_only_cache_finds_evaluator(self, read_only: EvaluatorCache) -> None:
        script = "become_nobody()\nwith store.lock(KEY): print(store.find(KEY).path)"
        found = read_only.find(KEY)
        assert found is not None
        assert run_python(f"{SCRIPT}{script}", read_only.folder) == f"{found.path}\n"

    def test_write_to_read_only_cache_is_reported(self, read_only: EvaluatorCache) -> None:
        output = run_python(f"{SCRIPT}become_nobody()\nput(OTHER_KEY, large)", read_only.folder)
        assert output == DENIED

    def test_read_only_cache_does_not_return_corrupt_evaluator(
        self, read_only: EvaluatorCache
    ) -> None:
        (trees_of(read_only)[0] / "tone.py").write_text("print(2)")
        script = "become_nobody()\nprint(store.find(KEY))\nput(KEY, SNAPSHOT)"
        assert run_python(f"{SCRIPT}{script}", read_only.folder) == f"None\n{DENIED}"

    def test_read_only_parent_folder_is_reported(self, folder: Path) -> None:
        (folder / "parent").mkdir(mode=0o555)
        output = run_python(
            f"{SCRIPT}become_nobody()\nput(KEY, large)", folder / "parent" / "cache"
        )
        assert output == DENIED

    def test_clear_lists_paths_that_remain(self, read_only: EvaluatorCache) -> None:
        script = "become_nobody()\nprint(clear_cache(store.folder))"
        output = run_python(f"{SCRIPT}{script}", read_only.folder)
        remaining = [read_only.folder / "evaluators" / name for name in ("index", "trees")]
        cleared = "ClearedCache(evaluators=0, environments=0, freed_bytes=0, remaining=("
        assert output.startswith(cleared)
        assert all(repr(path) in output for path in remaining)
        assert read_only.find(KEY) is not None


class TestUnreadableCache:
    def test_unreadable_cache_finds_and_stores_nothing(self, read_only: EvaluatorCache) -> None:
        (read_only.folder / "evaluators").chmod(0)
        script = (
            "become_nobody()\n"
            "print(store.find(KEY), [e.corruption for e in store.list_entries()])\n"
            "put(KEY, large)"
        )
        damage = "['the folder index cannot be read: Permission denied']"
        assert run_python(f"{SCRIPT}{script}", read_only.folder) == f"None {damage}\n{DENIED}"

    @pytest.mark.parametrize("name", ["tone.py", "words"])
    def test_evaluator_with_unreadable_file_is_not_returned(
        self, read_only: EvaluatorCache, name: str
    ) -> None:
        (trees_of(read_only)[0] / name).chmod(0)
        script = (
            "become_nobody()\nprint([e.corruption for e in store.list_entries()], store.find(KEY))"
        )
        output = run_python(f"{SCRIPT}{script}", read_only.folder)
        assert "cannot be read: Permission denied" in output
        assert output.endswith(" None\n")

    def test_unreadable_index_entry_is_reported(self, read_only: EvaluatorCache) -> None:
        index_of(read_only)[0].chmod(0)
        script = (
            "become_nobody()\nprint([e.corruption for e in store.list_entries()], store.find(KEY))"
        )
        output = run_python(f"{SCRIPT}{script}", read_only.folder)
        assert output == "['its entry in the index cannot be read: Permission denied'] None\n"


class TestForeignFolder:
    def test_folder_with_other_files_is_not_used(self, folder: Path) -> None:
        (folder / "thesis.tex").touch()
        with pytest.raises(UnreachableError, match="not an agentci cache") as raised:
            EvaluatorCache(folder).put(KEY, SNAPSHOT)
        assert "empty folder" in str(raised.value.hint)
        assert [path.name for path in folder.iterdir()] == ["thesis.tex"]

    @pytest.mark.parametrize("name", ["evaluators", "environments", "locks"])
    def test_foreign_file_in_cache_subfolder_rejects_folder(self, folder: Path, name: str) -> None:
        (folder / name).mkdir()
        (folder / name / "mine.py").touch()
        with pytest.raises(UnreachableError, match="not an agentci cache"):
            EvaluatorCache(folder).put(KEY, SNAPSHOT)

    def test_file_in_place_of_subfolder_rejects_folder(self, folder: Path) -> None:
        (folder / "evaluators").touch()
        with pytest.raises(UnreachableError, match="not an agentci cache"):
            EvaluatorCache(folder).put(KEY, SNAPSHOT)

    def test_partly_restored_cache_is_used(self, folder: Path) -> None:
        store = EvaluatorCache(folder)
        put = store.put(KEY, SNAPSHOT)
        for name in ("CACHEDIR.TAG", ".gitignore"):
            (folder / name).unlink()
        (folder / ".tmp-x").touch()
        assert store.find(KEY) == put
        assert store.put(KEY, SNAPSHOT) == put
        assert (folder / "CACHEDIR.TAG").is_file()

    def test_folder_with_only_git_files_is_used(self, folder: Path) -> None:
        for name in (".gitkeep", ".gitignore"):
            (folder / name).write_text("!.gitkeep\n")
        EvaluatorCache(folder).put(KEY, SNAPSHOT)
        assert (folder / ".gitignore").read_text() == "!.gitkeep\n"

    def test_file_as_cache_folder_is_rejected(self, folder: Path) -> None:
        (folder / "cache").touch()
        with pytest.raises(UnreachableError, match="Not a directory"):
            EvaluatorCache(folder / "cache").put(KEY, SNAPSHOT)


def test_deleted_cache_is_created_again(folder: Path) -> None:
    store = EvaluatorCache(folder / "cache")
    put = store.put(KEY, SNAPSHOT)
    shutil.rmtree(store.folder)
    assert store.find(KEY) is None
    assert store.put(KEY, SNAPSHOT) == put
