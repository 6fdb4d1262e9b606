"""Everything that running checks needs, in one value; tests pass their own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from agentci._util.workspace import Workspace
from agentci.errors import InterruptionError
from agentci.execution.registry import Executors
from agentci.remote.programs import ProgramTable
from agentci.remote.run_sources import Sources

if TYPE_CHECKING:
    from agentci.judges.budget import Budget
    from agentci.judges.embeddings import EmbeddingComparer
    from agentci.judges.evals_api_client import EvalsApiClient, OfflineEvalsApiClient
    from agentci.judges.judge import Judge
    from agentci.runner.response_cache.cache import ResponseCache
    from agentci.runner.transcripts import TranscriptLog


class Interruption:
    """Whether somebody asked the run to end: set by a signal, looked at between checks.

    Without a lock, because a second signal may come in the middle of the first one's handler.

    Attributes:
        is_immediate_allowed: what is being done may be broken off: nothing would be lost.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self.is_immediate_allowed = True

    def request_stop(self, signal_number: int) -> None:
        """End the run as soon as that loses nothing."""
        self.signal_number = signal_number

    def is_requested(self) -> bool:
        """True from the first signal on."""
        return self.signal_number is not None

    def raise_if_allowed(self) -> None:
        """Leave what is being done, once.

        Raises:
            InterruptionError: it may be left.
        """
        if self.is_immediate_allowed and self.signal_number is not None:
            self.is_immediate_allowed = False
            raise InterruptionError(self.signal_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What running checks needs.

    Attributes:
        executors: by the names that configs use.
        child_environment: all that evaluators' programs see of the environment.
        variables: the environment without the action's inputs, for what a config names of it.
        installer_environment: all that installers of packages see of it.
        search_path: folders in which runtimes look for interpreters, as in ``PATH``.
        sources: where remote evaluators come from.
        cache_folder: for what is fetched, where the user names no other.
        ready_programs: the programs that are ready to run.
        judges: that ask models, by whose budget it is.
        embedding_clients: that ask for embeddings, likewise.
        remote_grading: asks services to grade; None where nobody wants that.
        budgets: of the judges.
        cached_responses: what they replied in earlier runs; None where that is of no interest.
        transcript_log: takes down what evaluators are sent and what comes back; None for nothing.
        err: the stream for progress and warnings.
        clock: seconds from any fixed point on.
        processors: how many this process may use.
    """

    workspace: Workspace
    executors: Executors
    child_environment: Mapping[str, str]
    installer_environment: Mapping[str, str]
    search_path: str
    sources: Sources
    cache_folder: Path
    err: TextIO
    clock: Callable[[], float]
    processors: int
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    ready_programs: ProgramTable = field(default_factory=ProgramTable)
    judges: "Mapping[str, Judge]" = field(default_factory=dict)
    embedding_clients: "Mapping[str, EmbeddingComparer]" = field(default_factory=dict)
    remote_grading: "EvalsApiClient | OfflineEvalsApiClient | None" = None
    budgets: "Mapping[str, Budget]" = field(default_factory=dict)
    cached_responses: "ResponseCache | None" = None
    transcript_log: "TranscriptLog | None" = None
    interruption: Interruption = field(default_factory=Interruption)
