"""A judge: calls a language model and combines the verdicts of several samples."""

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
    """A verdict and the response it was parsed from, new or cached."""

    verdict: Verdict
    response: ModelResponse
    is_cached: bool = False


class JudgeResponseCache(Protocol):
    """The cached responses to one prompt, by sample number from 0."""

    def lock(self, number: int) -> AbstractContextManager[object]:
        """Prevent other threads and processes from requesting the same response."""
        ...

    def find(self, number: int) -> ModelResponse | None:
        """Return a cached response; None if there is none."""
        ...

    def store(self, number: int, response: ModelResponse) -> None:
        """Cache a response with a verdict for later runs."""
        ...

    def record(self, response: ModelResponse) -> None:
        """Record a response for the report, with or without a verdict."""
        ...


class NoJudgeResponseCache:
    """A cache that is always empty."""

    def lock(self, number: int) -> AbstractContextManager[object]:
        """Return without waiting."""
        del number
        return nullcontext()

    def find(self, number: int) -> None:
        """Return None."""

    def store(self, number: int, response: ModelResponse) -> None:
        """Do nothing."""

    def record(self, response: ModelResponse) -> None:
        """Do nothing."""


class OfflineModelClient:
    """Client for offline runs: calls no model."""

    def ask(self, question: JudgePrompt, settings: ModelSettings, *, until: float) -> NoReturn:
        """Refuse to call a model.

        Raises:
            UncachedResponseError: always.
        """
        del question, settings, until
        raise make_unrecorded_error(OFFLINE_CAUSE)

    def embed(self, request: CompareEmbeddings, *, until: float) -> NoReturn:
        """Refuse to request embeddings.

        Raises:
            UncachedResponseError: always.
        """
        del request, until
        raise make_unrecorded_error(OFFLINE_CAUSE)


def make_unrecorded_error(why: str) -> UncachedResponseError:
    """Create the error of a missing cached response; ``why`` says why no model may be called."""
    return UncachedResponseError(
        f"no reply to this question is recorded, and {why} no model is asked"
    )


VERDICT_SECONDS: Final = 180.0
NO_RESPONSE_CACHE: Final = NoJudgeResponseCache()


class ModelClient(Protocol):
    """Calls models; thread-safe."""

    def ask(self, question: JudgePrompt, settings: ModelSettings, *, until: float) -> ModelResponse:
        """Call a model once; a truncated response is returned, too.

        Args:
            until: deadline, by the clock of the judge.

        Raises:
            EvaluatorError: there is no response.
        """
        ...


class Judge:
    """Executes ``AskModel``; thread-safe.

    Args:
        askers: clients by provider.
        clock: seconds from any fixed point.
        verdict_seconds: time limit for one verdict.
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
        """Request samples until further ones cannot change the result.

        Args:
            records: cached responses, used before the model is called.

        Raises:
            EvaluatorError: a service could not be called, or fewer than half of the samples have a
                verdict.
            SkippedError: the model cannot be called in this run, as expected.
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
        """Return the text of a model, without parsing a verdict.

        Args:
            seconds: time limit; at most that of a verdict is used.

        Raises:
            EvaluatorError: there is no response, or it was truncated or refused.
        """
        until = self._clock() + min(seconds, self._verdict_seconds)
        response = self._ask_model(question, settings, until, NO_RESPONSE_CACHE)
        if response.ending != "complete":
            raise NoVerdictError(explain_incomplete_response(response))
        return response

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
        response = self._ask_model(question, settings, until, records)
        try:
            return JudgedResponse(verdict=parse_verdict(response, form), response=response)
        except UnreadableVerdictError as error:
            if not response.text.strip():
                raise
            mended = self._ask_model(
                make_repair_question(form, response.text), settings, until, records
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
        """Request a response; if it is truncated, retry once with twice the token limit."""
        asker = self._clients[settings.provider]
        response = asker.ask(question, settings, until=until)
        records.record(response)
        if response.ending == "truncated":
            roomy = replace(settings, output_tokens=2 * settings.output_tokens)
            response = asker.ask(question, roomy, until=until)
            records.record(response)
        return response


def count_required_verdicts(samples: int) -> int:
    """Return how many verdicts are needed: half of the samples, at least one."""
    return max(1, (samples + 1) // 2)


def can_stop_sampling(
    verdicts: Sequence[Verdict], left: int, form: VerdictSchema, samples: int
) -> bool:
    """Whether ``left`` more samples cannot change the result."""
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
    """Combine several verdicts: for booleans, the majority; a tie is False.

    Criteria with a score in fewer than half of the verdicts are left out.

    Raises:
        EvaluatorError: two labels are equally frequent.
    """
    given = {name: _collect_values(verdicts, name) for name in form.names}
    return {
        name: _combine_values(values, combining)
        for name, values in given.items()
        if len(values) >= count_required_verdicts(len(verdicts))
    }


def _collect_values(verdicts: Sequence[Verdict], name: str) -> list[ScoreValue]:
    """List the scores that the verdicts have for ``name``."""
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
