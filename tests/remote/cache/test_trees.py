"""A tree is installed completely, or an error is raised."""

from pathlib import Path

import pytest

from agentci.remote.cache.index import make_manifest
from agentci.remote.cache.store import install_tree, is_intact, write_tree
from tests.remote.cache.samples import KEY, SNAPSHOT

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
