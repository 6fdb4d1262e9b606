"""The cache returns the exact bytes that were stored, or nothing."""

import os
import shutil
import time
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.errors import PermanentFetchError
from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.remote.cache_index import EvaluatorKey, find_parent_folders, make_manifest
from agentci.remote.evaluator_cache import EvaluatorCache, install_tree, is_intact, write_tree
from tests.helpers.building import values
from tests.remote.cache_samples import (
    FILES,
    KEY,
    NOBODY,
    OTHER_KEY,
    OTHER_SNAPSHOT,
    SNAPSHOT,
    index_of,
    leftovers,
    run_python,
    trees_of,
)


@pytest.fixture
def store(tmp_path: Path) -> EvaluatorCache:
    return EvaluatorCache(tmp_path / "cache")


class TestStoredEvaluator:
    def test_stored_evaluator_is_found(self, store: EvaluatorCache) -> None:
        assert store.find(KEY) is None
        put = store.put(KEY, SNAPSHOT)
        assert store.find(KEY) == put
        assert EvaluatorCache(store.folder).find(KEY) == put
        assert put.path == put.folder / "tone.py"
        assert put.path.read_bytes() == FILES["tone.py"].content
        assert list(put.digests) == ["evaluator.yaml", "tone.py", "words/rude.txt"]
        assert put.digests["words/rude.txt"] == sha256(b"damn\n").hexdigest()

    def test_other_key_does_not_find_evaluator(self, store: EvaluatorCache) -> None:
        store.put(KEY, SNAPSHOT)
        assert store.find(OTHER_KEY) is None

    def test_relative_cache_folder_gives_absolute_paths(
        self, store: EvaluatorCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.put(KEY, SNAPSHOT)
        monkeypatch.chdir(store.folder.parent)
        found = EvaluatorCache(Path("cache")).find(KEY)
        assert found == store.find(KEY)
        assert found is not None
        assert found.path.is_absolute()

    def test_evaluator_folder_holds_only_its_files(self, store: EvaluatorCache) -> None:
        folder = store.put(KEY, SNAPSHOT).folder
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert {path.relative_to(folder).as_posix() for path in files} == set(FILES)

    def test_put_replaces_entry_of_same_key(self, store: EvaluatorCache) -> None:
        store.put(KEY, SNAPSHOT)
        put = store.put(KEY, OTHER_SNAPSHOT)
        assert store.find(KEY) == put
        assert put.path.name == "a.py"

    def test_equal_evaluators_share_one_folder(self, store: EvaluatorCache) -> None:
        assert store.put(KEY, SNAPSHOT) == store.put(OTHER_KEY, SNAPSHOT)
        assert len(trees_of(store)) == 1
        assert len(index_of(store)) == 2

    def test_different_file_modes_need_separate_folders(self, store: EvaluatorCache) -> None:
        files = {**FILES, "tone.py": ProgramFile(content=FILES["tone.py"].content)}
        put = store.put(OTHER_KEY, ProgramSnapshot(entry="tone.py", files=files))
        assert store.put(KEY, SNAPSHOT).folder != put.folder

    def test_put_leaves_no_temporary_files(self, store: EvaluatorCache) -> None:
        store.put(KEY, SNAPSHOT)
        store.put(OTHER_KEY, SNAPSHOT)
        assert leftovers(store.folder) == []

    def test_umask_does_not_change_file_modes(self, store: EvaluatorCache) -> None:
        script = """
import os, sys
from pathlib import Path
from agentci.remote.evaluator_cache import EvaluatorCache
from tests.remote.cache_samples import KEY, SNAPSHOT
os.umask(0o077)
EvaluatorCache(Path(sys.argv[1])).put(KEY, SNAPSHOT)
"""
        run_python(script, store.folder)
        found = store.find(KEY)
        assert found is not None
        assert found.path.stat().st_mode & 0o777 == 0o755
        assert (found.folder / "evaluator.yaml").stat().st_mode & 0o777 == 0o644
        folders = [store.folder, *(path for path in store.folder.rglob("*") if path.is_dir())]
        assert {path.stat().st_mode & 0o777 for path in folders} == {0o755}
        assert {path.stat().st_mode & 0o777 for path in index_of(store)} == {0o644}

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    def test_files_belong_to_owner_of_workspace(self, tmp_path: Path) -> None:
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        os.chown(workspace, NOBODY, NOBODY)
        store = EvaluatorCache(workspace / ".agentci" / "cache", owner=workspace)
        with store.lock(KEY):
            store.put(KEY, SNAPSHOT)
        made = list(workspace.rglob("*"))
        assert len(made) > 10
        assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(NOBODY, NOBODY)}


class TestCacheFolder:
    def test_backups_and_git_ignore_cache_folder(self, store: EvaluatorCache) -> None:
        store.put(KEY, SNAPSHOT)
        tag = (store.folder / "CACHEDIR.TAG").read_text()
        assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
        assert (store.folder / ".gitignore").read_text() == "*\n"

    def test_reading_does_not_create_cache_folder(self, store: EvaluatorCache) -> None:
        assert store.find(KEY) is None
        assert list(store.list_entries()) == []
        assert not store.folder.exists()

    def test_moved_cache_still_finds_evaluator(self, store: EvaluatorCache, tmp_path: Path) -> None:
        store.put(KEY, SNAPSHOT)
        shutil.move(store.folder, tmp_path / "elsewhere")
        found = EvaluatorCache(tmp_path / "elsewhere").find(KEY)
        assert found is not None
        assert found.path.is_relative_to(tmp_path / "elsewhere")

    def test_put_removes_only_old_temporary_files(self, store: EvaluatorCache) -> None:
        store.put(KEY, SNAPSHOT)
        parents = [store.folder, *(store.folder / "evaluators" / n for n in ("index", "trees"))]
        for parent in parents:
            for name, hours in (("old", 2), ("new", 0)):
                path = parent / f".tmp-{name}"
                path.mkdir()
                (path / "half").touch()
                os.utime(path, (time.time() - hours * 3600,) * 2)
        store.put(OTHER_KEY, OTHER_SNAPSHOT)
        assert leftovers(store.folder) == sorted(parent / ".tmp-new" for parent in parents)


class TestEntryListing:
    def test_all_stored_evaluators_are_listed(self, store: EvaluatorCache) -> None:
        one, other = store.put(KEY, SNAPSHOT), store.put(OTHER_KEY, OTHER_SNAPSHOT)
        entries = {entry.key: entry for entry in store.list_entries()}
        assert set(entries) == {KEY, OTHER_KEY}
        assert (entries[KEY].evaluator, entries[OTHER_KEY].evaluator) == (one, other)
        assert entries[OTHER_KEY].size_bytes == len(b"pass\n")
        assert entries[KEY].corruption is None

    def test_temporary_files_are_not_listed(self, store: EvaluatorCache) -> None:
        store.put(KEY, SNAPSHOT)
        (store.folder / "evaluators" / "index" / ".tmp-x").touch()
        assert [entry.corruption for entry in store.list_entries()] == [None]

    def test_foreign_file_is_listed_as_corrupt(self, store: EvaluatorCache) -> None:
        store.put(KEY, SNAPSHOT)
        (store.folder / "evaluators" / "index" / "notes.txt").write_text("buy milk")
        damage = {entry.name: entry.corruption for entry in store.list_entries()}
        assert "not JSON" in str(damage["notes.txt"])
        assert len(damage) == 2

    def test_entry_removed_during_listing_is_reported(self, store: EvaluatorCache) -> None:
        store.put(KEY, SNAPSHOT)
        store.put(OTHER_KEY, SNAPSHOT)
        entries = store.list_entries()
        next(entries)
        for path in index_of(store):
            path.unlink()
        assert [entry.corruption for entry in entries] == ["it was just removed"]


class TestInvalidSnapshot:
    @pytest.mark.parametrize(
        "path",
        [
            *("../x", "a/../../x", "/x", "", ".", "..", "a//b", "a/", "./a", "a/./b"),
            *("a\\b", "a\0b", "a\ud800", "x" * 256, "/".join("x" * 700)),
        ],
    )
    def test_invalid_path_is_rejected(self, store: EvaluatorCache, path: str) -> None:
        snapshot = ProgramSnapshot(entry="tone.py", files={**FILES, path: ProgramFile(content=b"")})
        with pytest.raises(PermanentFetchError, match="not a path inside the folder"):
            store.put(KEY, snapshot)
        assert not store.folder.exists()

    def test_path_used_as_file_and_folder_is_rejected(self, store: EvaluatorCache) -> None:
        files = {"a": ProgramFile(content=b""), "a/b/c": ProgramFile(content=b"")}
        with pytest.raises(PermanentFetchError, match="'a' is both a file and a folder"):
            store.put(KEY, ProgramSnapshot(entry="a", files=files))

    def test_snapshot_without_program_is_rejected(self, store: EvaluatorCache) -> None:
        with pytest.raises(PermanentFetchError, match=r"'b\.py' is not among the files"):
            store.put(KEY, ProgramSnapshot(entry="b.py", files=FILES))

    def test_snapshot_with_too_many_files_is_rejected(self, store: EvaluatorCache) -> None:
        files = {f"{n}.py": ProgramFile(content=b"") for n in range(2001)}
        with pytest.raises(PermanentFetchError, match="more than 2,000 files"):
            store.put(KEY, ProgramSnapshot(entry="0.py", files=files))

    def test_snapshot_over_size_limit_is_rejected(self, store: EvaluatorCache) -> None:
        content = bytes(1024**2)
        files = {f"{n}.py": ProgramFile(content=content) for n in range(65)}
        with pytest.raises(PermanentFetchError, match="larger than 64 MiB"):
            store.put(KEY, ProgramSnapshot(entry="0.py", files=files))

    def test_snapshot_with_oversized_index_is_rejected(self, store: EvaluatorCache) -> None:
        files = {f"{n}/{'x' * 250}/{'y' * 250}.py": ProgramFile(content=b"") for n in range(1900)}
        with pytest.raises(PermanentFetchError, match="names are too long"):
            store.put(KEY, ProgramSnapshot(entry=next(iter(files)), files=files))

    def test_key_with_invalid_unicode_is_rejected(self, store: EvaluatorCache) -> None:
        key = EvaluatorKey(source="github", repository="\ud800", commit="c", ref="x.py")
        with pytest.raises(PermanentFetchError, match="not valid UTF-8"):
            store.put(key, SNAPSHOT)


_NAMES = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1)
_PATHS = st.lists(
    _NAMES.filter(lambda name: name not in {".", ".."} and len(name.encode()) < 200),
    min_size=1,
    max_size=4,
).map("/".join)
_FILES = st.dictionaries(
    _PATHS,
    values(ProgramFile, content=st.binary(max_size=50), executable=st.booleans()),
    min_size=1,
    max_size=6,
).filter(lambda files: not find_parent_folders(files) & set(files))


@given(files=_FILES, names=st.tuples(st.text(), st.text(), st.text(), st.text()))
def test_find_returns_files_exactly_as_put(
    tmp_path: Path, files: dict[str, ProgramFile], names: tuple[str, ...]
) -> None:
    store = EvaluatorCache(tmp_path / "cache")
    source, repository, commit, ref = names
    key = EvaluatorKey(source=source, repository=repository, commit=commit, ref=ref)
    store.put(key, ProgramSnapshot(entry=min(files), files=files))
    found = store.find(key)
    assert found is not None
    assert found.path == found.folder / min(files)
    assert list(found.digests) == sorted(files)
    for path, file in files.items():
        assert (found.folder / path).read_bytes() == file.content
        assert os.access(found.folder / path, os.X_OK) == file.executable
        assert found.digests[path] == sha256(file.content).hexdigest()


DIGESTS = make_manifest(KEY, SNAPSHOT).files


def test_install_keeps_intact_existing_tree(tmp_path: Path) -> None:
    install_tree(write_tree(tmp_path, SNAPSHOT.files, owner=None), tmp_path / "tree", DIGESTS)
    before = (tmp_path / "tree").stat().st_ino
    install_tree(write_tree(tmp_path, SNAPSHOT.files, owner=None), tmp_path / "tree", DIGESTS)
    assert (tmp_path / "tree").stat().st_ino == before
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


def test_install_of_missing_folder_raises_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        install_tree(tmp_path / "gone", tmp_path / "tree", DIGESTS)
    assert not is_intact(tmp_path / "tree", DIGESTS)
