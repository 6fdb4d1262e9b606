"""Has models judge: asks, reads, has a reply mended once, and counts the votes of samples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Final, Protocol

from agentci.errors import EvaluatorError
from agentci.judges.base import NoVerdictError
from agentci.judges.prompts import repair
from agentci.judges.verdicts import UnreadableError, read_verdict
from agentci.model.judging import AskModel, ModelReply, ModelSettings, Question, Ruling, Verdict
from agentci.text.words import count

VERDICT_SECONDS: Final = 180.0


class Asker(Protocol):
    """Asks models, from any number of threads."""

    def ask(self, question: Question, settings: ModelSettings, *, until: float) -> ModelReply:
        """Ask once; a reply that ended early is a reply.

        Args:
            until: when nobody waits for it any more, in seconds from the same point as the clock
                of the judge.

        Raises:
            EvaluatorError: there is no reply.
        """
        ...


class Judge:
    """Carries out ``AskModel``, from any number of threads.

    Args:
        askers: by provider.
        clock: seconds from any fixed point on.
    """

    def __init__(
        self,
        askers: Mapping[str, Asker],
        *,
        clock: Callable[[], float],
        verdict_seconds: float = VERDICT_SECONDS,
    ) -> None:
        self._askers = askers
        self._clock = clock
        self._verdict_seconds = verdict_seconds

    def rule(self, request: AskModel) -> Ruling:
        """Ask until the verdicts that are left would change nothing.

        Raises:
            EvaluatorError: a service could not be asked, or fewer than half of the samples gave a
                verdict.
        """
        verdicts: list[Verdict] = []
        failures: list[str] = []
        for left in range(request.samples - 1, -1, -1):
            try:
                verdicts.append(self._verdict(request.question, request.settings))
            except NoVerdictError as error:
                failures.append(str(error))
            if is_settled(verdicts, left, request):
                break
        if len(verdicts) < enough(request.samples):
            raise EvaluatorError(_in_words(failures, request.samples))
        return Ruling(
            value=combined([verdict.value for verdict in verdicts], request),
            verdicts=tuple(verdicts),
            failures=tuple(failures),
        )

    def _verdict(self, question: Question, settings: ModelSettings) -> Verdict:
        until = self._clock() + self._verdict_seconds
        reply = self._reply(question, settings, until)
        try:
            return read_verdict(reply, question.form)
        except UnreadableError as error:
            if not reply.text.strip():
                raise
            mended = self._reply(repair(question, reply.text), settings, until)
            try:
                return read_verdict(mended, question.form)
            except NoVerdictError:
                raise NoVerdictError(f"{error}, nor does what it made of that") from None

    def _reply(self, question: Question, settings: ModelSettings, until: float) -> ModelReply:
        """A reply; where it was cut off, another one with twice the room."""
        asker = self._askers[settings.provider]
        reply = asker.ask(question, settings, until=until)
        if reply.ending != "truncated":
            return reply
        roomy = replace(settings, output_tokens=2 * settings.output_tokens)
        return asker.ask(question, roomy, until=until)


def enough(samples: int) -> int:
    """How many verdicts there have to be: half of them, and one in any case."""
    return max(1, (samples + 1) // 2)


def is_settled(verdicts: Sequence[Verdict], left: int, request: AskModel) -> bool:
    """Whether ``left`` more samples would change nothing, whatever they say."""
    lacking = enough(request.samples) - len(verdicts)
    if lacking > 0:
        return lacking > left
    if request.question.form.kind == "number":
        return False
    passes = sum(verdict.value is True for verdict in verdicts)
    fails = len(verdicts) - passes
    return passes > fails + left or passes + left <= fails


def combined(values: Sequence[bool | float], request: AskModel) -> bool | float:
    """What several values come to: of votes the majority, and a tie is none."""
    if request.question.form.kind == "boolean":
        return 2 * sum(values) > len(values)
    return fmean(values) if request.combining == "mean" else median(values)


def _in_words(failures: Sequence[str], samples: int) -> str:
    if samples == 1:
        return failures[0]
    said = "; ".join(dict.fromkeys(failures))
    return f"{len(failures)} of {count(samples, 'sample')} gave no verdict: {said}"
