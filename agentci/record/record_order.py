"""What to record, and what receives it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from agentci.record.case_file import NO_CASE, RecordCase
from agentci.record.exchanges import ExchangeLog
from agentci.record.otlp_receiver import OtlpReceiver
from agentci.record.printed_answer import AnswerSource
from agentci.record.redaction import RecordingRedactor
from agentci.record.replay import ReplayedCase, ReplayingProxy

INPUT_PLACE: Final = "{input}"
INPUT_NAME: Final = INPUT_PLACE.strip("{}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOrder:
    """What to record.

    Attributes:
        command: program and arguments; ``{input}`` stands for the input of a case.
        cases: one process each; without a file, one unnamed case.
        environ: the environment of the command.
        redactor: removes keys.
        recorded: requests to answer from an earlier recording, by file name of the case; None to
            call the models.
        answers: what the answer is, by id of a case. By default it is what the command prints if
            that is the model's answer, and else the model's, with a warning if it prints another.
        fallback: whether requests that are not in that recording go to the models.
        shares_terminal: whether a single command without an input keeps stdin and the terminal.
        is_injected: whether code is injected that sends the spans of installed instrumentation.
        report: prints a line of progress.
        is_stopped: whether a signal has interrupted the recording.
        timeout: seconds after which the command of a case is stopped; None for no limit.
    """

    command: tuple[str, ...]
    cases: tuple[RecordCase, ...] = (NO_CASE,)
    jobs: int = 1
    environ: Mapping[str, str] = field(repr=False)
    redactor: RecordingRedactor
    recorded: Mapping[str, ReplayedCase] | None = None
    answers: Mapping[str, AnswerSource] = field(default_factory=dict)
    fallback: bool = False
    shares_terminal: bool = True
    is_injected: bool = True
    report: Callable[[str], None]
    is_stopped: Callable[[], bool]
    timeout: float | None = None


class RecordingSources(NamedTuple):
    """What receives model calls and telemetry."""

    log: ExchangeLog
    exported: OtlpReceiver
    injected: OtlpReceiver
    replay: ReplayingProxy | None

    def list_cases(self) -> list[str]:
        """Return the cases that requests named."""
        missed = self.replay.misses if self.replay else ()
        return list(dict.fromkeys([*self.log.list_cases(), *self.injected.list_cases(), *missed]))
