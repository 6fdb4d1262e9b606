"""What is put in place is whole, or an error says why it is not."""

from pathlib import Path

import pytest

from agentci.remote.cache.index import make_manifest
from agentci.remote.cache.trees import install_tree, is_intact, write_tree
from tests.remote.cache.samples import KEY, SNAPSHOT

MARKS = make_manifest(KEY, SNAPSHOT).files


def test_what_is_there_already_is_kept(tmp_path: Path) -> None:
    install_tree(write_tree(tmp_path, SNAPSHOT.files, owner=None), tmp_path / "tree", MARKS)
    before = (tmp_path / "tree").stat().st_ino
    install_tree(write_tree(tmp_path, SNAPSHOT.files, owner=None), tmp_path / "tree", MARKS)
    assert (tmp_path / "tree").stat().st_ino == before
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


def test_what_cannot_be_put_in_place_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        install_tree(tmp_path / "gone", tmp_path / "tree", MARKS)
    assert not is_intact(tmp_path / "tree", MARKS)
