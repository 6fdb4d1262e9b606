"""Where the cache lies when the user names no place for it."""

from collections.abc import Mapping
from pathlib import Path

from agentci.github.context import GitHub


def default_folder(environ: Mapping[str, str], github: GitHub) -> Path:
    """In a workflow a folder of the workspace, else the user's.

    The workspace is the one folder that steps before and after a container action reach under the
    same name, whatever the runner's version; ``actions/cache`` can keep it.
    """
    if github.workspace is not None:
        return github.workspace / ".agentci" / "cache"
    home = environ.get("XDG_CACHE_HOME", "")
    base = Path(home) if Path(home).is_absolute() else Path(environ.get("HOME", "/")) / ".cache"
    return base / "agentci"
