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
    # A relative one would lie in the repository, where its files would be taken for ours.
    caches, home = (Path(environ.get(name, "")) for name in ("XDG_CACHE_HOME", "HOME"))
    if caches.is_absolute():
        return caches / "agentci"
    return (home if home.is_absolute() else Path("/")) / ".cache" / "agentci"
