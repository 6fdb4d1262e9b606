"""Everything that running checks needs, in one value; tests pass their own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from agentci._util.files import SpooledChunks
from agentci._util.workspace import ResolvedPath, Workspace
from agentci.config.variables import ConfigVariables
from agentci.errors import EvaluatorError, InterruptionError
from agentci.execution.registry import Executors
from agentci.model.program import Agent
from agentci.remote.programs import ProgramTable, Sources

if TYPE_CHECKING:
    from agentci.judges.budget import Budget
    from agentci.judges.client import EmbeddingComparer
    from agentci.judges.evals_api_client import EvalsApiClient, OfflineEvalsApiClient
    from agentci.judges.judge import Judge
    from agentci.runner.evaluator_calls import EvaluatorCallLog
    from agentci.runner.response_cache.cache import ResponseCache


# Contents are read only for reports, so that most of them may be in a file.
CONTENT_MEMORY_BYTES: Final = 1024**2
AGENT_OFFLINE: Final = "agents do not run with --offline"
SANDBOX_HINT: Final = "record the output, or set `sandbox: true` in the `target`"


class Interruption:
    """A request to end the run: set by a signal handler, checked between checks.

    It has no lock, since a second signal may interrupt the handler of the first.

    Attributes:
        is_immediate_allowed: the current step can be aborted without losing results.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self.is_immediate_allowed = True

    def request_stop(self, signal_number: int) -> None:
        """Request the end of the run."""
        self.signal_number = signal_number

    def is_requested(self) -> bool:
        """Whether a signal was received."""
        return self.signal_number is not None

    def raise_if_allowed(self) -> None:
        """Abort the current step if that is allowed; at most once.

        Raises:
            InterruptionError: a signal was received.
        """
        if self.is_immediate_allowed and self.signal_number is not None:
            self.is_immediate_allowed = False
            raise InterruptionError(self.signal_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What running checks needs.

    Attributes:
        executors: by the names that configs use.
        child_environment: the environment variables of evaluators' programs.
        variables: the environment variables that configs may name, and the secrets of the run.
        evaluator_caches: folders that entries may open to their programs, read-only, by the
            variables in which these find them.
        installer_environment: the environment variables of package installers.
        search_path: folders outside the workspace with interpreters and installers, as in
            ``PATH``.
        sources: where remote evaluators come from.
        cache_folder: the default folder of the cache.
        repository: identifies the repository whose responses and baselines are in the cache.
        find_agent_refusal: finds why agents of eval files run only in the sandbox; empty if also
            outside.
        ready_programs: the programs that were fetched or installed.
        judges: by budget id.
        embedding_clients: by budget id.
        remote_grading: the client of grading services; None if no evaluator needs it.
        budgets: calls, tokens and costs of the judges, by budget id.
        cached_responses: the response cache; None if it is not used.
        call_log: records the inputs and outputs of evaluators; None if nothing is recorded.
        run_contents: the contents of recorded runs, for reports.
        err: the stream for progress and warnings.
        clock: a monotonic time in seconds.
        processors: number of processors that this process can use.
    """

    workspace: Workspace
    executors: Executors
    child_environment: Mapping[str, str]
    installer_environment: Mapping[str, str]
    search_path: str
    sources: Sources
    cache_folder: Path
    repository: str
    err: TextIO
    clock: Callable[[], float]
    processors: int
    variables: ConfigVariables = field(default_factory=lambda: ConfigVariables({}), repr=False)
    evaluator_caches: Mapping[str, ResolvedPath] = field(default_factory=dict)
    find_agent_refusal: Callable[[], str] = str
    ready_programs: ProgramTable = field(default_factory=ProgramTable)
    judges: "Mapping[str, Judge]" = field(default_factory=dict)
    embedding_clients: "Mapping[str, EmbeddingComparer]" = field(default_factory=dict)
    remote_grading: "EvalsApiClient | OfflineEvalsApiClient | None" = None
    budgets: "Mapping[str, Budget]" = field(default_factory=dict)
    cached_responses: "ResponseCache | None" = None
    call_log: "EvaluatorCallLog | None" = None
    run_contents: SpooledChunks = field(
        default_factory=lambda: SpooledChunks(memory_bytes=CONTENT_MEMORY_BYTES)
    )
    interruption: Interruption = field(default_factory=Interruption)

    def explain_skipped_agent(self, agent: Agent, *, offline: bool) -> str:
        """Why the agent of an eval file does not run; empty if it does."""
        if offline:
            return AGENT_OFFLINE
        refusal = "" if agent.sandboxed else self.find_agent_refusal()
        return refusal and f"{refusal}; {SANDBOX_HINT}"

    def select_caches(self, names: Sequence[str]) -> Mapping[str, ResolvedPath]:
        """The folders with models that an entry names, by variable.

        Raises:
            EvaluatorError: the workflow does not open one of them.
        """
        for name in names:
            if name not in self.evaluator_caches:
                raise EvaluatorError(f"{name} is not in evaluator-cache")
        return {name: self.evaluator_caches[name] for name in names}
