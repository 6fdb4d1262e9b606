"""What is checked out, read from git's files: no process is started for it."""

import os
import re
from pathlib import Path
from typing import Final

from agentci._util.workspace import Workspace, is_file
from agentci.github.context import GitHub
from agentci.github.event import COMMIT

MAX_BYTES: Final = 16 * 1024**2

_FOLDER: Final = "gitdir: "
_BRANCH: Final = "ref: "
# Bits of an entry of the index that hold the length of its path; a longer one has all of them set.
_LENGTH: Final = 0xFFF


def commit_at(workspace: Workspace, github: GitHub) -> str:
    """The commit that is judged: what is checked out, else what the workflow runs on.

    The two differ where a workflow checks out something else, as the last commit of a pull request
    in the place of GitHub's merge of it; then only the first is what was judged. It may do so in a
    folder of the workspace, where the working directory then is.
    """
    above = (workspace.cwd, *workspace.cwd.parents)
    heads = (head_of(each) for each in reversed(above) if each.is_relative_to(workspace.root))
    return next(filter(None, heads), "") or (_commit(github.sha) if github.active else "")


def head_of(root: Path) -> str:
    """The commit that ``HEAD`` of the repository at ``root`` means.

    Empty where there is no repository or no commit yet, and where its refs are kept in a way that
    only git can read (reftable). See gitrepository-layout(5).
    """
    folder = _folder_of(root)
    head = _read(folder / "HEAD")
    if not head.startswith(_BRANCH):
        return _commit(head)
    name = head.removeprefix(_BRANCH)
    # Of several worktrees of a repository, each has its HEAD, and all share the branches.
    shared = folder / (_read(folder / "commondir") or ".")
    return _commit(_read(shared / name)) or _packed(_read(shared / "packed-refs"), name)


def is_committed(folder: Path, workspace: Workspace) -> bool:
    """Whether git tracks a file below ``folder``, as far as an index can tell without git.

    The index is that of the repository around it, or of one below the workspace: a submodule, or
    what a workflow checks out into a folder. Only in the fourth version of its format, which git
    writes on request, are paths not spelled out.
    """
    path = Path(os.path.normpath(folder))
    above = (each for each in (path, *path.parents) if each.is_relative_to(workspace.root))
    return any(_tracks(root, path) for root in above)


def _tracks(root: Path, path: Path) -> bool:
    try:
        index = (_folder_of(root) / "index").read_bytes()
    except OSError:
        return False
    if path == root:
        return True
    below = re.escape(os.fsencode(f"{path.relative_to(root)}/"))
    return any(_begins_a_path(index, found.start()) for found in re.finditer(below, index))


def _begins_a_path(index: bytes, at: int) -> bool:
    """Whether it is the first byte of a tracked path, not of a part: the length stands before it.

    With none to three bytes between them; see gitformat-index(5).
    """
    length = min(index.find(b"\0", at) - at, _LENGTH)
    return any(
        int.from_bytes(index[start : start + 2]) & _LENGTH == length
        for start in range(at - 5, at - 1)
    )


def _folder_of(root: Path) -> Path:
    """``.git``, which in a worktree and in a submodule is a file that names the folder."""
    path = root / ".git"
    if is_file(path) and (named := _read(path)).startswith(_FOLDER):
        return root / named.removeprefix(_FOLDER)
    return path


def _packed(refs: str, name: str) -> str:
    lines = (line.partition(" ") for line in refs.splitlines())
    return next((_commit(commit) for commit, _, found in lines if found == name), "")


def _commit(text: str) -> str:
    return text if COMMIT.match(text) else ""


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
