"""Installer runners and environment stores as in a run, for tests and their child processes."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agentci._util.workspace import find_workspace
from agentci.execution.environment_variables import make_installer_environment
from agentci.execution.environments import EnvironmentStore
from agentci.execution.installers import InstallerRunner
from agentci.execution.local import LocalExecutor
from tests.helpers.waiting import NO_TIMEOUT_SECONDS

TOOLS: Final = ("uv", "pip")


def make_installer_runner(
    tool: str, *, index: str, home: str = "", timeout_seconds: float = NO_TIMEOUT_SECONDS
) -> InstallerRunner:
    """An installer runner with ``tool`` as its only installer and ``index`` as its only index.

    With ``home``, the settings there name the index.
    """
    source = {"PIP_INDEX_URL": index, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": home or os.environ["HOME"],
        "PIP_RETRIES": "0",
        "UV_HTTP_RETRIES": "0",
        **({} if home else source),
    }
    return InstallerRunner(
        executor=LocalExecutor(),
        environment=make_installer_environment(environ),
        search_path=str(Path(sys.executable).parent) if tool == "uv" else "",
        workspace=find_workspace(Path.cwd()),
        timeout_seconds=timeout_seconds,
    )


def make_environment_store(
    folder: Path,
    installer_runner: InstallerRunner,
    *,
    notify: Callable[[str], None] = lambda _: None,
    offline: bool = False,
) -> EnvironmentStore:
    """An environment store in a cache folder, as in a run."""
    return EnvironmentStore(
        folder, installer_runner=installer_runner, notify=notify, offline=offline
    )
