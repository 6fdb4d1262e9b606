"""What git says of the user's repository: where it left its main branch, and what came before."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError, UnreachableError
from agentci.execution.executor import Executor
from agentci.github.event import COMMIT
from agentci.model.requests import LOCAL
from agentci.runner.services import World

MAX_SECONDS: Final = 20.0
# Where the main branch may be found, the likeliest first.
MAIN_BRANCHES: Final = ("origin/HEAD", "origin/main", "origin/master", "main", "master")

_NAMES: Final = ("PATH", "HOME", "XDG_CONFIG_HOME")
# Nothing is fetched for it, nothing is written, and no watcher of files is started.
_SETTINGS: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
_GIT: Final = ("git", "-c", "core.fsmonitor=false")


class Repository:
    """The repository at ``root``; everything raises ``UnreachableError`` where git cannot be run.

    Args:
        variables: the environment, of which git gets what it needs to find its own settings.
    """

    def __init__(self, root: Path, executor: Executor, variables: Mapping[str, str]) -> None:
        self._root = root
        self._executor = executor
        own = {name: variables[name] for name in _NAMES if name in variables}
        self._environment = {"PATH": os.defpath, **own, **_SETTINGS}

    def left_main_at(self, commit: str) -> str:
        """The last commit that ``commit`` and the main branch share; empty where there is none."""
        for branch in MAIN_BRANCHES:
            found = self._ask("merge-base", commit, branch)
            if COMMIT.match(found):
                return found
        return ""

    def history(self, commit: str, most: int) -> tuple[str, ...]:
        """``commit`` and what its branch was at before, the newest first; at most ``most``."""
        found = self._ask("rev-list", "--first-parent", f"--max-count={most}", commit)
        return tuple(found.split())

    def is_changed(self) -> bool:
        """Whether a file that git keeps is not as it was committed."""
        return self._ask("status", "--porcelain", "--untracked-files=no") != ""

    def _ask(self, *arguments: str) -> str:
        """What git prints; empty where it says no."""
        try:
            reply = self._executor.run(
                (*_GIT, *arguments),
                stdin=b"",
                timeout_seconds=MAX_SECONDS,
                cwd=self._root,
                environment=self._environment,
            )
        except EvaluatorError as error:
            raise UnreachableError(f"git {error}") from None
        return reply.stdout.decode("utf-8", "replace").strip() if reply.exit_code == 0 else ""


def repository_of(world: World) -> Repository:
    """The repository of the workspace."""
    return Repository(world.workspace.root, world.executors[LOCAL], world.variables)
