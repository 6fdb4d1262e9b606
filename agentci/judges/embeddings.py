"""Compares texts by their embeddings, requested by OpenAI's Embeddings API."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Protocol

from pydantic import Field, StrictInt

from agentci.errors import EvaluatorError
from agentci.evaluators.similarity.measures import cosine_similarity
from agentci.judges import azure, openai
from agentci.judges.judge import (
    NO_RESPONSE_CACHE,
    REPLAY_ONLY_CAUSE,
    VERDICT_SECONDS,
    JudgeResponseCache,
    make_unrecorded_error,
)
from agentci.judges.provider import (
    JSON_HEADERS,
    ProviderRequest,
    ServiceModel,
    encode_body,
    parse_body,
)
from agentci.model.judges import ModelResponse, ModelSettings
from agentci.model.requests import CompareEmbeddings, EmbeddingSimilarity


class EmbeddingClient(Protocol):
    """Asks for embeddings, from any number of threads."""

    def embed(self, request: CompareEmbeddings, *, until: float) -> ModelResponse:
        """Ask once; the text of the reply is the cosine.

        Args:
            until: as for askers.

        Raises:
            EvaluatorError: there is none.
        """
        ...


class EmbeddingComparer:
    """Carries out ``CompareEmbeddings``, from any number of threads.

    Args:
        clock: seconds from any fixed point on.
    """

    def __init__(self, embedder: EmbeddingClient, *, clock: Callable[[], float]) -> None:
        self._client = embedder
        self._clock = clock

    def compare(
        self, request: CompareEmbeddings, records: JudgeResponseCache = NO_RESPONSE_CACHE
    ) -> EmbeddingSimilarity:
        """Ask, unless it is known.

        Args:
            records: taken before anybody is asked.

        Raises:
            EvaluatorError: there are no two vectors that can be compared.
            SkippedError: nobody can be asked here.
        """
        with records.lock(0):
            known = records.find(0)
            if known is not None and (value := parse_cosine(known)) is not None:
                return EmbeddingSimilarity(cosine=value, response=known, is_cached=True)
            if request.judge.replay == "only":
                raise make_unrecorded_error(REPLAY_ONLY_CAUSE)
            reply = self._client.embed(request, until=self._clock() + VERDICT_SECONDS)
            records.store(0, reply)
            return EmbeddingSimilarity(cosine=float(reply.text), response=reply)


PATH: Final = "embeddings"
# Where a provider that has them is asked for something.
EMBEDDING_URLS: Final[Mapping[str, Callable[[ModelSettings, str], str]]] = {
    "openai": openai.build_url,
    "azure": azure.build_url,
}


def build_request(texts: Sequence[str], settings: ModelSettings) -> ProviderRequest:
    """Make the request."""
    return ProviderRequest(
        url=EMBEDDING_URLS[settings.provider](settings, PATH),
        headers=JSON_HEADERS,
        body=encode_body({"model": settings.model, "input": [*texts]}),
    )


def parse_response(content: bytes) -> ModelResponse:
    """Read the body of a success: the text of the reply is the cosine.

    Raises:
        GarbledError: it is no JSON.
        EvaluatorError: it has no two vectors that can be compared.
    """
    answer = parse_body(_EmbeddingsResponse, content)
    vectors = {each.index: each.embedding for each in answer.data}
    if len(answer.data) != len(vectors) or vectors.keys() != {0, 1}:
        raise EvaluatorError("the service of embeddings did not answer with one vector a text")
    if len(vectors[0]) != len(vectors[1]):
        raise EvaluatorError("the service of embeddings answered with vectors of unequal length")
    try:
        value = cosine_similarity(vectors[0], vectors[1])
    except ValueError as error:
        raise EvaluatorError(f"the embeddings cannot be compared: {error}") from None
    return ModelResponse(
        text=repr(value),
        ending="complete",
        tokens_in=answer.usage.prompt_tokens if answer.usage else None,
        tokens_out=0,
    )


def parse_cosine(reply: ModelResponse) -> float | None:
    """The cosine that was read; None where a kept reply holds none."""
    try:
        value = float(reply.text)
    except ValueError:
        return None
    return value if -1 <= value <= 1 else None


class _Embedding(ServiceModel):
    index: StrictInt
    embedding: Annotated[
        list[Annotated[float, Field(strict=True, allow_inf_nan=False)]], Field(min_length=1)
    ]


class _EmbeddingsUsage(ServiceModel):
    prompt_tokens: Annotated[int, Field(ge=0)]


class _EmbeddingsResponse(ServiceModel):
    data: list[_Embedding]
    usage: _EmbeddingsUsage | None = None
