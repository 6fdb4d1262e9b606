"""Client for the models of a service: one question, one response, charged to a budget."""

import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from agentci._util.http.interface import HttpResponse
from agentci._util.http.retries import RetryableError
from agentci.errors import EvaluatorError, FetchError
from agentci.judges import embeddings
from agentci.judges.budget import Budget, PendingCharge, compute_charge
from agentci.judges.keys import ApiKey, ApiKeys
from agentci.judges.provider import (
    InvalidJsonError,
    Provider,
    ProviderRequest,
    ResponseFormat,
    ServiceCapabilities,
    TokenLimitName,
)
from agentci.judges.registry import PROVIDERS
from agentci.judges.service_errors import (
    ApiErrorDetails,
    format_api_error,
    format_api_error_with_advice,
    parse_api_error,
)
from agentci.judges.transport import (
    OUTAGE_HINT,
    ServiceRequest,
    ServiceState,
    ServiceStates,
    Transport,
    find_retryable_error,
)
from agentci.model.judges import JudgePrompt, ModelResponse, ModelSettings
from agentci.model.requests import CompareEmbeddings
from agentci.model.values import replace

FALLBACK_STATUSES: Final = frozenset({400, 404, 422})
FORMAT_NAMES: Final = (
    *("response_format", "json_schema", "output_config", "output_format", "text.format"),
    *("responsejsonschema", "response_json_schema", "responsemimetype", "response_mime_type"),
)
# A limit that is too large is no reason to try the other parameter name.
UNSUPPORTED_WORDS: Final = ("unsupported", "not supported", "unrecognized", "unknown", "extra")


def find_fallback(
    way: ServiceCapabilities, complaint: ApiErrorDetails, formats: tuple[ResponseFormat, ...]
) -> ServiceCapabilities | None:
    """Find the capabilities to try next after an error of the service; None if there are none.

    Each fallback is used at most once, so that retries end.

    Args:
        formats: those of the provider, the strictest first.
    """
    if complaint.status not in FALLBACK_STATUSES:
        return None
    said = " ".join((complaint.param, complaint.message, *sorted(complaint.codes))).lower()
    steps = (_without_effort(way, said), _without_temperature(way, said))
    later = (_with_other_token_limit(way, said), _with_next_format(way, said, formats))
    return next((step for step in (*steps, *later) if step is not None), None)


def _without_effort(way: ServiceCapabilities, said: str) -> ServiceCapabilities | None:
    return replace(way, sends_effort=False) if way.sends_effort and "effort" in said else None


def _without_temperature(way: ServiceCapabilities, said: str) -> ServiceCapabilities | None:
    if way.sends_temperature and "temperature" in said:
        return replace(way, sends_temperature=False)
    return None


def _with_other_token_limit(way: ServiceCapabilities, said: str) -> ServiceCapabilities | None:
    if way.has_switched_token_limit or way.limit_parameter not in said:
        return None
    if not any(word in said for word in UNSUPPORTED_WORDS):
        return None
    other: TokenLimitName = (
        "max_tokens" if way.limit_parameter != "max_tokens" else "max_completion_tokens"
    )
    return replace(way, limit_parameter=other, has_switched_token_limit=True)


def _with_next_format(
    way: ServiceCapabilities, said: str, formats: tuple[ResponseFormat, ...]
) -> ServiceCapabilities | None:
    left = formats[formats.index(way.format) + 1 :]
    if left and any(name in said for name in FORMAT_NAMES):
        return replace(way, format=left[0])
    return None


SUCCESSES: Final = range(200, 300)


class ApiRejectionError(Exception):
    """A service rejected a request and would reject it again."""

    def __init__(self, complaint: ApiErrorDetails, response: HttpResponse) -> None:
        self.details = complaint
        self.response = response
        # Without its message, which may quote a key.
        super().__init__(complaint.status)


class PreparedQuestion(Struct, frozen=True, kw_only=True):
    """A prompt with its provider, service state and key.

    Attributes:
        parse: parses the response, like ``Provider.parse_response``.
        until: deadline, by the clock of the transport.
    """

    question: JudgePrompt
    settings: ModelSettings
    provider: Provider
    parse: Callable[[bytes], ModelResponse]
    service_state: ServiceState
    key: ApiKey
    until: float


class ServiceClient:
    """Calls the models of services; thread-safe.

    Args:
        accounts: shared with other clients of the same services.
        now: seconds since 1970.
    """

    def __init__(
        self,
        transport: Transport,
        budget: Budget,
        *,
        keys: ApiKeys,
        accounts: ServiceStates | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._budget = budget
        self._keys = keys
        self._now = now
        self._service_states = accounts or ServiceStates()

    def ask(self, question: JudgePrompt, settings: ModelSettings, *, until: float) -> ModelResponse:
        """Call a model once, with the strictest response format that the service supports.

        Args:
            until: deadline, by the clock of the transport.

        Raises:
            EvaluatorError: there is no response, or no budget for one.
            SkippedError: no key is available in this run, as expected.
        """
        read = PROVIDERS[settings.provider].parse_response
        posed = self._prepare(question, settings, read, until)
        way = posed.service_state.known_capabilities(
            settings.model
        ) or posed.provider.initial_capabilities(settings)
        while True:
            call = posed.provider.build_request(question, settings, way)
            try:
                response = posed.key.redact_response(self._send(posed, call))
            except ApiRejectionError as error:
                if error.details.is_content_filtered:
                    return ModelResponse(text="", ending="refused", finish_reason="content_filter")
                way = self._find_fallback(way, error, posed)
            except FetchError as error:
                raise EvaluatorError(_append_hint(error)) from None
            else:
                posed.service_state.remember_capabilities(settings.model, way)
                return response

    def embed(self, request: CompareEmbeddings, *, until: float) -> ModelResponse:
        """Request the embeddings of two texts once; the text of the response is their cosine.

        Args:
            until: as in ``ask``.

        Raises:
            EvaluatorError: there are no comparable embeddings, or no budget for them.
            SkippedError: no key is available in this run, as expected.
        """
        settings = request.judge.settings
        posed = self._prepare(request.prompt, settings, embeddings.parse_response, until)
        try:
            return self._send(posed, embeddings.build_request(request.texts, settings))
        except ApiRejectionError as error:
            raise EvaluatorError(_format_rejection(error, posed)) from None
        except FetchError as error:
            raise EvaluatorError(_append_hint(error)) from None

    def _prepare(
        self,
        question: JudgePrompt,
        settings: ModelSettings,
        read: Callable[[bytes], ModelResponse],
        until: float,
    ) -> PreparedQuestion:
        return PreparedQuestion(
            question=question,
            settings=settings,
            provider=PROVIDERS[settings.provider],
            parse=read,
            service_state=self._service_states.get(settings),
            key=self._keys.get(settings, until=until),
            until=until,
        )

    def _send(self, posed: PreparedQuestion, call: ProviderRequest) -> ModelResponse:
        letter = ServiceRequest(
            url=call.url,
            headers={**call.headers, **posed.key.headers},
            content=call.body,
            has_key=bool(posed.key.secret),
            until=posed.until,
        )

        def attempt(fetch: Callable[[], HttpResponse]) -> ModelResponse:
            with self._budget.reserve(
                self._budget.compute_max_charge(posed.question, posed.settings)
            ) as bill:
                return self._attempt(fetch, bill, posed)

        return self._transport.send(letter, posed.service_state, attempt)

    def _attempt(
        self, fetch: Callable[[], HttpResponse], bill: PendingCharge, posed: PreparedQuestion
    ) -> ModelResponse:
        """Make one attempt; charge for a lost response, but not for a refused request."""
        try:
            response = fetch()
        except RetryableError as failure:
            if not failure.arrived:
                bill.cancel()
            raise
        if response.status not in SUCCESSES:
            bill.cancel()
            self._raise_for_error(response, posed)
        try:
            answer = posed.parse(response.content)
        except InvalidJsonError:
            raise RetryableError("the response is not JSON", hint=OUTAGE_HINT) from None
        bill.charge = compute_charge(posed.question, posed.settings, answer)
        return answer

    def _raise_for_error(self, response: HttpResponse, posed: PreparedQuestion) -> None:
        """Raise the error that an unsuccessful response means; never returns."""
        complaint = parse_api_error(response.status, response.content)
        if complaint.is_out_of_credit:
            why = format_api_error_with_advice(
                complaint, response, posed.settings, posed.key.secret
            )
            posed.service_state.disable(f"{why}; no further question was sent")
            raise EvaluatorError(why)
        message = format_api_error(complaint, response, posed.key.secret)
        if failure := find_retryable_error(response, message, now=self._now()):
            raise failure
        raise ApiRejectionError(complaint, response)

    def _find_fallback(
        self, way: ServiceCapabilities, error: ApiRejectionError, posed: PreparedQuestion
    ) -> ServiceCapabilities:
        """Find the capabilities to try next.

        Raises:
            EvaluatorError: there are none.
        """
        settings = posed.settings
        step = find_fallback(way, error.details, posed.provider.FORMATS)
        if step is None:
            raise EvaluatorError(_format_rejection(error, posed))
        for name in _find_dropped_settings(way, step, settings):
            self._transport.report(f"{settings.model} takes no {name}, so it is asked without")
        return step


def _format_rejection(error: ApiRejectionError, posed: PreparedQuestion) -> str:
    return format_api_error_with_advice(
        error.details, error.response, posed.settings, posed.key.secret
    )


def _find_dropped_settings(
    way: ServiceCapabilities, step: ServiceCapabilities, settings: ModelSettings
) -> list[str]:
    """List settings of the user that are no longer sent."""
    lost = []
    if way.sends_temperature and not step.sends_temperature and settings.temperature is not None:
        lost.append("temperature")
    if way.sends_effort and not step.sends_effort and settings.effort:
        lost.append("effort")
    return lost


def _append_hint(error: FetchError) -> str:
    return f"{error}; {error.hint}" if error.hint else str(error)
