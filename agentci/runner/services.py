"""Everything outside that a run may touch, in one value: tests hand in another."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from agentci._util.workspace import Workspace
from agentci.errors import InterruptionError
from agentci.execution.registry import Executors
from agentci.github.api.client import GitHubApi
from agentci.github.context import GitHub
from agentci.remote.programs import Shelf
from agentci.remote.run_sources import Sources

if TYPE_CHECKING:
    from agentci.judges.budget import Budget
    from agentci.judges.embedding_client import Comparer
    from agentci.judges.evals_api.grading import NoGrading, RemoteGrading
    from agentci.judges.judge import Judge
    from agentci.runner.keep_transcripts import ExchangeLog
    from agentci.runner.response_cache.cache import ReplyCache


class Interruption:
    """Whether somebody asked the run to end: set by a signal, looked at between checks.

    Without a lock, because a second signal may come in the middle of the first one's handler.

    Attributes:
        at_once: what is being done may be broken off: nothing would be lost.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self.at_once = True

    def ask(self, signal_number: int) -> None:
        """End the run as soon as that loses nothing."""
        self.signal_number = signal_number

    def asked(self) -> bool:
        """True from the first signal on."""
        return self.signal_number is not None

    def break_off(self) -> None:
        """Leave what is being done, once.

        Raises:
            InterruptionError: it may be left.
        """
        if self.at_once and self.signal_number is not None:
            self.at_once = False
            raise InterruptionError(self.signal_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is outside of the program.

    Attributes:
        executors: by the names that configs use.
        child_environment: all that evaluators' programs see of the environment.
        variables: the environment without the action's inputs, for what a config names of it.
        installer_environment: all that installers of packages see of it.
        search_path: folders in which runtimes look for interpreters, as in ``PATH``.
        sources: where remote evaluators come from.
        cache_folder: for what is fetched, where the user names no other.
        shelf: the programs that are ready to run.
        judges: that ask models, by whose budget it is.
        comparers: that ask for embeddings, likewise.
        remote_grading: asks services to grade; None where nobody wants that.
        budgets: of the judges.
        replies: what they replied in earlier runs; None where that is of no interest.
        github_api: of the repository that the workflow belongs to.
        exchanges: takes down what evaluators are sent and what comes back; None for nothing.
        out: for results; err: for progress.
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
    github: GitHub
    github_api: GitHubApi
    out: TextIO
    err: TextIO
    clock: Callable[[], float]
    processors: int
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    shelf: Shelf = field(default_factory=Shelf)
    judges: "Mapping[str, Judge]" = field(default_factory=dict)
    comparers: "Mapping[str, Comparer]" = field(default_factory=dict)
    remote_grading: "RemoteGrading | NoGrading | None" = None
    budgets: "Mapping[str, Budget]" = field(default_factory=dict)
    replies: "ReplyCache | None" = None
    exchanges: "ExchangeLog | None" = None
    interruption: Interruption = field(default_factory=Interruption)
