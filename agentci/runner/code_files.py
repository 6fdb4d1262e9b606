"""Read the files of evaluators for their digests."""

import hashlib
from pathlib import Path
from typing import Final

from agentci._util.workspace import ResolvedPath, Workspace, is_file, read_start, resolve_inside

MAX_FILE_BYTES: Final = 16 * 1024**2
DIGITS: Final = 16


class CodeFiles:
    """The files of evaluators, each read once.

    Only files of the workspace, and of the repository of a config outside of it, are read.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._contents: dict[ResolvedPath, bytes] = {}
        self._resolved: dict[tuple[Path, str | None], ResolvedPath | None] = {}

    def has(self, path: Path, home: str | None) -> bool:
        """Return whether ``path`` is a file that may be read.

        Args:
            home: absolute path of the repository of the config, if that is not the workspace.
        """
        return self._resolve(path, home) is not None

    def read(self, path: Path, home: str | None) -> bytes | None:
        """Read a file, up to ``MAX_FILE_BYTES``; None if it is missing or may not be read."""
        real = self._resolve(path, home)
        if real is None:
            return None
        if real not in self._contents:
            try:
                self._contents[real] = read_start(real, MAX_FILE_BYTES)
            except OSError:
                self._contents[real] = b""
        return self._contents[real]

    def _resolve(self, path: Path, home: str | None) -> ResolvedPath | None:
        key = (path, home)
        if key not in self._resolved:
            folders = (self._workspace.root, Path(home)) if home else (self._workspace.root,)
            self._resolved[key] = resolve_inside(path, folders) if is_file(path) else None
        return self._resolved[key]


def digest_bytes(data: bytes) -> str:
    """Compute the digest of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()[:DIGITS]
