"""The history of the user's repository: merge base with the main branch, earlier commits."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentci._util.git_files import COMMIT_HASH
from agentci.errors import EvaluatorError, UnreachableError
from agentci.execution.environment_variables import make_own_environment
from agentci.execution.executor_api import Executor
from agentci.model.requests import LOCAL_EXECUTOR
from agentci.runner.services import Services

MAX_SECONDS: Final = 20.0
# Names of the main branch, most likely first.
MAIN_BRANCHES: Final = ("origin/HEAD", "origin/main", "origin/master", "main", "master")

_PASSED_VARIABLES: Final = ("PATH", "HOME", "XDG_CONFIG_HOME")
# Git fetches nothing, writes nothing and starts no file monitor.
_GIT_VARIABLES: Final = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}
_GIT_OPTIONS: Final = ("-c", "core.fsmonitor=false")


class GitRepository:
    """The repository at ``root``; all methods raise ``UnreachableError`` if git cannot be run.

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
        for branch in MAIN_BRANCHES:
            found = self._run_git("merge-base", commit, branch)
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

    def _run_git(self, *arguments: str) -> str:
        """Return what git prints; empty if it fails."""
        if self._program is None:
            raise UnreachableError(
                "git could not be started: it is not on PATH outside of the workspace"
            )
        try:
            response = self._executor.run(
                (self._program, *_GIT_OPTIONS, *arguments),
                stdin=b"",
                timeout_seconds=MAX_SECONDS,
                cwd=self._root,
                environment=self._environment,
            )
        except EvaluatorError as error:
            raise UnreachableError(f"git {error}") from None
        return response.stdout.decode("utf-8", "replace").strip() if response.exit_code == 0 else ""


def open_git_repository(services: Services) -> GitRepository:
    """Open the repository of the workspace."""
    return GitRepository(
        services.workspace.root,
        services.executors[LOCAL_EXECUTOR],
        make_own_environment(services.child_environment, services.workspace),
    )
