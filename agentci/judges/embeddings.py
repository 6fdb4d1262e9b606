"""OpenAI's Embeddings, which Azure and most services speak: two texts are sent, two vectors come.

Of the vectors only their cosine is kept: they are as long as a book, and nothing else is of use.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field, StrictInt

from agentci.errors import EvaluatorError
from agentci.evaluators.similarity.vectors import cosine
from agentci.judges import azure, openai
from agentci.judges.json_body import JSON_HEADERS, Wire, body_of, parse
from agentci.judges.provider import Call
from agentci.model.judging import ModelReply, ModelSettings

PATH: Final = "embeddings"
# Where a provider that has them is asked for something.
ADDRESSES: Final[Mapping[str, Callable[[ModelSettings, str], str]]] = {
    "openai": openai.address,
    "azure": azure.address,
}


def call(texts: Sequence[str], settings: ModelSettings) -> Call:
    """Make the request."""
    return Call(
        url=ADDRESSES[settings.provider](settings, PATH),
        headers=JSON_HEADERS,
        body=body_of({"model": settings.model, "input": [*texts]}),
    )


def read(content: bytes) -> ModelReply:
    """Read the body of a success: the text of the reply is the cosine.

    Raises:
        GarbledError: it is no JSON.
        EvaluatorError: it has no two vectors that can be compared.
    """
    answer = parse(_Answer, content)
    vectors = {each.index: each.embedding for each in answer.data}
    if len(answer.data) != len(vectors) or vectors.keys() != {0, 1}:
        raise EvaluatorError("the service of embeddings did not answer with one vector a text")
    if len(vectors[0]) != len(vectors[1]):
        raise EvaluatorError("the service of embeddings answered with vectors of unequal length")
    try:
        value = cosine(vectors[0], vectors[1])
    except ValueError as error:
        raise EvaluatorError(f"the embeddings cannot be compared: {error}") from None
    return ModelReply(
        text=repr(value),
        ending="complete",
        tokens_in=answer.usage.prompt_tokens if answer.usage else None,
        tokens_out=0,
    )


def cosine_in(reply: ModelReply) -> float | None:
    """The cosine that was read; None where a kept reply holds none."""
    try:
        value = float(reply.text)
    except ValueError:
        return None
    return value if -1 <= value <= 1 else None


class _Embedding(Wire):
    index: StrictInt
    embedding: Annotated[
        list[Annotated[float, Field(strict=True, allow_inf_nan=False)]], Field(min_length=1)
    ]


class _Usage(Wire):
    prompt_tokens: Annotated[int, Field(ge=0)]


class _Answer(Wire):
    data: list[_Embedding]
    usage: _Usage | None = None
