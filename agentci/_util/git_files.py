"""What is checked out, read from git's files: no process is started for it."""

import os
import re
from pathlib import Path
from typing import Final

from agentci._util.workspace import Workspace, is_file

# SHA-1 or SHA-256; all zeros stand for no commit, as where a push makes a branch.
COMMIT_HASH: Final = re.compile(r"(?!0+\Z)(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")

MAX_BYTES: Final = 16 * 1024**2

_GITDIR_PREFIX: Final = "gitdir: "
_REF_PREFIX: Final = "ref: "
# Bits of an entry of the index that hold the length of its path; a longer one has all of them set.
_PATH_LENGTH_MASK: Final = 0xFFF


def find_head_commit(workspace: Workspace) -> str:
    """The commit that is checked out; empty where none is known.

    That of the workspace, else of the folder in it that the working directory is in: a workflow
    may check out there.
    """
    above = (workspace.cwd, *workspace.cwd.parents)
    heads = (
        read_head_commit(each) for each in reversed(above) if each.is_relative_to(workspace.root)
    )
    return next(filter(None, heads), "")


def read_head_commit(root: Path) -> str:
    """The commit that ``HEAD`` of the repository at ``root`` means.

    Empty where there is no repository or no commit yet, and where its refs are kept in a way that
    only git can read (reftable). See gitrepository-layout(5).
    """
    folder = _find_git_folder(root)
    head = _read_text(folder / "HEAD")
    if not head.startswith(_REF_PREFIX):
        return _parse_commit(head)
    name = head.removeprefix(_REF_PREFIX)
    # Of several worktrees of a repository, each has its HEAD, and all share the branches.
    shared = folder / (_read_text(folder / "commondir") or ".")
    return _parse_commit(_read_text(shared / name)) or _find_packed_ref(
        _read_text(shared / "packed-refs"), name
    )


def is_tracked(folder: Path, workspace: Workspace) -> bool:
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
        index = (_find_git_folder(root) / "index").read_bytes()
    except OSError:
        return False
    if path == root:
        return True
    below = re.escape(os.fsencode(f"{path.relative_to(root)}/"))
    return any(_is_path_start(index, found.start()) for found in re.finditer(below, index))


def _is_path_start(index: bytes, at: int) -> bool:
    """Whether it is the first byte of a tracked path, not of a part: the length stands before it.

    With none to three bytes between them; see gitformat-index(5).
    """
    length = min(index.find(b"\0", at) - at, _PATH_LENGTH_MASK)
    return any(
        int.from_bytes(index[start : start + 2]) & _PATH_LENGTH_MASK == length
        for start in range(at - 5, at - 1)
    )


def _find_git_folder(root: Path) -> Path:
    """``.git``, which in a worktree and in a submodule is a file that names the folder."""
    path = root / ".git"
    if is_file(path) and (named := _read_text(path)).startswith(_GITDIR_PREFIX):
        return root / named.removeprefix(_GITDIR_PREFIX)
    return path


def _find_packed_ref(refs: str, name: str) -> str:
    lines = (line.partition(" ") for line in refs.splitlines())
    return next((_parse_commit(commit) for commit, _, found in lines if found == name), "")


def _parse_commit(text: str) -> str:
    return text if COMMIT_HASH.match(text) else ""


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
