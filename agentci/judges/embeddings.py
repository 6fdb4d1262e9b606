"""Compares texts by embeddings from OpenAI's Embeddings API."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Protocol

from pydantic import Field, StrictInt

from agentci.errors import EvaluatorError
from agentci.evaluators.similarity import cosine_similarity
from agentci.judges import providers
from agentci.judges.judge import (
    NO_RESPONSE_CACHE,
    REPLAY_ONLY_CAUSE,
    VERDICT_SECONDS,
    JudgeResponseCache,
    make_uncached_error,
)
from agentci.judges.providers import AZURE, OPENAI
from agentci.model.judges import ModelResponse, ModelSettings
from agentci.model.requests import CompareEmbeddings, EmbeddingSimilarity


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
            records: cached responses, used before the service is called.

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
