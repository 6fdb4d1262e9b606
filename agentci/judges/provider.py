"""The interface of model providers, and the JSON bodies of their requests and responses."""

import json
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentci._util.text import escape, truncate
from agentci.errors import EvaluatorError
from agentci.model.json import JsonObject
from agentci.model.judges import JudgePrompt, ModelResponse, ModelSettings

MAX_SHOWN: Final = 200

JSON_HEADERS: Final = {"Accept": "application/json", "Content-Type": "application/json"}


class InvalidJsonError(Exception):
    """A successful response has a body that is not JSON; a retry may help."""


class ServiceModel(BaseModel):
    """Base of response models; unknown members are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


# Tokens of one response; a larger number is an error of the service.
TokenCount: TypeAlias = Annotated[int, Field(ge=0, le=10**12)]

W = TypeVar("W", bound=ServiceModel)


def encode_body(value: JsonObject) -> bytes:
    """Encode the body of a request: compact UTF-8, members in the given order."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return escape.replace_surrogates(text).encode()


def parse_body(model: type[W], content: bytes) -> W:
    """Parse the body of a response.

    Raises:
        InvalidJsonError: it is not JSON.
        EvaluatorError: it does not match the API.
    """
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if first["type"] == "json_invalid":
            raise InvalidJsonError from None
        where = ".".join(map(str, first["loc"])) or "the response"
        message = truncate.short(escape.flatten_line(f"{where}: {first['msg']}"), MAX_SHOWN)
        raise EvaluatorError(
            f"the judge's service did not return a response of its provider's API ({message});"
            " check `base_url` and `provider`"
        ) from None


# How a service receives the schema of the response, the strictest first. The prompt also has it.
ResponseFormat: TypeAlias = Literal["json_schema", "json_object", "prompt"]
# OpenAI's parameter for the limit of a response, and its former name.
TokenLimitName: TypeAlias = Literal["max_completion_tokens", "max_tokens"]


class NoVerdictError(EvaluatorError):
    """A response has no verdict; the sample does not count."""


class UnreadableVerdictError(NoVerdictError):
    """A response has no verdict that can be parsed; the model may be asked to correct it."""


class QuotedVerdictError(NoVerdictError):
    """A response repeats JSON from what was judged; the model may be asked again."""


class ServiceCapabilities(Struct, frozen=True, kw_only=True):
    """The request features that a service is assumed to support.

    Attributes:
        has_switched_token_limit: whether ``limit_parameter`` is the second name tried.
    """

    format: ResponseFormat = "json_schema"
    limit_parameter: TokenLimitName = "max_completion_tokens"
    has_switched_token_limit: bool = False
    sends_effort: bool = True
    sends_temperature: bool = True


def assume_all_capabilities(_: ModelSettings) -> ServiceCapabilities:
    """Return the same capabilities for all models: the strictest format and all parameters."""
    return ServiceCapabilities()


class ProviderRequest(Struct, frozen=True, kw_only=True):
    """A request without the key, so that it can be compared, shown and cached."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Provider(Protocol):
    """A provider: pure functions, implemented by a module."""

    BASE_URL: str
    """Default URL of the service; empty if the config must name one."""

    FORMATS: tuple[ResponseFormat, ...]
    """Response formats that the API supports, strictest first."""

    SUPPORTS_EFFORT: bool
    """Whether the API has a setting for reasoning effort."""

    def initial_capabilities(self, settings: ModelSettings) -> ServiceCapabilities:
        """Return the capabilities to assume before the service has rejected anything."""

    def build_request(
        self, prompt: JudgePrompt, settings: ModelSettings, capabilities: ServiceCapabilities
    ) -> ProviderRequest:
        """Build the HTTP request."""

    def make_key_header(self, key: str) -> tuple[str, str]:
        """Return the name and value of the header for an API key."""

    def parse_response(self, content: bytes) -> ModelResponse:
        """Parse the body of a successful response.

        Raises:
            InvalidJsonError: it is not JSON.
            EvaluatorError: it does not match the API.
        """
