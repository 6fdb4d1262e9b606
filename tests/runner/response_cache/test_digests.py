"""What lies on disk is the same as long as its digest is."""

import os
from pathlib import Path

import pytest

from agentci.runner.response_cache.digests import MAX_FILE_BYTES, Digests


def _of(path: Path, *own: Path) -> str | None:
    return Digests({str(each) for each in own}).of(str(path))


def test_a_file_is_its_content(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a")
    two.write_text("a")
    assert _of(one) == _of(two)
    two.write_text("b")
    assert _of(one) != _of(two)


def test_a_folder_is_the_names_in_it_and_where_its_links_lead(tmp_path: Path) -> None:
    seen = [_of(tmp_path)]
    (tmp_path / "file").touch()
    seen.append(_of(tmp_path))
    (tmp_path / "link").symlink_to("file")
    seen.append(_of(tmp_path))
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("nowhere")
    seen.append(_of(tmp_path))
    assert len(set(seen)) == 4
    (tmp_path / "file").write_text("another content")
    assert _of(tmp_path) == seen[-1]
    assert _of(tmp_path, tmp_path / "link", tmp_path / "file") == seen[0]


def test_a_folder_with_a_folder_in_the_place_of_a_file_is_not_the_same(tmp_path: Path) -> None:
    path = tmp_path / "path"
    seen = []
    path.touch()
    seen.append(_of(tmp_path))
    path.unlink()
    path.mkdir()
    seen.append(_of(tmp_path))
    path.rmdir()
    path.symlink_to("/")
    seen.append(_of(tmp_path))
    assert len(set(seen)) == 3


def test_a_link_is_where_it_leads_and_never_what_is_there(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("file")
    link.symlink_to(file)
    assert _of(link) != _of(file)
    before = _of(link)
    file.write_text("another content")
    assert _of(link) == before
    link.unlink()
    link.symlink_to(tmp_path)
    assert _of(link) != before


def test_a_file_in_place_of_a_folder_is_not_the_same(tmp_path: Path) -> None:
    path = tmp_path / "path"
    path.mkdir()
    folder = _of(path)
    path.rmdir()
    path.touch()
    assert _of(path) not in (None, folder)


def test_it_is_taken_once_until_it_is_to_be_forgotten(tmp_path: Path) -> None:
    digests = Digests(())
    file = str(tmp_path / "file")
    assert digests.of(file) is None
    Path(file).touch()
    assert digests.of(file) is None
    digests.forget()
    assert digests.of(file) is not None


class TestThereIsNone:
    def test_of_what_is_not_there(self, tmp_path: Path) -> None:
        assert _of(tmp_path / "nothing") is None
        assert Digests(()).of("a\0b") is None

    def test_of_a_pipe_which_nobody_waits_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert _of(tmp_path / "pipe") is None

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_of_what_may_not_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch(mode=0)
        assert _of(tmp_path / "file") is None

    def test_of_a_file_that_takes_long_to_read(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        os.truncate(tmp_path / "file", MAX_FILE_BYTES + 1)
        assert _of(tmp_path / "file") is None
