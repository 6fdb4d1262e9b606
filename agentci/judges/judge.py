"""Has models judge: asks, reads, has a reply mended once, and counts the votes of samples."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from statistics import fmean, median
from typing import Final, Protocol

from agentci._util.text.format import count
from agentci.errors import EvaluatorError, SkippedError, UnrecordedError
from agentci.evaluators.prompts.prompts import repair
from agentci.judges.provider import NoVerdictError, UnreadableError
from agentci.judges.replay import REPLAY_ONLY, NoRecords, Records, Told, unrecorded
from agentci.judges.verdicts import read_verdict, unfinished
from agentci.model.judging import AnyForm, AskModel, Combining, ModelReply, ModelSettings, Question
from agentci.model.ruling import Ruling, Value, Verdict
from agentci.model.values import replace

VERDICT_SECONDS: Final = 180.0
NO_RECORDS: Final = NoRecords()


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

    def rule(self, request: AskModel, records: Records = NO_RECORDS) -> Ruling:
        """Ask until the verdicts that are left would change nothing.

        Args:
            records: taken before anybody is asked.

        Raises:
            EvaluatorError: a service could not be asked, or fewer than half of the samples gave a
                verdict.
            SkippedError: nobody can be asked here.
        """
        panel, form = request.panel, request.question.form
        if form is None:
            raise TypeError("a question without a form has no verdict")
        told: list[Told] = []
        failures: list[str] = []
        silence: Exception | None = None
        for left in range(panel.samples - 1, -1, -1):
            try:
                told.append(self._told(request, form, records, len(told)))
            except NoVerdictError as error:
                failures.append(str(error))
            except (UnrecordedError, SkippedError) as error:
                silence = error
                break
            if is_settled([each.verdict for each in told], left, form, panel.samples):
                break
        if len(told) < enough(panel.samples):
            raise silence or EvaluatorError(_in_words(failures, panel.samples))
        verdicts = tuple(each.verdict for each in told)
        return Ruling(
            values=combined(verdicts, form, panel.combining),
            verdicts=verdicts,
            failures=tuple(failures),
            replies=tuple(each.reply for each in told),
            recorded=tuple(each.reply for each in told if each.is_recorded),
        )

    def text(self, question: Question, settings: ModelSettings, *, seconds: float) -> ModelReply:
        """What a model says, whatever its form.

        Args:
            seconds: for how long somebody waits for it; never longer than for a verdict.

        Raises:
            EvaluatorError: there is no reply, or it was cut off or withheld.
        """
        until = self._clock() + min(seconds, self._verdict_seconds)
        reply = self._reply(question, settings, until, NO_RECORDS)
        if reply.ending != "complete":
            raise NoVerdictError(unfinished(reply))
        return reply

    def _told(self, request: AskModel, form: AnyForm, records: Records, number: int) -> Told:
        with records.alone(number):
            if (known := records.find(number)) is not None:
                records.hear(known)
                with suppress(NoVerdictError):
                    return Told(verdict=read_verdict(known, form), reply=known, is_recorded=True)
            if request.panel.replay == "only":
                raise unrecorded(REPLAY_ONLY)
            told = self._verdict(request.question, form, request.panel.settings, records)
            records.keep(number, told.reply)
            return told

    def _verdict(
        self, question: Question, form: AnyForm, settings: ModelSettings, records: Records
    ) -> Told:
        until = self._clock() + self._verdict_seconds
        reply = self._reply(question, settings, until, records)
        try:
            return Told(verdict=read_verdict(reply, form), reply=reply)
        except UnreadableError as error:
            if not reply.text.strip():
                raise
            mended = self._reply(repair(form, reply.text), settings, until, records)
            try:
                return Told(verdict=read_verdict(mended, form), reply=mended)
            except NoVerdictError:
                retold = "and what it wrote instead gives none either"
                raise NoVerdictError(f"{error}, {retold}") from None

    def _reply(
        self, question: Question, settings: ModelSettings, until: float, records: Records
    ) -> ModelReply:
        """A reply; where it was cut off, another one with twice the room."""
        asker = self._askers[settings.provider]
        reply = asker.ask(question, settings, until=until)
        records.hear(reply)
        if reply.ending == "truncated":
            roomy = replace(settings, output_tokens=2 * settings.output_tokens)
            reply = asker.ask(question, roomy, until=until)
            records.hear(reply)
        return reply


def enough(samples: int) -> int:
    """How many verdicts there have to be: half of them, and one in any case."""
    return max(1, (samples + 1) // 2)


def is_settled(verdicts: Sequence[Verdict], left: int, form: AnyForm, samples: int) -> bool:
    """Whether ``left`` more samples would change nothing, whatever they say."""
    lacking = enough(samples) - len(verdicts)
    if lacking > 0:
        return lacking > left
    if form.kind != "boolean":
        return False
    return all(
        len(votes) == len(verdicts) and _is_decided(votes, left)
        for votes in (_given(verdicts, name) for name in form.names)
    )


def combined(
    verdicts: Sequence[Verdict], form: AnyForm, combining: Combining
) -> Mapping[str, Value]:
    """What several verdicts come to: of votes the majority, and a tie is none.

    What fewer than half of them have a mark for is left out.

    Raises:
        EvaluatorError: as many are for one label as for another.
    """
    given = {name: _given(verdicts, name) for name in form.names}
    return {
        name: _combined(values, combining)
        for name, values in given.items()
        if len(values) >= enough(len(verdicts))
    }


def _given(verdicts: Sequence[Verdict], name: str) -> list[Value]:
    """The marks that there are for one thing."""
    return [verdict.marks[name].value for verdict in verdicts if name in verdict.marks]


def _is_decided(votes: Sequence[Value], left: int) -> bool:
    passes = votes.count(True)
    fails = len(votes) - passes
    return passes > fails + left or passes + left <= fails


def _combined(values: Sequence[Value], combining: Combining) -> Value:
    if isinstance(values[0], bool):
        return 2 * values.count(True) > len(values)
    if isinstance(values[0], str):
        return _most_frequent(values)
    grades = [float(value) for value in values]
    return fmean(grades) if combining == "mean" else median(grades)


def _most_frequent(labels: Sequence[Value]) -> Value:
    [(label, most), *others] = Counter(labels).most_common()
    if others and others[0][1] == most:
        raise EvaluatorError(f"the samples are split: {label} and {others[0][0]}, {most} each")
    return label


def _in_words(failures: Sequence[str], samples: int) -> str:
    if samples == 1:
        return failures[0]
    said = "; ".join(dict.fromkeys(failures))
    return f"{len(failures)} of {count(samples, 'sample')} gave no verdict: {said}"
