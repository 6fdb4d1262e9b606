"""A judge: calls a language model and combines the verdicts of several samples."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from statistics import fmean, median
from typing import Final, NoReturn, Protocol

from msgspec import Struct

from agentci._util.text.format import format_count
from agentci.errors import EvaluatorError, SkippedError, UncachedResponseError
from agentci.evaluators.prompts import make_repair_question, make_second_question
from agentci.judges.providers import NoVerdictError, QuotedVerdictError, UnreadableVerdictError
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

REPLAY_ONLY_CAUSE: Final = "`replay: only`"
OFFLINE_CAUSE: Final = "`--offline`"


class JudgedResponse(Struct, frozen=True, kw_only=True):
    """A verdict and the response it was parsed from, new or cached."""

    verdict: Verdict
    response: ModelResponse
    is_cached: bool = False


class JudgeResponseCache(Protocol):
    """The cached responses to one prompt, by sample number from 0."""

    def lock(self, number: int) -> AbstractContextManager[object]:
        """Prevent other threads and processes from requesting the same response."""

    def find(self, number: int) -> ModelResponse | None:
        """Return a cached response; None if there is none."""

    def store(self, number: int, response: ModelResponse) -> None:
        """Cache a response with a verdict for later runs."""

    def record(self, response: ModelResponse) -> None:
        """Record a response for the report, with or without a verdict."""


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

    def ask(self, prompt: JudgePrompt, settings: ModelSettings, *, until: float) -> NoReturn:
        """Refuse to call a model: raise UncachedResponseError."""
        del prompt, settings, until
        raise make_uncached_error(OFFLINE_CAUSE)

    def embed(self, request: CompareEmbeddings, *, until: float) -> NoReturn:
        """Refuse to request embeddings: raise UncachedResponseError."""
        del request, until
        raise make_uncached_error(OFFLINE_CAUSE)


def make_uncached_error(cause: str) -> UncachedResponseError:
    """Create the error of a missing cached response; ``cause`` is what forbids calling a model."""
    return UncachedResponseError(f"no cached response for this prompt, and {cause} calls no model")


VERDICT_SECONDS: Final = 180.0
NO_RESPONSE_CACHE: Final = NoJudgeResponseCache()


class ModelClient(Protocol):
    """Calls models; thread-safe."""

    def ask(self, prompt: JudgePrompt, settings: ModelSettings, *, until: float) -> ModelResponse:
        """Call a model once; a truncated response is returned, too.

        Args:
            until: deadline, by the clock of the judge.

        Raises:
            EvaluatorError: there is no response.
        """


class Judge:
    """Executes ``AskModel``; thread-safe.

    Args:
        clients: by provider.
        clock: seconds from any fixed point.
        verdict_seconds: time limit for one verdict.
    """

    def __init__(
        self,
        clients: Mapping[str, ModelClient],
        *,
        clock: Callable[[], float],
        verdict_seconds: float = VERDICT_SECONDS,
    ) -> None:
        self._clients = clients
        self._clock = clock
        self._verdict_seconds = verdict_seconds

    def evaluate(
        self, request: AskModel, cache: JudgeResponseCache = NO_RESPONSE_CACHE
    ) -> AggregateVerdict:
        """Request samples until further ones cannot change the result.

        Args:
            cache: cached responses, used before the model is called.

        Raises:
            EvaluatorError: a service could not be called, or fewer than half of the samples have a
                verdict.
            SkippedError: the model cannot be called in this run, as expected.
        """
        judge, schema = request.judge, request.prompt.schema
        if schema is None:
            raise TypeError("a prompt without a schema has no verdict")
        judged: list[JudgedResponse] = []
        failures: list[str] = []
        unavailable: Exception | None = None
        for left in range(judge.samples - 1, -1, -1):
            try:
                judged.append(self._get_judged_response(request, schema, cache, len(judged)))
            except NoVerdictError as error:
                failures.append(str(error))
            except (UncachedResponseError, SkippedError) as error:
                unavailable = error
                break
            if can_stop_sampling([each.verdict for each in judged], left, schema, judge.samples):
                break
        if len(judged) < count_required_verdicts(judge.samples):
            raise unavailable or EvaluatorError(_format_failures(failures, judge.samples))
        verdicts = tuple(each.verdict for each in judged)
        return AggregateVerdict(
            values=combine_verdicts(verdicts, schema, judge.aggregation),
            verdicts=verdicts,
            failures=tuple(failures),
            responses=tuple(each.response for each in judged),
            cached_responses=tuple(each.response for each in judged if each.is_cached),
        )

    def generate_text(
        self, prompt: JudgePrompt, settings: ModelSettings, *, seconds: float
    ) -> ModelResponse:
        """Return the text of a model, without parsing a verdict.

        Args:
            seconds: time limit; at most that of a verdict is used.

        Raises:
            EvaluatorError: there is no response, or it was truncated or refused.
        """
        until = self._clock() + min(seconds, self._verdict_seconds)
        response = self._ask_model(prompt, settings, until, NO_RESPONSE_CACHE)
        if response.ending != "complete":
            raise NoVerdictError(explain_incomplete_response(response))
        return response

    def _get_judged_response(
        self, request: AskModel, schema: VerdictSchema, cache: JudgeResponseCache, number: int
    ) -> JudgedResponse:
        with cache.lock(number):
            if (cached := cache.find(number)) is not None:
                cache.record(cached)
                with suppress(NoVerdictError):
                    return replace(_read_response(cached, request.prompt, schema), is_cached=True)
            if request.judge.replay == "only":
                raise make_uncached_error(REPLAY_ONLY_CAUSE)
            judged = self._ask_for_verdict(request.prompt, schema, request.judge.settings, cache)
            cache.store(number, judged.response)
            return judged

    def _ask_for_verdict(
        self,
        prompt: JudgePrompt,
        schema: VerdictSchema,
        settings: ModelSettings,
        cache: JudgeResponseCache,
    ) -> JudgedResponse:
        until = self._clock() + self._verdict_seconds
        response = self._ask_model(prompt, settings, until, cache)
        try:
            return _read_response(response, prompt, schema)
        except (QuotedVerdictError, UnreadableVerdictError) as error:
            if not response.text.strip():
                raise
            failure = error
        question = (
            make_second_question(prompt)
            if isinstance(failure, QuotedVerdictError)
            else make_repair_question(schema, response.text)
        )
        corrected = self._ask_model(question, settings, until, cache)
        try:
            return _read_response(corrected, prompt, schema)
        except NoVerdictError:
            raise NoVerdictError(f"{failure}; its correction contains none either") from None

    def _ask_model(
        self, prompt: JudgePrompt, settings: ModelSettings, until: float, cache: JudgeResponseCache
    ) -> ModelResponse:
        """Request a response; if it is truncated, retry once with twice the token limit."""
        client = self._clients[settings.provider]
        response = client.ask(prompt, settings, until=until)
        cache.record(response)
        if response.ending == "truncated":
            extended = replace(settings, output_tokens=2 * settings.output_tokens)
            response = client.ask(prompt, extended, until=until)
            cache.record(response)
        return response


def _read_response(
    response: ModelResponse, prompt: JudgePrompt, schema: VerdictSchema
) -> JudgedResponse:
    return JudgedResponse(verdict=parse_verdict(response, schema, prompt.user), response=response)


def count_required_verdicts(samples: int) -> int:
    """Return how many verdicts are needed: half of the samples, at least one."""
    return max(1, (samples + 1) // 2)


def can_stop_sampling(
    verdicts: Sequence[Verdict], left: int, schema: VerdictSchema, samples: int
) -> bool:
    """Whether ``left`` more samples cannot change the result."""
    missing = count_required_verdicts(samples) - len(verdicts)
    if missing > 0:
        return missing > left
    if schema.kind != "boolean":
        return False
    return all(
        len(votes) == len(verdicts) and _is_majority_fixed(votes, left)
        for votes in (_collect_values(verdicts, name) for name in schema.names)
    )


def combine_verdicts(
    verdicts: Sequence[Verdict], schema: VerdictSchema, aggregation: SampleAggregation
) -> Mapping[str, ScoreValue]:
    """Combine several verdicts: for booleans, the majority; a tie is False.

    Criteria with a score in fewer than half of the verdicts are left out.

    Raises:
        EvaluatorError: two labels are equally frequent.
    """
    given = {name: _collect_values(verdicts, name) for name in schema.names}
    return {
        name: _combine_values(values, aggregation)
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


def _combine_values(values: Sequence[ScoreValue], aggregation: SampleAggregation) -> ScoreValue:
    if isinstance(values[0], bool):
        return 2 * values.count(True) > len(values)
    if isinstance(values[0], str):
        [(label, most), *others] = Counter(values).most_common()
        if others and others[0][1] == most:
            raise EvaluatorError(f"the samples are tied: {label} and {others[0][0]}, {most} each")
        return label
    grades = [float(value) for value in values]
    return fmean(grades) if aggregation == "mean" else median(grades)


def _format_failures(failures: Sequence[str], samples: int) -> str:
    if samples == 1:
        return failures[0]
    reasons = "; ".join(dict.fromkeys(failures))
    return f"{len(failures)} of {format_count(samples, 'sample')} have no verdict: {reasons}"
