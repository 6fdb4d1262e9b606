"""Clients for the models of a service: prompts and embeddings, charged to a budget."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Protocol

from msgspec import Struct
from pydantic import Field, StrictInt

from agentci._util.http import HttpResponse, RetryableError
from agentci.errors import EvaluatorError, FetchError
from agentci.evaluators.similarity import cosine_similarity
from agentci.judges import providers
from agentci.judges.budget import Budget, PendingCharge, compute_charge
from agentci.judges.judge import (
    NO_RESPONSE_CACHE,
    REPLAY_ONLY_CAUSE,
    VERDICT_SECONDS,
    JudgeResponseCache,
    make_uncached_error,
)
from agentci.judges.keys import ApiKey, ApiKeys
from agentci.judges.providers import (
    AZURE,
    OPENAI,
    PROVIDERS,
    InvalidJsonError,
    Provider,
    ProviderRequest,
    ResponseFormat,
    ServiceCapabilities,
    TokenLimitName,
)
from agentci.judges.transport import (
    OUTAGE_HINT,
    ApiErrorDetails,
    ServiceRequest,
    ServiceState,
    ServiceStates,
    Transport,
    find_retryable_error,
    format_api_error,
    format_api_error_with_advice,
    parse_api_error,
)
from agentci.model.judges import JudgePrompt, ModelResponse, ModelSettings
from agentci.model.requests import CompareEmbeddings, EmbeddingSimilarity
from agentci.model.values import replace


class EmbeddingClient(Protocol):
    """Requests embeddings; thread-safe."""

    def embed(self, request: CompareEmbeddings, *, until: float) -> ModelResponse:
        """Request the embeddings of two texts once; the text of the response is their cosine.

        Args:
            until: as for ``ModelClient.ask``.

        Raises:
            EvaluatorError: there are no comparable embeddings.
        """


class EmbeddingComparer:
    """Executes ``CompareEmbeddings``; thread-safe.

    Args:
        clock: seconds from any fixed point.
    """

    def __init__(self, client: EmbeddingClient, *, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock

    def compare(
        self, request: CompareEmbeddings, cache: JudgeResponseCache = NO_RESPONSE_CACHE
    ) -> EmbeddingSimilarity:
        """Compare two texts, from the cache if possible.

        Args:
            cache: cached responses, used before the service is called.

        Raises:
            EvaluatorError: there are no comparable embeddings.
            SkippedError: the service cannot be called in this run, as expected.
        """
        with cache.lock(0):
            cached = cache.find(0)
            if cached is not None and (value := parse_cosine(cached)) is not None:
                return EmbeddingSimilarity(cosine=value, response=cached, is_cached=True)
            if request.judge.replay == "only":
                raise make_uncached_error(REPLAY_ONLY_CAUSE)
            response = self._client.embed(request, until=self._clock() + VERDICT_SECONDS)
            cache.store(0, response)
            return EmbeddingSimilarity(cosine=float(response.text), response=response)


PATH: Final = "embeddings"
# URL functions of the providers with embeddings.
EMBEDDING_URLS: Final[Mapping[str, Callable[[ModelSettings, str], str]]] = {
    "openai": OPENAI.build_url,
    "azure": AZURE.build_url,
}


def build_request(texts: Sequence[str], settings: ModelSettings) -> providers.ProviderRequest:
    """Build the HTTP request."""
    return providers.ProviderRequest(
        url=EMBEDDING_URLS[settings.provider](settings, PATH),
        headers=providers.JSON_HEADERS,
        body=providers.encode_body({"model": settings.model, "input": [*texts]}),
    )


def parse_response(content: bytes) -> ModelResponse:
    """Parse the body of a successful response; the text of the result is the cosine.

    Raises:
        InvalidJsonError: the body is not JSON.
        EvaluatorError: it does not contain two comparable embeddings.
    """
    response = providers.parse_body(_EmbeddingsResponse, content)
    vectors = {each.index: each.embedding for each in response.data}
    if len(response.data) != len(vectors) or vectors.keys() != {0, 1}:
        raise EvaluatorError("the embeddings service did not return one vector per text")
    if len(vectors[0]) != len(vectors[1]):
        raise EvaluatorError("the embeddings service returned vectors of different lengths")
    try:
        value = cosine_similarity(vectors[0], vectors[1])
    except ValueError as error:
        raise EvaluatorError(f"the embeddings cannot be compared: {error}") from None
    return ModelResponse(
        text=repr(value),
        ending="complete",
        tokens_in=response.usage.prompt_tokens if response.usage else None,
        tokens_out=0,
    )


def parse_cosine(response: ModelResponse) -> float | None:
    """Parse the cosine; None if a cached response has none."""
    try:
        value = float(response.text)
    except ValueError:
        return None
    return value if -1 <= value <= 1 else None


class _Embedding(providers.ServiceModel):
    index: StrictInt
    embedding: Annotated[
        list[Annotated[float, Field(strict=True, allow_inf_nan=False)]], Field(min_length=1)
    ]


class _EmbeddingsUsage(providers.ServiceModel):
    prompt_tokens: providers.TokenCount


class _EmbeddingsResponse(providers.ServiceModel):
    data: list[_Embedding]
    usage: _EmbeddingsUsage | None = None


FALLBACK_STATUSES: Final = frozenset({400, 404, 422})
FORMAT_NAMES: Final = (
    *("response_format", "json_schema", "output_config", "output_format", "text.format"),
    *("responsejsonschema", "response_json_schema", "responsemimetype", "response_mime_type"),
)
# A limit that is too large is not a reason to try the other parameter name.
UNSUPPORTED_WORDS: Final = ("unsupported", "not supported", "unrecognized", "unknown", "extra")


def find_fallback(
    capabilities: ServiceCapabilities, details: ApiErrorDetails, formats: tuple[ResponseFormat, ...]
) -> ServiceCapabilities | None:
    """Find the capabilities to try next after an error of the service; None if there are none.

    Each fallback is used at most once, so that retries end.

    Args:
        formats: those of the provider, the strictest first.
    """
    if details.status not in FALLBACK_STATUSES:
        return None
    message = " ".join((details.param, details.message, *sorted(details.codes))).lower()
    steps = (
        _without_effort(capabilities, message),
        _without_temperature(capabilities, message),
        _with_other_token_limit(capabilities, message),
        _with_next_format(capabilities, message, formats),
    )
    return next((step for step in steps if step is not None), None)


def _without_effort(capabilities: ServiceCapabilities, message: str) -> ServiceCapabilities | None:
    if capabilities.sends_effort and "effort" in message:
        return replace(capabilities, sends_effort=False)
    return None


def _without_temperature(known: ServiceCapabilities, message: str) -> ServiceCapabilities | None:
    if known.sends_temperature and "temperature" in message:
        return replace(known, sends_temperature=False)
    return None


def _with_other_token_limit(
    capabilities: ServiceCapabilities, message: str
) -> ServiceCapabilities | None:
    if capabilities.has_switched_token_limit or capabilities.limit_parameter not in message:
        return None
    if not any(word in message for word in UNSUPPORTED_WORDS):
        return None
    other: TokenLimitName = (
        "max_tokens" if capabilities.limit_parameter != "max_tokens" else "max_completion_tokens"
    )
    return replace(capabilities, limit_parameter=other, has_switched_token_limit=True)


def _with_next_format(
    capabilities: ServiceCapabilities, message: str, formats: tuple[ResponseFormat, ...]
) -> ServiceCapabilities | None:
    left = formats[formats.index(capabilities.format) + 1 :]
    if left and any(name in message for name in FORMAT_NAMES):
        return replace(capabilities, format=left[0])
    return None


SUCCESSES: Final = range(200, 300)


class ApiRejectionError(Exception):
    """A service rejected a request and would reject it again."""

    def __init__(self, details: ApiErrorDetails, response: HttpResponse) -> None:
        self.details = details
        self.response = response
        # Without its message, which may quote a key.
        super().__init__(details.status)


class PreparedCall(Struct, frozen=True, kw_only=True):
    """A prompt with its provider, service state and key.

    Attributes:
        parse: parses the response, like ``Provider.parse_response``.
        until: deadline, by the clock of the transport.
    """

    prompt: JudgePrompt
    settings: ModelSettings
    provider: Provider
    parse: Callable[[bytes], ModelResponse]
    service_state: ServiceState
    key: ApiKey
    until: float


class ServiceClient:
    """Calls the models of services; thread-safe.

    Args:
        service_states: shared with other clients of the same services.
        now: seconds since 1970.
    """

    def __init__(
        self,
        transport: Transport,
        budget: Budget,
        *,
        keys: ApiKeys,
        service_states: ServiceStates | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._budget = budget
        self._keys = keys
        self._now = now
        self._service_states = service_states or ServiceStates()

    def ask(self, prompt: JudgePrompt, settings: ModelSettings, *, until: float) -> ModelResponse:
        """Call a model once, with the strictest response format that the service supports.

        Args:
            until: deadline, by the clock of the transport.

        Raises:
            EvaluatorError: there is no response, or no budget for one.
            SkippedError: no key is available in this run, as expected.
        """
        parse = PROVIDERS[settings.provider].parse_response
        call = self._prepare(prompt, settings, parse, until)
        capabilities = call.service_state.known_capabilities(
            settings.model
        ) or call.provider.initial_capabilities(settings)
        while True:
            provider_request = call.provider.build_request(prompt, settings, capabilities)
            try:
                response = call.key.redact_response(self._send(call, provider_request))
            except ApiRejectionError as error:
                if error.details.is_content_filtered:
                    return ModelResponse(text="", ending="refused", finish_reason="content_filter")
                capabilities = self._find_fallback(capabilities, error, call)
            except FetchError as error:
                raise EvaluatorError(_append_hint(error)) from None
            else:
                call.service_state.remember_capabilities(settings.model, capabilities)
                return response

    def embed(self, request: CompareEmbeddings, *, until: float) -> ModelResponse:
        """See ``EmbeddingClient``; it raises as ``ask`` does."""
        settings = request.judge.settings
        call = self._prepare(request.prompt, settings, parse_response, until)
        try:
            return self._send(call, build_request(request.texts, settings))
        except ApiRejectionError as error:
            raise EvaluatorError(_format_rejection(error, call)) from None
        except FetchError as error:
            raise EvaluatorError(_append_hint(error)) from None

    def _prepare(
        self,
        prompt: JudgePrompt,
        settings: ModelSettings,
        parse: Callable[[bytes], ModelResponse],
        until: float,
    ) -> PreparedCall:
        return PreparedCall(
            prompt=prompt,
            settings=settings,
            provider=PROVIDERS[settings.provider],
            parse=parse,
            service_state=self._service_states.get(settings),
            key=self._keys.get(settings, until=until),
            until=until,
        )

    def _send(self, call: PreparedCall, provider_request: ProviderRequest) -> ModelResponse:
        request = ServiceRequest(
            url=provider_request.url,
            headers={**provider_request.headers, **call.key.headers},
            content=provider_request.body,
            has_key=bool(call.key.secret),
            until=call.until,
        )

        def attempt(fetch: Callable[[], HttpResponse]) -> ModelResponse:
            with self._budget.reserve(
                self._budget.compute_max_charge(call.prompt, call.settings)
            ) as pending:
                return self._attempt(fetch, pending, call)

        return self._transport.send(request, call.service_state, attempt)

    def _attempt(
        self, fetch: Callable[[], HttpResponse], pending: PendingCharge, call: PreparedCall
    ) -> ModelResponse:
        """Make one attempt; charge for a lost response, but not for a refused request."""
        try:
            response = fetch()
        except RetryableError as failure:
            if not failure.arrived:
                pending.cancel()
            raise
        if response.status not in SUCCESSES:
            pending.cancel()
            self._raise_for_error(response, call)
        try:
            model_response = call.parse(response.content)
        except InvalidJsonError:
            raise RetryableError("the response is not JSON", hint=OUTAGE_HINT) from None
        pending.charge = compute_charge(call.prompt, call.settings, model_response)
        return model_response

    def _raise_for_error(self, response: HttpResponse, call: PreparedCall) -> None:
        """Raise the error that an unsuccessful response means; never returns."""
        details = parse_api_error(response.status, response.content)
        if details.is_out_of_credit:
            why = format_api_error_with_advice(details, response, call.settings, call.key.secret)
            call.service_state.disable(f"{why}; no further requests were sent")
            raise EvaluatorError(why)
        message = format_api_error(details, response, call.key.secret)
        if failure := find_retryable_error(response, message, now=self._now()):
            raise failure
        raise ApiRejectionError(details, response)

    def _find_fallback(
        self, capabilities: ServiceCapabilities, error: ApiRejectionError, call: PreparedCall
    ) -> ServiceCapabilities:
        """Find the capabilities to try next.

        Raises:
            EvaluatorError: there are none.
        """
        settings = call.settings
        step = find_fallback(capabilities, error.details, call.provider.FORMATS)
        if step is None:
            raise EvaluatorError(_format_rejection(error, call))
        for name in _find_dropped_settings(capabilities, step, settings):
            self._transport.report(
                f"{settings.model} does not support {name}; it is called without it"
            )
        return step


def _format_rejection(error: ApiRejectionError, call: PreparedCall) -> str:
    return format_api_error_with_advice(
        error.details, error.response, call.settings, call.key.secret
    )


def _find_dropped_settings(
    capabilities: ServiceCapabilities, step: ServiceCapabilities, settings: ModelSettings
) -> list[str]:
    """List settings of the user that are no longer sent."""
    lost = []
    if (
        capabilities.sends_temperature
        and not step.sends_temperature
        and settings.temperature is not None
    ):
        lost.append("temperature")
    if capabilities.sends_effort and not step.sends_effort and settings.effort:
        lost.append("effort")
    return lost


def _append_hint(error: FetchError) -> str:
    return f"{error}; {error.hint}" if error.hint else str(error)
