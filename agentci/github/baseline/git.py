"""What git says of the user's repository: where it left its main branch, and what came before."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentci._util.git_files import COMMIT_HASH
from agentci.errors import EvaluatorError, UnreachableError
from agentci.execution.executor_api import Executor
from agentci.model.requests import LOCAL_EXECUTOR
from agentci.runner.services import Services

MAX_SECONDS: Final = 20.0
# Where the main branch may be found, the likeliest first.
MAIN_BRANCHES: Final = ("origin/HEAD", "origin/main", "origin/master", "main", "master")

_PASSED_VARIABLES: Final = ("PATH", "HOME", "XDG_CONFIG_HOME")
# Nothing is fetched for it, nothing is written, and no watcher of files is started.
_GIT_VARIABLES: Final = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}
_GIT: Final = ("git", "-c", "core.fsmonitor=false")


class GitRepository:
    """The repository at ``root``; everything raises ``UnreachableError`` where git cannot be run.

    Args:
        variables: the environment, of which git gets what it needs to find its own settings.
    """

    def __init__(self, root: Path, executor: Executor, variables: Mapping[str, str]) -> None:
        self._root = root
        self._executor = executor
        own = {name: variables[name] for name in _PASSED_VARIABLES if name in variables}
        self._environment = {"PATH": os.defpath, **own, **_GIT_VARIABLES}

    def find_merge_base_with_main(self, commit: str) -> str:
        """The last commit that ``commit`` and the main branch share; empty where there is none."""
        for branch in MAIN_BRANCHES:
            found = self._run_git("merge-base", commit, branch)
            if COMMIT_HASH.match(found):
                return found
        return ""

    def history(self, commit: str, most: int) -> tuple[str, ...]:
        """``commit`` and what its branch was at before, the newest first; at most ``most``."""
        found = self._run_git("rev-list", "--first-parent", f"--max-count={most}", commit)
        return tuple(found.split())

    def has_changes(self) -> bool:
        """Whether a file that git keeps is not as it was committed."""
        return self._run_git("status", "--porcelain", "--untracked-files=no") != ""

    def _run_git(self, *arguments: str) -> str:
        """What git prints; empty where it says no."""
        try:
            response = self._executor.run(
                (*_GIT, *arguments),
                stdin=b"",
                timeout_seconds=MAX_SECONDS,
                cwd=self._root,
                environment=self._environment,
            )
        except EvaluatorError as error:
            raise UnreachableError(f"git {error}") from None
        return response.stdout.decode("utf-8", "replace").strip() if response.exit_code == 0 else ""


def open_git_repository(services: Services) -> GitRepository:
    """The repository of the workspace."""
    return GitRepository(
        services.workspace.root, services.executors[LOCAL_EXECUTOR], services.variables
    )
