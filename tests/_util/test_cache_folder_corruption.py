"""A corrupted cache entry is never returned, and can be replaced."""

import json
import os
import resource
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.errors import UnreachableError
from agentci.remote.evaluator_cache import EvaluatorCache
from tests.remote.cache_samples import (
    FILES,
    KEY,
    OTHER_KEY,
    OTHER_SNAPSHOT,
    SNAPSHOT,
    index_of,
    trees_of,
)

Damage: TypeAlias = Callable[[Path], object]


@pytest.fixture
def store(tmp_path: Path) -> EvaluatorCache:
    """A cache with one evaluator in it."""
    store = EvaluatorCache(tmp_path / "cache")
    store.put(KEY, SNAPSHOT)
    return store


def _assert_repaired(store: EvaluatorCache, expected: str) -> None:
    """The corruption is reported and the entry removed; it can be put and found again."""
    assert expected in str([entry.corruption for entry in store.list_entries()])
    assert store.find(KEY) is None
    assert list(store.list_entries()) == []
    put = store.put(KEY, SNAPSHOT)
    assert store.find(KEY) == put
    assert put.path.read_bytes() == FILES["tone.py"].content


def _flip_bit(tree: Path) -> None:
    content = bytearray((tree / "tone.py").read_bytes())
    content[5] ^= 1
    (tree / "tone.py").write_bytes(content)


def _add_to(tree: Path) -> None:
    with (tree / "tone.py").open("ab") as file:
        file.write(b"\n")


def _enlarge(tree: Path) -> None:
    os.truncate(tree / "words" / "rude.txt", 65 * 1024**2)


def _replace_by_link(tree: Path) -> None:
    (tree / "tone.py").rename(tree.parent.parent / "elsewhere")
    (tree / "tone.py").symlink_to("../../elsewhere")


def _replace_by_dangling_link(tree: Path) -> None:
    (tree / "tone.py").unlink()
    (tree / "tone.py").symlink_to("nowhere")


def _replace_folder_by_link(tree: Path) -> None:
    (tree / "words").rename(tree.parent.parent / "elsewhere")
    (tree / "words").symlink_to("../../elsewhere")


def _replace_by_pipe(tree: Path) -> None:
    (tree / "tone.py").unlink()
    os.mkfifo(tree / "tone.py")


def _replace_by_device(tree: Path) -> None:
    (tree / "tone.py").unlink()
    try:
        os.mknod(tree / "tone.py", 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root can make devices, and not everywhere")


def _replace_by_folder(tree: Path) -> None:
    (tree / "tone.py").unlink()
    (tree / "tone.py").mkdir()


def _replace_folder_by_file(tree: Path) -> None:
    shutil.rmtree(tree / "words")
    (tree / "words").touch()


def _replace_all_by_link(tree: Path) -> None:
    tree.rename(tree.parent.parent / "elsewhere")
    tree.symlink_to("../elsewhere")


def _replace_all_by_file(tree: Path) -> None:
    shutil.rmtree(tree)
    tree.touch()


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a flipped bit": (_flip_bit, "tone.py has unexpected content"),
    "an added byte": (_add_to, "tone.py has unexpected content"),
    "a truncated file": (lambda t: os.truncate(t / "tone.py", 3), "has unexpected content"),
    "an emptied file": (lambda t: os.truncate(t / "tone.py", 0), "has unexpected content"),
    "a huge file": (_enlarge, "words/rude.txt is too large"),
    "a missing file": (lambda t: (t / "words/rude.txt").unlink(), "words/rude.txt is missing"),
    "a missing folder": (lambda t: shutil.rmtree(t / "words"), "words/rude.txt is missing"),
    "an added file": (lambda t: (t / "json.py").touch(), "json.py is not part of it"),
    "a hidden file": (lambda t: (t / "words/.x").touch(), "words/.x is not part of it"),
    "an empty folder": (lambda t: (t / "empty").mkdir(), "empty is not part of it"),
    "compiled code": (lambda t: (t / "__pycache__").mkdir(), "__pycache__ is not part of it"),
    "an added symlink": (lambda t: (t / "x").symlink_to("tone.py"), "x is not part of it"),
    "a name that is not UTF-8": (lambda t: (t / "\udcff").touch(), "is not part of it"),
    "a symlink for a file": (_replace_by_link, "tone.py is not a regular file"),
    "a dangling symlink": (_replace_by_dangling_link, "tone.py is not a regular file"),
    "a symlink for a folder": (_replace_folder_by_link, "words is not part of it"),
    "a pipe": (_replace_by_pipe, "tone.py is not a regular file"),
    "a device": (_replace_by_device, "tone.py is not a regular file"),
    "a folder for a file": (_replace_by_folder, "tone.py is not a regular file"),
    "a file for a folder": (_replace_folder_by_file, "words is not part of it"),
    "a lost executable bit": (lambda t: (t / "tone.py").chmod(0o644), "tone.py is not executable"),
    "a missing tree": (shutil.rmtree, "its folder is missing"),
    "a symlink for the tree": (_replace_all_by_link, "its folder is not a folder"),
    "a file for the tree": (_replace_all_by_file, "its folder is not a folder"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_corrupted_evaluator_is_not_returned(store: EvaluatorCache, name: str) -> None:
    damage, expected = DAMAGES[name]
    damage(trees_of(store)[0])
    _assert_repaired(store, expected)


def test_socket_as_file_is_corruption(
    store: EvaluatorCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trees_of(store)[0])  # the paths of sockets are short
    Path("tone.py").unlink()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("tone.py")
        _assert_repaired(store, "tone.py is not a regular file")


def test_symlink_target_is_not_removed(store: EvaluatorCache) -> None:
    _replace_all_by_link(trees_of(store)[0])
    assert store.find(KEY) is None
    assert (store.folder / "evaluators" / "elsewhere" / "tone.py").is_file()


@pytest.mark.parametrize("name", ["evaluators", "evaluators/index", "evaluators/trees"])
@pytest.mark.parametrize("kind", ["link", "file"])
def test_cache_folder_as_symlink_is_corruption(
    store: EvaluatorCache, tmp_path: Path, name: str, kind: str
) -> None:
    folder = store.folder / name
    folder.rename(tmp_path / "precious")
    if kind == "link":
        folder.symlink_to(tmp_path / "precious")
    else:
        folder.touch()
    before = sorted((tmp_path / "precious").rglob("*"))
    assert f"{folder.name} is not a folder" in str([e.corruption for e in store.list_entries()])
    assert store.find(KEY) is None
    put = store.put(KEY, SNAPSHOT)
    assert store.find(KEY) == put
    assert sorted((tmp_path / "precious").rglob("*")) == before


def test_symlinked_folders_are_replaced_before_put(
    tmp_path: Path,
) -> None:
    (tmp_path / "precious").mkdir()
    store = EvaluatorCache(tmp_path / "cache")
    store.put(OTHER_KEY, SNAPSHOT)
    for name in ("index", "trees"):
        shutil.rmtree(store.folder / "evaluators" / name)
        (store.folder / "evaluators" / name).symlink_to(tmp_path / "precious")
    assert store.put(KEY, SNAPSHOT) == store.find(KEY)
    assert list((tmp_path / "precious").iterdir()) == []


def test_entries_sharing_corrupted_folder_are_repaired(store: EvaluatorCache) -> None:
    store.put(OTHER_KEY, SNAPSHOT)
    _flip_bit(trees_of(store)[0])
    assert store.find(KEY) is None
    assert store.put(KEY, SNAPSHOT) == store.find(KEY)
    assert store.find(OTHER_KEY) is not None


def test_put_replaces_corrupted_folder(store: EvaluatorCache) -> None:
    _flip_bit(trees_of(store)[0])
    assert store.put(OTHER_KEY, SNAPSHOT) == store.find(OTHER_KEY)
    assert store.find(KEY) is not None


def test_open_files_limit_removes_no_entry(store: EvaluatorCache) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        with pytest.raises(UnreachableError, match="cannot be read: Too many open files"):
            store.find(KEY)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert store.find(KEY) is not None


def _document(store: EvaluatorCache) -> dict[str, Any]:
    document = json.loads(index_of(store)[0].read_bytes())
    assert isinstance(document, dict)
    return document


MARK = {"sha256": "0" * 64, "executable": False}
TEXTS: dict[str, bytes] = {
    "an empty file": b"",
    "a list": b"[]",
    "a string": b'"x"',
    "a truncated object": b'{"version": 1, "key": {',
    "deeply nested lists": b"[" * 100_000,
    "deeply nested objects": b'{"a":' * 100_000,
    "binary data": bytes(range(256)),
    "UTF-16": '{"version": 1}'.encode("utf-16"),
    "too many bytes": b" " * (1024**2 + 1),
    "NaN": b'{"version": NaN}',
    "a very long number": b'{"version": ' + b"1" * 10_000 + b"}",
    "a duplicate key": b'{"version": 1, "version": 1}',
}
CHANGES: dict[str, dict[str, Any]] = {
    "another version": {"version": 2},
    "a boolean version": {"version": True},
    "a string version": {"version": "1"},
    "an unknown key": {"more": 1},
    "a string key": {"key": "github"},
    "an incomplete key": {"key": {"source": "github"}},
    "a key of numbers": {"key": {"source": 1, "repository": 2, "commit": 3, "ref": 4}},
    "a null entry": {"entry": None},
    "a missing entry": {"entry": "other.py"},
    "an entry outside the tree": {"entry": "../../../../secret"},
    "a list of files": {"files": ["tone.py"]},
    "no files": {"files": {}},
    "a file as a string": {"files": {"tone.py": "0" * 64}},
    "a file with an unknown key": {"files": {"tone.py": {**MARK, "url": "x"}}},
    "a short sha256": {"files": {"tone.py": {**MARK, "sha256": "0" * 63}}},
    "an upper-case sha256": {"files": {"tone.py": {**MARK, "sha256": "A" * 64}}},
    "a sha256 with a line end": {"files": {"tone.py": {**MARK, "sha256": "0" * 64 + "\n"}}},
    "a sha256 as a number": {"files": {"tone.py": {**MARK, "sha256": 0}}},
    "a mode as a number": {"files": {"tone.py": {**MARK, "executable": 493}}},
    "a path outside the tree": {"files": {"tone.py": MARK, "../../../../secret": MARK}},
    "an absolute path": {"files": {"tone.py": MARK, "/etc/passwd": MARK}},
    "an empty path": {"files": {"tone.py": MARK, "": MARK}},
    "a path with a NUL": {"files": {"tone.py": MARK, "a\0": MARK}},
    "an unpaired surrogate": {"files": {"tone.py": MARK, "\ud800": MARK}},
    "a file below a file": {"files": {"tone.py": MARK, "tone.py/x": MARK}},
    "too many files": {"files": {"tone.py": MARK, **{str(n): MARK for n in range(2001)}}},
    "a missing file": {"files": {"tone.py": MARK}},
}


class TestIndexEntry:
    @pytest.mark.parametrize("name", TEXTS)
    def test_invalid_json_is_corruption(self, store: EvaluatorCache, name: str) -> None:
        index_of(store)[0].write_bytes(TEXTS[name])
        _assert_repaired(store, "its entry in the index")

    @pytest.mark.parametrize("name", CHANGES)
    def test_invalid_field_is_corruption(
        self, store: EvaluatorCache, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / "secret").touch()
        document = {**_document(store), **CHANGES[name]}
        index_of(store)[0].write_text(json.dumps(document))
        _assert_repaired(store, "its ")
        assert (tmp_path / "secret").exists()

    def test_entry_of_another_evaluator_is_corruption(self, store: EvaluatorCache) -> None:
        wanted = index_of(store)[0]
        store.put(OTHER_KEY, OTHER_SNAPSHOT)
        other = next(path for path in index_of(store) if path != wanted)
        other.replace(wanted)
        _assert_repaired(store, "has the file name of another entry")

    @pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
    def test_index_that_is_not_a_file_is_corruption(
        self, store: EvaluatorCache, tmp_path: Path, kind: str
    ) -> None:
        index = index_of(store)[0]
        index.rename(tmp_path / "index.json")
        if kind == "link":
            index.symlink_to(tmp_path / "index.json")
        elif kind == "folder":
            index.mkdir()
        else:
            os.mkfifo(index)
        _assert_repaired(store, "its entry in the index")
        assert (tmp_path / "index.json").exists()

    def test_put_replaces_folder_at_index_path(self, store: EvaluatorCache) -> None:
        index = index_of(store)[0]
        index.unlink()
        (index / "x").mkdir(parents=True)
        assert store.put(KEY, SNAPSHOT) == store.find(KEY)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(
    content=st.binary()
    | _JSON.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries(
        {"version": st.just(1), "key": _JSON, "entry": _JSON, "files": _JSON}
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_index_content_is_handled(tmp_path: Path, content: bytes) -> None:
    store = EvaluatorCache(tmp_path / "cache")
    if not index_of(store):
        store.put(KEY, SNAPSHOT)
    index_of(store)[0].write_bytes(content)
    assert [entry.evaluator for entry in store.list_entries()] == [None]
    assert store.find(KEY) is None
    assert index_of(store) == []
