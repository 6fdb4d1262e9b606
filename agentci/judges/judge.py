"""A judge: asks a language model, and combines the verdicts of several samples."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from statistics import fmean, median
from typing import Final, NoReturn, Protocol

from msgspec import Struct

from agentci._util.text.format import format_count
from agentci.errors import EvaluatorError, SkippedError, UncachedResponseError
from agentci.evaluators.prompts.questions import make_repair_question
from agentci.judges.provider import NoVerdictError, UnreadableVerdictError
from agentci.judges.verdicts import explain_incomplete_response, parse_verdict
from agentci.model.judges import (
    AggregateVerdict,
    AskModel,
    JudgePrompt,
    ModelResponse,
    ModelSettings,
    SampleAggregation,
    ScoreValue,
    Verdict,
    VerdictSchema,
)
from agentci.model.requests import CompareEmbeddings
from agentci.model.values import replace

REPLAY_ONLY_CAUSE: Final = "with `replay: only`"
OFFLINE_CAUSE: Final = "with --offline"


class JudgedResponse(Struct, frozen=True, kw_only=True):
    """A verdict, and the reply that gave it, in this run or an earlier one."""

    verdict: Verdict
    response: ModelResponse
    is_cached: bool = False


class JudgeResponseCache(Protocol):
    """The replies to one question that gave verdicts, counted from 0."""

    def lock(self, number: int) -> AbstractContextManager[object]:
        """Have nobody else look for the same one until it is kept."""
        ...

    def find(self, number: int) -> ModelResponse | None:
        """One that is known already; None where there is none."""
        ...

    def store(self, number: int, reply: ModelResponse) -> None:
        """Take one for later runs."""
        ...

    def record(self, reply: ModelResponse) -> None:
        """Take note of any reply, whether it gives a verdict or not."""
        ...


class NoJudgeResponseCache:
    """Nothing is known, and nothing is kept."""

    def lock(self, number: int) -> AbstractContextManager[object]:
        """Wait for nobody."""
        del number
        return nullcontext()

    def find(self, number: int) -> None:
        """Nothing."""

    def store(self, number: int, reply: ModelResponse) -> None:
        """Do nothing."""

    def record(self, reply: ModelResponse) -> None:
        """Do nothing."""


class OfflineModelClient:
    """Asks nobody."""

    def ask(self, question: JudgePrompt, settings: ModelSettings, *, until: float) -> NoReturn:
        """Say that nothing is asked.

        Raises:
            UnrecordedError: always.
        """
        del question, settings, until
        raise make_unrecorded_error(OFFLINE_CAUSE)

    def embed(self, request: CompareEmbeddings, *, until: float) -> NoReturn:
        """Say the same.

        Raises:
            UnrecordedError: always.
        """
        del request, until
        raise make_unrecorded_error(OFFLINE_CAUSE)


def make_unrecorded_error(why: str) -> UncachedResponseError:
    """What is wrong where a reply is missing and nobody may be asked, and on whose say."""
    return UncachedResponseError(
        f"no reply to this question is recorded, and {why} no model is asked"
    )


VERDICT_SECONDS: Final = 180.0
NO_RESPONSE_CACHE: Final = NoJudgeResponseCache()


class ModelClient(Protocol):
    """Asks models, from any number of threads."""

    def ask(self, question: JudgePrompt, settings: ModelSettings, *, until: float) -> ModelResponse:
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
        askers: Mapping[str, ModelClient],
        *,
        clock: Callable[[], float],
        verdict_seconds: float = VERDICT_SECONDS,
    ) -> None:
        self._clients = askers
        self._clock = clock
        self._verdict_seconds = verdict_seconds

    def evaluate(
        self, request: AskModel, records: JudgeResponseCache = NO_RESPONSE_CACHE
    ) -> AggregateVerdict:
        """Ask until the verdicts that are left would change nothing.

        Args:
            records: taken before anybody is asked.

        Raises:
            EvaluatorError: a service could not be asked, or fewer than half of the samples gave a
                verdict.
            SkippedError: nobody can be asked here.
        """
        panel, form = request.judge, request.prompt.schema
        if form is None:
            raise TypeError("a question without a form has no verdict")
        told: list[JudgedResponse] = []
        failures: list[str] = []
        silence: Exception | None = None
        for left in range(panel.samples - 1, -1, -1):
            try:
                told.append(self._get_judged_response(request, form, records, len(told)))
            except NoVerdictError as error:
                failures.append(str(error))
            except (UncachedResponseError, SkippedError) as error:
                silence = error
                break
            if can_stop_sampling([each.verdict for each in told], left, form, panel.samples):
                break
        if len(told) < count_required_verdicts(panel.samples):
            raise silence or EvaluatorError(_format_failures(failures, panel.samples))
        verdicts = tuple(each.verdict for each in told)
        return AggregateVerdict(
            values=combine_verdicts(verdicts, form, panel.aggregation),
            verdicts=verdicts,
            failures=tuple(failures),
            responses=tuple(each.response for each in told),
            cached_responses=tuple(each.response for each in told if each.is_cached),
        )

    def generate_text(
        self, question: JudgePrompt, settings: ModelSettings, *, seconds: float
    ) -> ModelResponse:
        """What a model says, whatever its form.

        Args:
            seconds: for how long somebody waits for it; never longer than for a verdict.

        Raises:
            EvaluatorError: there is no reply, or it was cut off or withheld.
        """
        until = self._clock() + min(seconds, self._verdict_seconds)
        reply = self._ask_model(question, settings, until, NO_RESPONSE_CACHE)
        if reply.ending != "complete":
            raise NoVerdictError(explain_incomplete_response(reply))
        return reply

    def _get_judged_response(
        self, request: AskModel, form: VerdictSchema, records: JudgeResponseCache, number: int
    ) -> JudgedResponse:
        with records.lock(number):
            if (known := records.find(number)) is not None:
                records.record(known)
                with suppress(NoVerdictError):
                    return JudgedResponse(
                        verdict=parse_verdict(known, form), response=known, is_cached=True
                    )
            if request.judge.replay == "only":
                raise make_unrecorded_error(REPLAY_ONLY_CAUSE)
            told = self._ask_for_verdict(request.prompt, form, request.judge.settings, records)
            records.store(number, told.response)
            return told

    def _ask_for_verdict(
        self,
        question: JudgePrompt,
        form: VerdictSchema,
        settings: ModelSettings,
        records: JudgeResponseCache,
    ) -> JudgedResponse:
        until = self._clock() + self._verdict_seconds
        reply = self._ask_model(question, settings, until, records)
        try:
            return JudgedResponse(verdict=parse_verdict(reply, form), response=reply)
        except UnreadableVerdictError as error:
            if not reply.text.strip():
                raise
            mended = self._ask_model(
                make_repair_question(form, reply.text), settings, until, records
            )
            try:
                return JudgedResponse(verdict=parse_verdict(mended, form), response=mended)
            except NoVerdictError:
                retold = "and what it wrote instead gives none either"
                raise NoVerdictError(f"{error}, {retold}") from None

    def _ask_model(
        self,
        question: JudgePrompt,
        settings: ModelSettings,
        until: float,
        records: JudgeResponseCache,
    ) -> ModelResponse:
        """A reply; where it was cut off, another one with twice the room."""
        asker = self._clients[settings.provider]
        reply = asker.ask(question, settings, until=until)
        records.record(reply)
        if reply.ending == "truncated":
            roomy = replace(settings, output_tokens=2 * settings.output_tokens)
            reply = asker.ask(question, roomy, until=until)
            records.record(reply)
        return reply


def count_required_verdicts(samples: int) -> int:
    """How many verdicts there have to be: half of them, and one in any case."""
    return max(1, (samples + 1) // 2)


def can_stop_sampling(
    verdicts: Sequence[Verdict], left: int, form: VerdictSchema, samples: int
) -> bool:
    """Whether ``left`` more samples would change nothing, whatever they say."""
    lacking = count_required_verdicts(samples) - len(verdicts)
    if lacking > 0:
        return lacking > left
    if form.kind != "boolean":
        return False
    return all(
        len(votes) == len(verdicts) and _is_majority_fixed(votes, left)
        for votes in (_collect_values(verdicts, name) for name in form.names)
    )


def combine_verdicts(
    verdicts: Sequence[Verdict], form: VerdictSchema, combining: SampleAggregation
) -> Mapping[str, ScoreValue]:
    """What several verdicts come to: of votes the majority, and a tie is none.

    What fewer than half of them have a mark for is left out.

    Raises:
        EvaluatorError: as many are for one label as for another.
    """
    given = {name: _collect_values(verdicts, name) for name in form.names}
    return {
        name: _combine_values(values, combining)
        for name, values in given.items()
        if len(values) >= count_required_verdicts(len(verdicts))
    }


def _collect_values(verdicts: Sequence[Verdict], name: str) -> list[ScoreValue]:
    """The marks that there are for one thing."""
    return [verdict.scores[name].value for verdict in verdicts if name in verdict.scores]


def _is_majority_fixed(votes: Sequence[ScoreValue], left: int) -> bool:
    passes = votes.count(True)
    fails = len(votes) - passes
    return passes > fails + left or passes + left <= fails


def _combine_values(values: Sequence[ScoreValue], combining: SampleAggregation) -> ScoreValue:
    if isinstance(values[0], bool):
        return 2 * values.count(True) > len(values)
    if isinstance(values[0], str):
        return _find_most_frequent(values)
    grades = [float(value) for value in values]
    return fmean(grades) if combining == "mean" else median(grades)


def _find_most_frequent(labels: Sequence[ScoreValue]) -> ScoreValue:
    [(label, most), *others] = Counter(labels).most_common()
    if others and others[0][1] == most:
        raise EvaluatorError(f"the samples are split: {label} and {others[0][0]}, {most} each")
    return label


def _format_failures(failures: Sequence[str], samples: int) -> str:
    if samples == 1:
        return failures[0]
    said = "; ".join(dict.fromkeys(failures))
    return f"{len(failures)} of {format_count(samples, 'sample')} gave no verdict: {said}"
