"""What can go wrong, and who is told.

AgentciError
├── InputError        config, input or usage is wrong: every problem is listed, exit 2
├── RecordingError    one recording cannot be read: a problem of that file alone
├── FetchError        a remote evaluator cannot be had
│   ├── RefusedError      it is not there, or not what was asked for: its config is to blame, exit 2
│   │   └── OfflineError      it would take a network, and none is to be used
│   └── UnreachableError  the network, a server or the disk is: its checks are errored
├── EvaluatorError    one check could not be judged: it is errored, the others go on
│   └── UnrecordedError   it would take a model, and none is to be asked
├── GitHubError       GitHub's API did not do what it was asked for, which shuts no gate
└── SkippedError      nobody is there who could judge one check, and that is nobody's fault
"""

from collections.abc import Sequence

from agentci.model.problem import Place, Problem


class AgentciError(Exception):
    """Base of all errors that are not bugs of ours."""


class InputError(AgentciError):
    """The input cannot be used; carries every problem that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def from_message(
        cls, message: str, *, place: Place | None = None, hint: str | None = None
    ) -> "InputError":
        """Make the error of a single problem."""
        return cls([Problem(message=message, place=place, hint=hint)])


class RecordingError(AgentciError):
    """A recording cannot be read; ``problem`` says where and what to do."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


class FetchError(AgentciError):
    """A remote evaluator cannot be had; says why, without a full stop.

    Attributes:
        hint: a way out, where one is known.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message)


class PermanentFetchError(FetchError):
    """It is not there, or it is not what was asked for; trying again would not help."""


class OfflineError(PermanentFetchError):
    """It would take a network, and none is to be used."""


class UnreachableError(FetchError):
    """The network, a server or the disk does not let us have it; it may be there another time."""


class EvaluatorError(AgentciError):
    """An evaluator could not judge: it crashed, hung or spoke off protocol; it did not score 0."""


class UncachedResponseError(EvaluatorError):
    """A model's reply is not among those of earlier runs, and none is to be asked."""


class GitHubError(AgentciError):
    """GitHub's API did not do what it was asked for; says why, without a full stop.

    Attributes:
        hint: a way out, where one is known.
        status: what it answered; None where it answered nothing.
        denied: whether the token is valid, and not allowed to do that.
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
    """One check cannot be judged here, as everybody knew: it is skipped, and this says why."""


class InterruptionError(BaseException):
    """Whatever is being done is to end at once; no error, so that nothing takes it for one."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(signal_number)
