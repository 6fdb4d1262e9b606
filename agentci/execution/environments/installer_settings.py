"""The user's settings of pip and uv, for installers that run in the sandbox with another home."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentci._util.workspace import ResolvedPath, Workspace, read_file
from agentci.errors import InputError

# Settings that all users of this machine may read.
SYSTEM_SETTINGS: Final = ("/etc/pip.conf", "/etc/xdg/pip", "/etc/uv")
PIP_SETTINGS: Final = "pip/pip.conf"
UV_SETTINGS: Final = "uv/uv.toml"
# The variable that names a file to use instead, and the file's path below ``.config``.
SETTINGS_VARIABLES: Final = {"PIP_CONFIG_FILE": PIP_SETTINGS, "UV_CONFIG_FILE": UV_SETTINGS}
MAX_BYTES: Final = 1024**2

HomeFiles = tuple[tuple[str, bytes], ...]


def make_private_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Make the environment of an installer whose home has the files of ``read_home_files``."""
    return {
        name: value
        for name, value in environment.items()
        if name not in SETTINGS_VARIABLES or value == os.devnull
    }


def find_settings(
    environment: Mapping[str, str], workspace: Workspace, *, with_netrc: bool
) -> dict[str, ResolvedPath]:
    """Find the files with the user's settings, by their path in a home; some may not exist.

    Without them, an installer would look up names in another index than the user means.

    Args:
        environment: the environment of installers, with ``HOME``.
        workspace: a link in it leads to no settings outside.
        with_netrc: whether the credentials in ``.netrc`` are included.
    """
    home = Path(environment.get("HOME") or "/nonexistent")
    folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    found = {
        f".config/{name}": Path(environment.get(variable) or folder / name)
        for variable, name in SETTINGS_VARIABLES.items()
    }
    if not environment.get("PIP_CONFIG_FILE"):
        found[".pip/pip.conf"] = home / ".pip/pip.conf"
    if with_netrc:
        found[".netrc"] = home / ".netrc"
    resolved = {name: workspace.find_given(path) for name, path in found.items()}
    return {name: path for name, path in resolved.items() if path is not None}


def read_home_files(settings: Mapping[str, ResolvedPath]) -> HomeFiles:
    """Read the files of ``find_settings`` that exist."""
    return tuple(_read_files(settings))


def _read_files(settings: Mapping[str, ResolvedPath]) -> Iterator[tuple[str, bytes]]:
    for name, path in settings.items():
        with suppress(InputError):
            yield name, read_file(path, name=name, limit_bytes=MAX_BYTES)


def find_local_sources(
    environment: Mapping[str, str], home_files: Iterable[tuple[str, bytes]]
) -> tuple[Path, ...]:
    """Return the files and folders on this machine that the user's settings name.

    These are indexes, folders of packages and certificates.

    Args:
        environment: the environment of installers.
        home_files: files from outside of the workspace; a pull request can change the others.
    """
    texts = (
        *(value for name, value in environment.items() if name.startswith(("PIP_", "UV_", "SSL_"))),
        *(content.decode("utf-8", "replace") for name, content in home_files if name != ".netrc"),
    )
    words = (word for text in texts for word in re.split(r"[\s,;='\"\[\]]+", text))
    paths = (word.removeprefix("file://") for word in (*words, *SYSTEM_SETTINGS))
    return tuple(Path(path) for path in dict.fromkeys(paths) if _is_on_disk(path))


def _is_on_disk(path: str) -> bool:
    return path.startswith("/") and "\0" not in path and os.path.exists(path)  # noqa: PTH110 (raises no OSError)
