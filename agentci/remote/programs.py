"""Programs of a run: their sources with the variables of these, and where each is on disk."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

from agentci._util.http import HttpGetter, OfflineHttp
from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.errors import EvaluatorError, PermanentFetchError
from agentci.model.program import LocalProgram, Program
from agentci.model.values import replace
from agentci.remote.sources.source import Source, SourceContext, parse_host

INPUT_NAME: Final = "github-token"
TOKEN_INPUT_VARIABLE: Final = f"INPUT_{INPUT_NAME.upper()}"


def read_token_input(environ: Mapping[str, str]) -> str:
    """Return the token from the input; empty if there is none."""
    return environ.get(TOKEN_INPUT_VARIABLE, "").strip()


GITHUB_API: Final = "https://api.github.com"
GITHUB_RAW: Final = "https://raw.githubusercontent.com"
EVALUATORS_TOKEN_VARIABLE: Final = "AGENTEVALS_GITHUB_TOKEN"  # noqa: S105 (a name)


def read_source_context(
    environ: Mapping[str, str], *, http: HttpGetter, workspace: Path
) -> SourceContext:
    """Read the environment variables for sources.

    ``AGENTCI_GITHUB_API_URL`` and ``AGENTCI_GITHUB_RAW_URL`` replace GitHub's hosts. Without them,
    the runner's ``GITHUB_API_URL`` locates GitHub Enterprise. GitHub Enterprise has no raw host
    that accepts tokens, so files are read through the API there.
    """
    runners = environ.get("GITHUB_API_URL", "").rstrip("/")
    api = environ.get("AGENTCI_GITHUB_API_URL", "").rstrip("/") or runners or GITHUB_API
    raw = environ.get("AGENTCI_GITHUB_RAW_URL", "").rstrip("/")
    if not raw and api == GITHUB_API:
        raw = GITHUB_RAW
    token = environ.get(EVALUATORS_TOKEN_VARIABLE, "")
    if not token and runners in ("", api):
        # The job's token is sent only to the host that issued it.
        token = environ.get("GITHUB_TOKEN", "") or read_token_input(environ)
    hosts = {host for address in (api, raw) if (host := parse_host(address))}
    return SourceContext(
        http=http,
        workspace=workspace,
        repository=environ.get("AGENTEVALS_EVALUATOR_REPO", ""),
        branch=environ.get("AGENTEVALS_EVALUATOR_BRANCH", ""),
        tokens=dict.fromkeys(sorted(hosts), token) if token else {},
        github_api=api,
        github_raw=raw,
    )


class Sources:
    """Sources by the names that configs use; safe for concurrent threads."""

    def __init__(self, context: SourceContext) -> None:
        self._context = context
        self._made: dict[str, Source] = {}
        self._lock = threading.RLock()

    def get(self, name: str) -> Source:
        """Return the source ``name``.

        Raises:
            PermanentFetchError: it does not exist.
            InputError: the plugin that provides it is broken.
        """
        with self._lock:
            if name not in self._made:
                self._made[name] = self._make(name)
            return self._made[name]

    def get_all(self) -> Mapping[str, Source]:
        """Return built-in sources and those of plugins.

        Raises:
            InputError: a plugin is broken.
        """
        from agentci.remote.sources.registry import list_source_factories  # noqa: PLC0415 (most runs use none)

        return {name: self.get(name) for name in list_source_factories()}

    def without_network(self) -> "Sources":
        """Return the same sources without network access."""
        return Sources(replace(self._context, http=OfflineHttp()))

    def for_workspace(self, workspace: Path) -> "Sources":
        """Return the same sources for the files of another folder, without network access."""
        return Sources(replace(self._context, http=OfflineHttp(), workspace=workspace))

    def _make(self, name: str) -> Source:
        from agentci.remote.sources.registry import SOURCES, find_source_factory  # noqa: PLC0415 (as in `get_all`)

        make = find_source_factory(name)
        if make is None:
            raise PermanentFetchError(
                f"unknown evaluator source {quote_name(name)}",
                hint=suggest_name(name, list(SOURCES)) or f"use {join_with_or(list(SOURCES))}",
            )
        return make(self._context)


class ReadyProgram(Struct, frozen=True, kw_only=True):
    """A program that can be run.

    Attributes:
        path: absolute path of its file.
        python: interpreter with its packages; None for agentci's own interpreter.
        tree: folder that was fetched with it, named by the digest of its content; None for a
            program in the workspace, whose files may change at any time.
    """

    path: Path
    python: str | None = None
    tree: Path | None = None


class UnavailableProgram(Struct, frozen=True, kw_only=True):
    """A program that cannot be run.

    Attributes:
        reason: predicate of a sentence whose subject is the program.
    """

    reason: str


ProgramAvailability: TypeAlias = ReadyProgram | UnavailableProgram


class ProgramTable(Struct, frozen=True, kw_only=True):
    """Lookup of prepared programs."""

    programs: Mapping[Program, ProgramAvailability] = field(default_factory=dict)

    def locate(self, program: Program) -> ReadyProgram:
        """Return the prepared ``program``; a local one needs no preparation.

        Raises:
            EvaluatorError: its preparation failed.
        """
        found = self.programs.get(program)
        if isinstance(found, UnavailableProgram):
            raise EvaluatorError(found.reason)
        if found is not None:
            return found
        if isinstance(program, LocalProgram):
            return ReadyProgram(path=Path(program.path))
        raise EvaluatorError(f"{program.ref} was not fetched")
