"""A cache is used only if no checkout and no other user decides what is in it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci._util.cache_folder import (
    BASELINES_FOLDER,
    ENVIRONMENTS_FOLDER,
    RESPONSES_FILE,
    find_cache_owner,
    resolve_cache_folder,
)
from agentci._util.workspace import Workspace, find_workspace
from agentci.errors import InputError
from tests.helpers.repositories import commit, git, repository

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes owners of files")
STRANGER = 4242


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def root(top: Path) -> Path:
    """A workspace, with a cache beside it."""
    (top / "cache").mkdir()
    (top / "work").mkdir()
    return top / "work"


def resolve(root: Path, named: str) -> Path:
    return resolve_cache_folder(root / named, Workspace(root=root, cwd=root))


def check_refused(root: Path, named: str, *expected: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve(root, named)
    [problem] = caught.value.problems
    assert " is not used: " in problem.message
    assert problem.hint is not None
    for text in expected:
        assert text in problem.message


class TestTrusted:
    @pytest.mark.parametrize("named", ["../cache", "../missing/cache", "../file/cache"])
    def test_folder_beside_workspace_is_trusted(self, root: Path, named: str) -> None:
        (root.parent / "file").touch()
        assert resolve(root, named) == root.parent / named.removeprefix("../")

    @pytest.mark.parametrize("target", ["cache", "{top}/cache", "elsewhere/../work/../cache"])
    def test_links_outside_of_checkouts_are_resolved(
        self, root: Path, top: Path, target: str
    ) -> None:
        (top / "elsewhere").mkdir()
        (top / "link").symlink_to(target.format(top=top))
        assert resolve(root, "../link/environments") == top / "cache" / "environments"

    def test_plain_folder_of_workspace_on_the_way_is_trusted(self, root: Path, top: Path) -> None:
        (root / "evals").mkdir()
        assert resolve(root, "evals/../../cache") == top / "cache"

    def test_group_of_process_may_write(self, root: Path, top: Path) -> None:
        (top / "cache").chmod(0o775)
        assert resolve(root, "../cache") == top / "cache"

    @needs_root
    def test_owner_of_workspace_may_write(self, root: Path, top: Path) -> None:
        """Root in a container action: checkout and home belong to the runner's user."""
        for path in (root, top / "cache"):
            os.chown(path, STRANGER, STRANGER)
        (top / "cache").chmod(0o775)
        assert resolve(root, "../cache") == top / "cache"

    def test_missing_cache_gets_owner_of_its_first_parent(self, top: Path, root: Path) -> None:
        assert find_cache_owner(root.parent / "cache") == top / "cache"
        assert find_cache_owner(top / "home" / ".cache" / "agentci") == top


class TestCheckout:
    @pytest.mark.parametrize("named", [".", "cache", ".agentci/cache", "../work/cache"])
    def test_workspace_is_refused_without_git(self, root: Path, named: str) -> None:
        check_refused(root, named, f"it is in the checkout {root}, so a pull request could bring")

    @pytest.mark.parametrize("index", [["--index-version", "4"], ["--split-index"]])
    def test_workspace_is_refused_with_any_index(self, root: Path, index: list[str]) -> None:
        repository(root)
        (root / "cache").mkdir()
        (root / "cache" / RESPONSES_FILE).touch()
        commit(root)
        git(root, "update-index", *index)
        check_refused(root, "cache", "it is in the checkout")

    @pytest.mark.parametrize(
        ("link", "target", "named"),
        [
            pytest.param(".agentci", "data", ".agentci/cache", id="parent folder"),
            pytest.param("cache", "data", "cache", id="cache"),
            pytest.param("out", "../cache", "out", id="out of the workspace"),
            pytest.param("out", "{top}/cache", "out/x", id="absolute"),
            pytest.param("up", "..", "up/cache", id="above the workspace"),
            pytest.param("one", "two", "one/../../cache", id="before a parent folder"),
        ],
    )
    def test_link_in_workspace_is_refused(
        self, root: Path, top: Path, link: str, target: str, named: str
    ) -> None:
        (root / "data").mkdir()
        (root / "two" / "three").mkdir(parents=True)
        (root / link).symlink_to(target.format(top=top))
        check_refused(root, named, f"{root / link} is a link in the checkout {root}")

    def test_link_into_workspace_is_refused(self, root: Path, top: Path) -> None:
        (top / "link").symlink_to(root)
        check_refused(root, "../link/cache", f"it is in the checkout {root}")

    def test_link_through_workspace_is_refused(self, root: Path, top: Path) -> None:
        (root / "inner").symlink_to(top / "cache")
        (top / "link").symlink_to("work/inner")
        check_refused(root, "../link", f"{root / 'inner'} is a link in the checkout")

    @pytest.mark.parametrize("kind", ["repository", "worktree", "submodule"])
    def test_other_checkout_is_refused(self, root: Path, top: Path, kind: str) -> None:
        """As where the working directory is in a submodule of the repository with the cache."""
        other = repository(top / "other")
        commit(other)
        if kind == "worktree":
            git(other, "worktree", "add", "--quiet", str(top / "tree"))
            other = top / "tree"
        elif kind == "submodule":
            outer = repository(top / "outer")
            git(outer, "-c", "protocol.file.allow=always", "submodule", "add", str(other), "other")
            other = outer / "other"
        check_refused(root, str(other / "x" / "cache"), f"it is in the checkout {other}")
        (other / "out").symlink_to(top / "cache")
        check_refused(root, str(other / "out"), "is a link in the checkout")

    def test_checkout_of_workflow_is_refused_outside_of_it(self, root: Path, top: Path) -> None:
        """It has no `.git` if it was downloaded, and the working directory may be elsewhere."""
        (top / "checkout" / "cache").mkdir(parents=True)
        (top / "checkout" / "out").symlink_to(top / "cache")
        workspace = find_workspace(root, root=top / "checkout")
        assert workspace.root == root
        for named, reason in (("cache", "it is in the checkout"), ("out", "is a link in the")):
            with pytest.raises(InputError, match=reason):
                resolve_cache_folder(top / "checkout" / named, workspace.extend(top))
        assert resolve_cache_folder(top / "cache", workspace) == top / "cache"
        missing = find_workspace(root, root=top / "missing")
        assert resolve_cache_folder(top / "cache", missing) == top / "cache"

    def test_second_mount_of_workspace_is_refused(self, root: Path, top: Path) -> None:
        (top / "mount").mkdir()
        code = (
            "import sys; from tests._util.test_cache_folder_trust import check_refused, Path; "
            f"check_refused(Path({str(root)!r}), '../mount/cache', 'it is in the checkout')"
        )
        mounted = f'mount --bind {root} {top / "mount"} && exec {sys.executable} -c "$CODE"'
        ran = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted],
            env={**os.environ, "CODE": code, "PYTHONPATH": str(Path(__file__).parents[3])},
            capture_output=True,
            text=True,
            check=False,
        )
        if "unshare" in ran.stderr or "mount:" in ran.stderr:
            pytest.skip(f"mounts are not possible here: {ran.stderr}")
        assert ran.returncode == 0, ran.stderr


class TestOtherUsers:
    @pytest.fixture
    def shared(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as name:
            Path(name).chmod(0o1777)
            yield Path(name)

    @pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757])
    @pytest.mark.parametrize("name", ["", ENVIRONMENTS_FOLDER, BASELINES_FOLDER, RESPONSES_FILE])
    def test_cache_that_others_can_write_is_refused(
        self, root: Path, top: Path, name: str, mode: int
    ) -> None:
        path = top / "cache" / name
        if name == RESPONSES_FILE:
            path.touch()
        path.mkdir(exist_ok=True) if name != RESPONSES_FILE else None
        path.chmod(mode)
        check_refused(root, "../cache", f"other users can write to {path}")

    @pytest.mark.parametrize("name", [ENVIRONMENTS_FOLDER, BASELINES_FOLDER, RESPONSES_FILE])
    def test_link_in_cache_is_refused(self, root: Path, top: Path, name: str) -> None:
        (top / "cache" / name).symlink_to(root)
        check_refused(root, "../cache", f"{top / 'cache' / name} is a link")

    def test_parent_that_others_can_write_is_refused(self, root: Path, top: Path) -> None:
        (top / "parent" / "cache").mkdir(parents=True)
        (top / "parent").chmod(0o777)
        check_refused(root, "../parent/cache", f"other users can write to {top / 'parent'}")

    def test_shared_folder_for_temporary_files_needs_existing_cache(
        self, root: Path, shared: Path
    ) -> None:
        check_refused(root, str(shared / "cache"), f"other users can create {shared / 'cache'}")
        (shared / "cache").mkdir()
        assert resolve(root, str(shared / "cache")) == shared / "cache"
        check_refused(root, str(shared / "cache" / ".."), f"other users can write to {shared}")

    def test_loop_of_links_is_refused(self, root: Path, top: Path) -> None:
        (top / "a").symlink_to("b")
        (top / "b").symlink_to("a/c")
        check_refused(root, "../a", "links in a loop")

    @needs_root
    @pytest.mark.parametrize("name", [".", "responses.sqlite3", "evaluators"])
    def test_file_of_another_user_is_refused(self, root: Path, top: Path, name: str) -> None:
        path = top / "cache" / name
        path.mkdir(exist_ok=True)
        os.chown(path, STRANGER, STRANGER)
        check_refused(root, "../cache", f"{path} belongs to another user")

    @needs_root
    def test_parent_or_link_of_another_user_is_refused(self, root: Path, shared: Path) -> None:
        (shared / "link").symlink_to(root.parent / "cache")
        (shared / "parent" / "cache").mkdir(parents=True)
        for name, named in (("link", "link"), ("parent", "parent/cache")):
            os.chown(shared / name, STRANGER, STRANGER, follow_symlinks=False)
            check_refused(root, str(shared / named), f"{shared / name} belongs to another user")

    @needs_root
    def test_group_of_other_users_may_not_write(self, root: Path, top: Path) -> None:
        os.chown(top / "cache", 0, STRANGER)
        (top / "cache").chmod(0o775)
        check_refused(root, "../cache", "other users can write to")
