"""What the cache holds of remote evaluators."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class Key(Struct, frozen=True, kw_only=True):
    """What one evaluator is kept under; as in the completed program, with its commit."""

    source: str
    repository: str
    commit: str
    ref: str


class Stored(Struct, frozen=True, kw_only=True):
    """An evaluator on disk, every byte of it verified just now.

    Attributes:
        path: absolute path of the program's file.
        folder: absolute path of the folder that it was fetched with; holds nothing else.
        digests: sha256 in hexadecimal by path relative to the folder; in the order of the paths.
    """

    path: Path
    folder: Path
    digests: Mapping[str, str]
