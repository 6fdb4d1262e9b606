"""Private temporary folders: created for one user and removed with any content."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentci.execution.child import tmpdir
from tests.helpers.support import ROOT

# Removes a folder. At the first call that opens or changes a folder below it, a link takes the
# folder's place, as a running program could exchange them.
EXCHANGE = """
import os, sys
from agentci.execution.child import tmpdir
top, link = sys.argv[1], sys.argv[1] + sys.argv[2]
def exchange(event, arguments):
    # `tmp/a` has become an entry of the folder or still is in `tmp`; the event has its name.
    if event in {"os.chmod", "open"} and os.path.lexists(link):
        for folder in (top, top + "/tmp"):
            name = os.path.join(folder, os.fsdecode(arguments[0]).rpartition("/")[2])
            if name != top and os.path.isdir(name) and not os.path.islink(name):
                os.rename(name, top + "-aside")
                os.rename(link, name)
                break
sys.addaudithook(exchange)
tmpdir.remove_tmpdir(os.fsencode(top))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "private"
    tmpdir.make_tmpdir(bytes(path), None)
    return path


def test_tmpdir_is_accessible_only_to_its_user(path: Path) -> None:
    for folder in (path, path / "home", path / "tmp"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_existing_folder_is_not_used(path: Path) -> None:
    with pytest.raises(FileExistsError):
        tmpdir.make_tmpdir(bytes(path), None)


class TestRemoval:
    def test_removal_does_not_follow_links(self, path: Path) -> None:
        outside = path.parent / "outside"
        (outside / "below").mkdir(parents=True)
        (path / "tmp" / "a" / "b").mkdir(parents=True)
        (path / "tmp" / "a" / "file").touch()
        (path / "tmp" / "link").symlink_to(outside)
        (path / "1").mkdir()
        (path / "1" / "file").touch()
        assert tmpdir.remove_tmpdir(bytes(path))
        assert not path.exists()
        assert (outside / "below").is_dir()

    def test_folders_without_permissions_are_removed(self, path: Path) -> None:
        (path / "home" / "closed" / "below").mkdir(parents=True)
        for folder in ("home/closed/below", "home/closed", "home", ""):
            (path / folder).chmod(0)
        assert tmpdir.remove_tmpdir(bytes(path))
        assert not path.exists()

    def test_deeply_nested_folders_are_removed(self, path: Path) -> None:
        before = Path.cwd()
        os.chdir(path / "tmp")
        try:
            for _ in range(1500):
                os.mkdir("d")  # noqa: PTH102 (the path is too long for a path)
                os.chdir("d")
        finally:
            os.chdir(before)
        assert tmpdir.remove_tmpdir(bytes(path))
        assert not path.exists()

    def test_missing_path_or_link_is_not_removed(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path)
        assert not tmpdir.remove_tmpdir(bytes(tmp_path / "nothing"))
        assert not tmpdir.remove_tmpdir(bytes(tmp_path / "link"))

    def test_link_put_in_place_of_folder_is_not_followed(self, path: Path) -> None:
        """The exchange happens when the removal opens a folder or changes its mode."""
        victim = path.parent / "victim"
        victim.mkdir()
        (victim / "file").touch()
        victim.chmod(0o755)
        for name in ("a", "b"):
            (path / "tmp" / name / "below").mkdir(parents=True)
        (path / "link").symlink_to(victim)
        removal = subprocess.run(
            (sys.executable, "-c", EXCHANGE, path, "/link"),
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert removal.returncode == 0, removal.stderr
        assert victim.stat().st_mode & 0o777 == 0o755
        assert [each.name for each in victim.iterdir()] == ["file"]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can change users")
    @pytest.mark.parametrize("mode", [0, 0o500], ids=["closed", "not writable"])
    def test_own_folders_without_permissions_are_removed_without_privilege(
        self, tmp_path: Path, mode: int
    ) -> None:
        number = os.fork()
        if number == 0:
            status = 1
            try:
                os.chmod(tmp_path, 0o777)  # noqa: PTH101 (the folder of this test only)
                os.chdir(tmp_path)
                os.setgroups([])
                os.setresgid(4321, 4321, 4321)
                os.setresuid(4321, 4321, 4321)
                os.makedirs("private/a/b/c")  # noqa: PTH103 (relative, as parents are closed)
                for name in ("private/a/b/c", "private/a/b", "private/a", "private"):
                    os.chmod(name, mode)  # noqa: PTH101 (likewise)
                status = 0 if tmpdir.remove_tmpdir(b"private", owner=4321) else 2
            finally:
                os._exit(status)
        assert os.waitpid(number, 0)[1] == 0
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")
    def test_folder_of_other_user_is_not_entered(self, path: Path) -> None:
        other = path / "tmp" / "other"
        other.mkdir()
        (other / "file").touch()
        os.chown(other, 4321, 4321)
        assert not tmpdir.remove_tmpdir(bytes(path), owner=0)
        assert [each.name for each in path.rglob("file")] == ["file"]
        assert tmpdir.remove_tmpdir(bytes(path))

    def test_removal_stops_at_time_limit(self, path: Path) -> None:
        assert not tmpdir.remove_tmpdir(bytes(path), seconds=-1)
        assert path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")
def test_only_entries_of_user_are_cleared(tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / f"{name}.file").touch()
    (tmp_path / "mine" / "link").symlink_to(tmp_path / "theirs")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    for path in [tmp_path / "mine.file", tmp_path / "link", *(tmp_path / "mine").rglob("*")]:
        os.chown(path, 4321, 4321, follow_symlinks=False)
    os.chown(tmp_path / "mine", 4321, 4321)
    top = os.open(tmp_path, os.O_RDONLY)
    tmpdir.clear_folder(top, 4321)
    os.close(top)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["theirs", "theirs.file"]
    assert (tmp_path / "theirs" / "below").is_dir()


def test_home_files_belong_to_user_only(tmp_path: Path) -> None:
    path = tmp_path / "private"
    tmpdir.make_tmpdir(bytes(path), None, [(b".config/uv/uv.toml", b"x"), (b".netrc", b"y")])
    assert (path / "home/.config/uv/uv.toml").read_bytes() == b"x"
    assert (path / "home/.netrc").stat().st_mode & 0o777 == 0o600
    assert (path / "home/.config").stat().st_mode & 0o777 == 0o700


def test_size_is_allocated_disk_space(path: Path) -> None:
    (path / "tmp" / "file").write_bytes(b"x" * 1_000_000)
    with (path / "home" / "sparse").open("wb") as file:
        file.truncate(10**9)
    assert 1_000_000 <= tmpdir.measure_size([bytes(path)], 10**9) < 2_000_000
    assert tmpdir.measure_size([bytes(path.parent / "nothing")], 1) == 0


def test_size_includes_empty_files(path: Path) -> None:
    empty = path / "tmp" / "empty"
    empty.mkdir(parents=True)
    for number in range(500):
        (empty / str(number)).touch()
    assert tmpdir.measure_size([bytes(path)], 10**9) >= 500 * tmpdir.MIN_FILE_BYTES


def test_size_includes_files_at_long_paths(path: Path) -> None:
    folder = os.open(path / "tmp", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d" * 250, dir_fd=folder)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    file = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
    os.write(file, b"x" * 10_000_000)
    os.close(file)
    os.close(folder)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (a count)
    assert 16_000_000 <= tmpdir.measure_size([bytes(path)], 10**9) < 20_000_000
    assert tmpdir.measure_size([bytes(path)], 1_000_000) >= 1_000_000
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 (likewise)
    assert tmpdir.remove_tmpdir(bytes(path))  # which pytest could not


# Writes a megabyte in a folder that it closes, and measures it as the same user; with a second
# argument, root measures it without its capabilities.
MEASURE_CLOSED = """
import os, sys
from agentci.execution.child import tmpdir
path, mode = os.fsencode(sys.argv[1]), int(sys.argv[2], 8)
os.mkdir(path + b"/closed")
with open(path + b"/closed/file", "wb") as file:
    file.write(b"x" * 1_000_000)
os.chmod(path + b"/closed", mode)
if sys.argv[3:]:
    os.chown(path + b"/closed", 4321, 4321)
from agentci.execution.child import kernel
kernel.drop_privileges(None, keeps_read_search=False)
print(tmpdir.measure_size([path], 10**9))
"""


def _measure_closed(path: Path, mode: str, *more: str) -> int:
    command = [sys.executable, "-c", MEASURE_CLOSED, str(path), mode, *more]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return int(ran.stdout)


@pytest.mark.parametrize("mode", ["300", "400", "000"])
def test_size_includes_files_in_closed_folder(path: Path, mode: str) -> None:
    assert 1_000_000 <= _measure_closed(path, mode) < 2_000_000


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")
@pytest.mark.parametrize("mode", ["300", "444"])
def test_unreadable_folder_counts_as_enough(path: Path, mode: str) -> None:
    assert _measure_closed(path, mode, "other") == 10**9


def test_links_are_not_followed_by_measurement(path: Path) -> None:
    (path.parent / "outside").mkdir()
    (path.parent / "outside" / "file").write_bytes(b"x" * 1_000_000)
    (path / "tmp" / "link").symlink_to(path.parent / "outside")
    assert tmpdir.measure_size([bytes(path)], 10**9) < 1_000_000
