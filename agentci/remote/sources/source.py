"""Protocol of sources of remote evaluators, and the context that sources get."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from agentci._util.http import HttpGetter
from agentci.model.program import CatalogEntry, ProgramSnapshot, RemoteProgram


def parse_host(address: str) -> str:
    """Return the host and port of an address as written; "" if it is invalid."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def format_host(address: str) -> str:
    """Return the host and port of an address without user name and password."""
    return parse_host(address).rpartition("@")[2]


# Limits of one evaluator: programs and documentation, no models or data sets.
MAX_FILES: Final = 200
MAX_FILE_BYTES: Final = 5 * 1024**2
MAX_TOTAL_BYTES: Final = 20 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """Settings and services that sources get from the run.

    Attributes:
        workspace: root of the user's files; paths in configs are already resolved.
        repository: replaces the community's repository, from ``AGENTEVALS_EVALUATOR_REPO``.
        branch: replaces the community's branch, from ``AGENTEVALS_EVALUATOR_BRANCH``.
        tokens: by the host that each token may be sent to (``api.github.com``).
        github_api: base URL without a trailing ``/``.
        github_raw: base URL without a trailing ``/``; "" if files are read through the API.
    """

    http: HttpGetter
    workspace: Path
    repository: str = ""
    branch: str = ""
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    github_api: str = "https://api.github.com"
    github_raw: str = "https://raw.githubusercontent.com"


class Source(Protocol):
    """A kind of place that provides evaluators; several threads call its methods."""

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """Fill in defaults for what the config omits, without network; lock files name the result.

        Raises:
            PermanentFetchError: the program's fields are invalid for this source.
        """

    def resolve(self, program: RemoteProgram) -> str:
        """Return the commit that a completed program's revision currently points to.

        A source without commits returns a text that identifies the content, such as a digest.

        Raises:
            FetchError: it does not exist or cannot be resolved.
        """

    def pin(self, program: RemoteProgram, commit: str) -> str | None:
        """Return what to write into the config entry to pin ``commit`` (``rev: 8c1f...``).

        None if the entry is already pinned.
        """

    def fetch(
        self, program: RemoteProgram, commit: str, *, paths: Sequence[str]
    ) -> ProgramSnapshot:
        """Fetch the program and its folder.

        Args:
            paths: the files to fetch, relative to the folder; empty to list the folder first.

        Raises:
            FetchError: it does not exist, is too large, or cannot be fetched.
        """

    def catalogue(self) -> Sequence[CatalogEntry]:
        """Return all evaluators that the source offers.

        Raises:
            FetchError: they cannot be fetched.
        """


SourceFactory = Callable[[SourceContext], Source]
