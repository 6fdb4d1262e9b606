"""What a source of remote evaluators is, and what it knows of its environment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from agentci._util.http.interface import HttpGetter
from agentci.model.program import CatalogEntry, ProgramSnapshot, RemoteProgram


def parse_host(address: str) -> str:
    """The host of an address with its port, as it is written; empty where nobody can tell."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def format_host(address: str) -> str:
    """The host without the name and the password that an address may hold."""
    return parse_host(address).rpartition("@")[2]


# Of a whole evaluator: programs and the words around them, no models and no data.
MAX_FILES: Final = 200
MAX_FILE_BYTES: Final = 5 * 1024**2
MAX_TOTAL_BYTES: Final = 20 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """What sources know of the machine and of the user's environment.

    Attributes:
        workspace: the user's files; paths in configs are resolved by the time a source sees them.
        repository, branch: in place of the community's, from ``AGENTEVALS_EVALUATOR_REPO`` and
            ``AGENTEVALS_EVALUATOR_BRANCH``.
        tokens: by the host (``api.github.com``) that each may be sent to.
        github_api, github_raw: base addresses; without ``/`` at the end.
    """

    http: HttpGetter
    workspace: Path
    repository: str = ""
    branch: str = ""
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    github_api: str = "https://api.github.com"
    github_raw: str = "https://raw.githubusercontent.com"


class Source(Protocol):
    """Knows one kind of place; called from several threads at once."""

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """Fill in what the config left open; the result is what a lock file names.

        Raises:
            RefusedError: the source has no such place.
        """
        ...

    def resolve(self, program: RemoteProgram) -> str:
        """Find the commit that a completed program's revision means now.

        Where a source knows no commits, any text will do that always stands for the same content.

        Raises:
            FetchError: there is none, or it cannot be asked for.
        """
        ...

    def pin(self, program: RemoteProgram, commit: str) -> str | None:
        """What to write into its entry so that it means ``commit`` for good (``rev: 8c1f...``).

        None where it does already.
        """
        ...

    def fetch(
        self, program: RemoteProgram, commit: str, *, paths: Sequence[str]
    ) -> ProgramSnapshot:
        """Fetch the program and its folder.

        Args:
            paths: the files that there are in it, relative to the folder; empty where that is to
                be found out.

        Raises:
            FetchError: it is not there, is too large, or cannot be asked for.
        """
        ...

    def catalogue(self) -> Sequence[CatalogEntry]:
        """All evaluators that the source offers.

        Raises:
            FetchError: as above.
        """
        ...


SourceFactory = Callable[[SourceContext], Source]
