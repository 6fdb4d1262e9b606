"""Exception classes, and the exit code or status that each one leads to.

AgentciError
├── InputError        the config, input or usage is invalid: lists every problem, exit 2
├── RecordingError    a recorded run cannot be read: a problem of that file only
├── FetchError        a remote evaluator cannot be fetched
│   ├── PermanentFetchError  not found, or not what the config names: a config error, exit 2
│   │   └── OfflineError      the network is needed, but the run is offline
│   └── UnreachableError  the network, a server or the disk failed: its checks are errored
├── EvaluatorError    an evaluator failed on one check: that check is errored, the rest go on
│   └── UncachedResponseError  a model is needed, but only cached responses may be used
├── GitHubError       a GitHub API request failed; does not fail the gate
└── SkippedError      a check cannot run in this environment, as expected: it is skipped
"""

from collections.abc import Sequence

from agentci.model.values import Place, Problem


class AgentciError(Exception):
    """Base class of all expected errors (those that are not bugs in agentci)."""


class InputError(AgentciError):
    """The input cannot be used; carries every problem found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def from_message(
        cls, message: str, *, place: Place | None = None, hint: str | None = None
    ) -> "InputError":
        """Create the error of a single problem."""
        return cls([Problem(message=message, place=place, hint=hint)])


class RecordingError(AgentciError):
    """A recorded run cannot be read; ``problem`` has the place and a hint."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


class FetchError(AgentciError):
    """A remote evaluator cannot be fetched; the message has no full stop.

    Attributes:
        hint: what the user can do, if known.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message)


class PermanentFetchError(FetchError):
    """The evaluator does not exist or is not what the config names; a retry would not help."""


class OfflineError(PermanentFetchError):
    """The evaluator has to be downloaded, but the run is offline."""


class UnreachableError(FetchError):
    """The network, a server or the disk failed; a later attempt may succeed."""


class EvaluatorError(AgentciError):
    """An evaluator crashed, timed out or broke the protocol; this is not a score of 0."""


class UncachedResponseError(EvaluatorError):
    """No cached response of a model exists, and the model may not be called."""


class GitHubError(AgentciError):
    """A GitHub API request failed; the message has no full stop.

    Attributes:
        hint: what the user can do, if known.
        status: the HTTP status; None without a response.
        denied: True if the token is valid but lacks the permission.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        status: int | None = None,
        denied: bool = False,
    ) -> None:
        self.hint = hint
        self.status = status
        self.denied = denied
        super().__init__(message)


class SkippedError(AgentciError):
    """A check cannot run in this environment, as expected: it is skipped, for the reason given."""


class InterruptionError(BaseException):
    """Stop at once after a signal; a BaseException, so that error handlers do not catch it."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(signal_number)
