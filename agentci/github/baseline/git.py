"""The user's repository, read with git: earlier commits, and the files of a commit."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError, UnreachableError
from agentci.execution.environment_variables import make_own_environment
from agentci.execution.executor_api import Executor
from agentci.execution.pipes import MAX_OUTPUT_BYTES
from agentci.github.events import COMMIT_HASH, find_repository_folder
from agentci.model.requests import LOCAL_EXECUTOR, ProgramOutput
from agentci.remote.sources.github import GitTreeEntry
from agentci.runner.services import Services

MAX_SECONDS: Final = 20.0
# Names of the main branch, most likely first.
MAIN_BRANCHES: Final = ("origin/HEAD", "origin/main", "origin/master", "main", "master")

_PASSED_VARIABLES: Final = ("PATH", "HOME", "XDG_CONFIG_HOME")
# Git fetches nothing, writes nothing and starts no file monitor. Git before 2.44 does not know
# GIT_NO_LAZY_FETCH; in a partial clone, the list of allowed protocols stops it.
_GIT_VARIABLES: Final = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
_GIT_OPTIONS: Final = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")

# Contents are read in batches, since the output of a program is limited; larger files are read
# through a file of their own.
_BATCH_BYTES: Final = MAX_OUTPUT_BYTES // 2
_BATCH_FILES: Final = 10_000
_NO_SIZE: Final = "-"


class GitRepository:
    """The repository at ``root``; all methods raise ``UnreachableError`` if git cannot be run.

    Its data is in ``.git``, which no commit can contain. Otherwise git would also accept files of a
    commit that look like a bare repository, with forged contents.

    Args:
        variables: the environment, with ``PATH``; git gets only what it needs to find its
            settings.
    """

    def __init__(self, root: Path, executor: Executor, variables: Mapping[str, str]) -> None:
        self._root = root
        self._executor = executor
        own = {name: variables[name] for name in _PASSED_VARIABLES if name in variables}
        self._environment = {**own, **_GIT_VARIABLES}
        self._program = shutil.which("git", path=variables["PATH"])

    def find_merge_base_with_main(self, commit: str) -> str:
        """Return the merge base of ``commit`` and the main branch; empty without one."""
        return self.find_merge_base(commit, MAIN_BRANCHES)

    def find_merge_base(self, commit: str, others: Sequence[str]) -> str:
        """Return the merge base of ``commit`` and the first of ``others`` that has one, or ""."""
        for other in others:
            found = self._run_git("merge-base", commit, other)
            if COMMIT_HASH.match(found):
                return found
        return ""

    def history(self, commit: str, most: int) -> tuple[str, ...]:
        """Return ``commit`` and its first-parent ancestors, newest first, at most ``most``."""
        found = self._run_git("rev-list", "--first-parent", f"--max-count={most}", commit)
        return tuple(found.split())

    def has_changes(self) -> bool:
        """Whether a tracked file has uncommitted changes."""
        return self._run_git("status", "--porcelain", "--untracked-files=no") != ""

    def list_files(self, commit: str) -> tuple[GitTreeEntry, ...]:
        """Return all files, links and submodules of a commit.

        Raises:
            UnreachableError: the repository does not have the commit.
        """
        listed = self._read_objects("ls-tree", "-r", "-l", "-z", "--full-tree", commit).stdout
        return tuple(map(_parse_tree_line, listed.split(b"\0")[:-1]))

    def read_contents(
        self, entries: Sequence[GitTreeEntry], scratch: Path
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the object name and content of each entry as it is stored, without filters.

        Args:
            scratch: an empty folder for large contents.

        Raises:
            UnreachableError: the repository does not have one of them.
        """
        batch: list[GitTreeEntry] = []
        size = 0
        for entry in {entry.sha: entry for entry in entries}.values():
            if entry.size > _BATCH_BYTES:
                yield entry.sha, self._read_large_content(entry, scratch)
                continue
            if size + entry.size > _BATCH_BYTES or len(batch) == _BATCH_FILES:
                yield from self._read_batch(batch)
                batch, size = [], 0
            batch.append(entry)
            size += entry.size
        if batch:
            yield from self._read_batch(batch)

    def _read_batch(self, batch: Sequence[GitTreeEntry]) -> Iterator[tuple[str, bytes]]:
        names = "".join(f"{entry.sha}\n" for entry in batch)
        output = self._read_objects("cat-file", "--batch", stdin=names.encode()).stdout
        start = 0
        for entry in batch:
            header = f"{entry.sha} blob {entry.size}\n".encode()
            end = start + len(header) + entry.size
            if output[start : start + len(header)] != header or end >= len(output):
                raise UnreachableError(f"git has no content of {entry.path}")
            yield entry.sha, output[end - entry.size : end]
            start = end + 1

    def _read_large_content(self, entry: GitTreeEntry, scratch: Path) -> bytes:
        folder = self._read_objects("rev-parse", "--absolute-git-dir").stdout.rstrip(b"\n")
        places = (f"--git-dir={os.fsdecode(folder)}", f"--work-tree={scratch}")
        named = self._read_objects(*places, "unpack-file", entry.sha, cwd=scratch).stdout
        path = scratch / os.fsdecode(named.rstrip(b"\n"))
        try:
            content = path.read_bytes()
            path.unlink()
        except OSError as error:
            raise UnreachableError(f"{path} cannot be read: {error.strerror}") from None
        return content

    def _read_objects(
        self, *arguments: str, stdin: bytes = b"", cwd: Path | None = None
    ) -> ProgramOutput:
        """Run a command that reads objects and starts no program, so any owner is safe."""
        options = ("-c", f"safe.directory={self._root}", *arguments)
        response = self._execute(options, stdin=stdin, cwd=cwd or self._root)
        if response.exit_code != 0:
            reason = response.stderr.strip().rpartition("\n")[2].removeprefix("fatal: ")
            raise UnreachableError(f"git failed: {reason or f'exit code {response.exit_code}'}")
        return response

    def _run_git(self, *arguments: str) -> str:
        """Return what git prints; empty if it fails."""
        response = self._execute(arguments, cwd=self._root)
        return response.stdout.decode("utf-8", "replace").strip() if response.exit_code == 0 else ""

    def _execute(self, arguments: Sequence[str], *, cwd: Path, stdin: bytes = b"") -> ProgramOutput:
        if self._program is None:
            raise UnreachableError(
                "git could not be started: it is not on PATH outside the workspace"
            )
        if not os.path.lexists(self._root / ".git"):
            raise UnreachableError(f"there is no git repository in {self._root}")
        try:
            return self._executor.run(
                (self._program, *_GIT_OPTIONS, *arguments),
                stdin=stdin,
                timeout_seconds=MAX_SECONDS,
                cwd=cwd,
                environment=self._environment,
            )
        except EvaluatorError as error:
            raise UnreachableError(f"git {error}") from None


def _parse_tree_line(line: bytes) -> GitTreeEntry:
    """Parse ``MODE TYPE OBJECT SIZE<TAB>PATH`` of ``git ls-tree``; see git-ls-tree(1)."""
    facts, _, path = line.partition(b"\t")
    mode, _, sha, size = facts.decode().split()
    return GitTreeEntry(
        path=os.fsdecode(path), mode=mode, sha=sha, size=0 if size == _NO_SIZE else int(size)
    )


def open_git_repository(services: Services) -> GitRepository:
    """Open the repository of the workspace."""
    workspace = services.workspace
    return GitRepository(
        find_repository_folder(workspace) or workspace.root,
        services.executors[LOCAL_EXECUTOR],
        make_own_environment(services.child_environment, workspace),
    )
