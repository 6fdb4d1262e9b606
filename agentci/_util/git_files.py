"""What is checked out, read from git's files: no process is started for it."""

import re
from pathlib import Path
from typing import Final

from agentci._util.workspace import Workspace, is_file

# SHA-1 or SHA-256; all zeros stand for no commit, as where a push makes a branch.
COMMIT_HASH: Final = re.compile(r"(?!0+\Z)(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")

MAX_BYTES: Final = 16 * 1024**2

_GITDIR_PREFIX: Final = "gitdir: "
_REF_PREFIX: Final = "ref: "


def find_head_commit(workspace: Workspace) -> str:
    """The commit that is checked out; empty where none is known.

    That of the workspace, else of the folder in it that the working directory is in: a workflow
    may check out there.
    """
    folder = find_repository_folder(workspace)
    return "" if folder is None else read_head_commit(folder)


def find_repository_folder(workspace: Workspace) -> Path | None:
    """The folder whose commit ``find_head_commit`` returns; None where none is known."""
    above = (workspace.cwd, *workspace.cwd.parents)
    folders = (each for each in reversed(above) if each.is_relative_to(workspace.root))
    return next(filter(read_head_commit, folders), None)


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
