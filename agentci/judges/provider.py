"""What a provider of language models is, and the JSON bodies of its requests and responses."""

import json
from collections.abc import Mapping
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, ValidationError

from agentci._util.text import escape, truncate
from agentci.errors import EvaluatorError
from agentci.model.json import JsonObject
from agentci.model.judges import JudgePrompt, ModelResponse, ModelSettings

MAX_SHOWN: Final = 200

JSON_HEADERS: Final = {"Accept": "application/json", "Content-Type": "application/json"}


class InvalidJsonError(Exception):
    """A success whose body is no JSON; another try may do better."""


class ServiceModel(BaseModel):
    """Part of an answer, of which we take what we know."""

    model_config = ConfigDict(frozen=True, extra="ignore")


W = TypeVar("W", bound=ServiceModel)


def encode_body(value: JsonObject) -> bytes:
    """The body of a request: compact, in UTF-8, members in their order."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return escape.replace_surrogates(text).encode()


def parse_body(kind: type[W], content: bytes) -> W:
    """Take the body of an answer apart.

    Raises:
        GarbledError: it is no JSON.
        EvaluatorError: it is not what the API says.
    """
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if first["type"] == "json_invalid":
            raise InvalidJsonError from None
        where = ".".join(map(str, first["loc"])) or "the answer"
        said = truncate.short(escape.flatten_line(f"{where}: {first['msg']}"), MAX_SHOWN)
        raise EvaluatorError(
            f"the judge's service does not speak the API of its provider ({said}):"
            " see base_url and provider"
        ) from None


# How a service is told the form of a reply, the strictest first. The prompt says it in any case.
ResponseFormat: TypeAlias = Literal["json_schema", "json_object", "prompt"]
# What OpenAI calls the limit of a reply, and what it was called before.
TokenLimitName: TypeAlias = Literal["max_completion_tokens", "max_tokens"]


class NoVerdictError(EvaluatorError):
    """A reply came, and it is no verdict: this sample counts for nothing."""


class UnreadableVerdictError(NoVerdictError):
    """A reply holds no verdict in a form that we can read; the model may write it once more."""


class ServiceCapabilities(Struct, frozen=True, kw_only=True):
    """How much of its language a service is taken to understand.

    Attributes:
        has_switched_token_limit: whether ``token_limit_name`` is the second that was tried.
    """

    format: ResponseFormat
    limit_parameter: TokenLimitName = "max_completion_tokens"
    has_switched_token_limit: bool = False
    sends_effort: bool = True
    sends_temperature: bool = True


class ProviderRequest(Struct, frozen=True, kw_only=True):
    """A request, but for the key: to be compared, shown and cached."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Provider(Protocol):
    """Pure functions; a module is one."""

    BASE_URL: str
    """Where its service is; empty where that has to be said."""

    FORMATS: tuple[ResponseFormat, ...]
    """That its API has, the strictest first."""

    SUPPORTS_EFFORT: bool
    """Whether its API lets one say how long a model thinks."""

    def initial_capabilities(self, settings: ModelSettings) -> ServiceCapabilities:
        """How the service is asked before it has objected to anything."""
        ...

    def build_request(
        self, question: JudgePrompt, settings: ModelSettings, way: ServiceCapabilities
    ) -> ProviderRequest:
        """Make the request."""
        ...

    def make_key_header(self, key: str) -> tuple[str, str]:
        """The header that carries a key, and its value."""
        ...

    def parse_response(self, content: bytes) -> ModelResponse:
        """Read the body of a success.

        Raises:
            GarbledError: it is no JSON.
            EvaluatorError: it is not what the API says.
        """
        ...
