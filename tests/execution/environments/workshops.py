"""Workshops and environments as a run would have them, for tests and for processes of theirs."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agentci.execution.environments.installer_runner import Workshop
from agentci.execution.environments.store import Environments
from agentci.execution.environments.variables import installer_environment
from agentci.execution.local import LocalExecutor

TOOLS: Final = ("uv", "pip")


def workshop_with(tool: str, *, index: str, timeout_seconds: float = 50) -> Workshop:
    """A workshop whose only installer is ``tool``, and whose only index is ``index``."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index,
        "PIP_RETRIES": "0",
        "UV_HTTP_RETRIES": "0",
        "UV_NO_CONFIG": "1",
    }
    return Workshop(
        executor=LocalExecutor(),
        environment=installer_environment(environ),
        search_path=str(Path(sys.executable).parent) if tool == "uv" else "",
        timeout_seconds=timeout_seconds,
    )


def environments_at(
    folder: Path,
    workshop: Workshop,
    *,
    tell: Callable[[str], None] = lambda _: None,
    offline: bool = False,
) -> Environments:
    """Environments in a cache, as a run would have them."""
    return Environments(folder, workshop=workshop, tell=tell, offline=offline)
