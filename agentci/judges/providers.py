"""The providers that a config can name: the requests and responses of their APIs.

A new one is a class with the members of ``Provider``, and an entry in ``PROVIDERS``.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentci._util.text import escape, truncate
from agentci.errors import EvaluatorError
from agentci.evaluators.prompts import SCHEMA_NAME, make_answer_schema
from agentci.model.judges import FinishStatus, JudgePrompt, ModelResponse, ModelSettings
from agentci.model.values import Json, JsonObject

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


def assume_all_capabilities(settings: ModelSettings) -> ServiceCapabilities:
    """Return the same capabilities for all models: the strictest format and all parameters."""
    del settings
    return ServiceCapabilities()


class ProviderRequest(Struct, frozen=True, kw_only=True):
    """A request without the key, so that it can be compared, shown and cached."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Provider(Protocol):
    """A provider: pure functions."""

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


# Its responses come from a program instead of a service.
COMMAND_PROVIDER: Final = "command"

CHAT_PATH: Final = "chat/completions"
CHAT_ENDINGS: Final[dict[str, FinishStatus]] = {
    "stop": "complete",
    "length": "truncated",
    "content_filter": "refused",
}


class OpenAIProvider:
    """OpenAI and services with its Chat Completions API (Ollama, vLLM, LiteLLM, ...)."""

    BASE_URL = "https://api.openai.com/v1"
    FORMATS: tuple[ResponseFormat, ...] = ("json_schema", "json_object", "prompt")
    SUPPORTS_EFFORT = True

    def initial_capabilities(self, settings: ModelSettings) -> ServiceCapabilities:
        """Use the new name of the token limit only for OpenAI; few other services support it."""
        is_openai = (
            urlsplit(self._get_base_url(settings)).hostname == urlsplit(self.BASE_URL).hostname
        )
        name: TokenLimitName = "max_completion_tokens" if is_openai else "max_tokens"
        return ServiceCapabilities(limit_parameter=name)

    def build_request(
        self, prompt: JudgePrompt, settings: ModelSettings, capabilities: ServiceCapabilities
    ) -> ProviderRequest:
        """Build the HTTP request."""
        return build_chat_request(
            self.build_url(settings, CHAT_PATH), prompt, settings, capabilities
        )

    def build_url(self, settings: ModelSettings, path: str) -> str:
        """Build the URL of the API ``path``."""
        return f"{self._get_base_url(settings)}/{path}"

    def make_key_header(self, key: str) -> tuple[str, str]:
        """Return the name and value of the header for an API key."""
        return "Authorization", f"Bearer {key}"

    def parse_response(self, content: bytes) -> ModelResponse:
        """Parse the body of a successful response."""
        response = parse_body(_ChatCompletion, content)
        choice = response.choices[0]
        reason = choice.finish_reason or ""
        return ModelResponse(
            text=choice.message.content or "",
            ending="refused" if choice.message.refusal else CHAT_ENDINGS.get(reason, "unknown"),
            finish_reason="refusal" if choice.message.refusal else reason,
            tokens_in=response.usage.prompt_tokens if response.usage else None,
            tokens_out=response.usage.completion_tokens if response.usage else None,
        )

    def _get_base_url(self, settings: ModelSettings) -> str:
        return (settings.base_url or self.BASE_URL).rstrip("/")


def build_chat_request(
    url: str, prompt: JudgePrompt, settings: ModelSettings, capabilities: ServiceCapabilities
) -> ProviderRequest:
    """Build a request of the API; sampling parameters are included only if set."""
    value: dict[str, Json] = {
        "model": settings.model,
        "messages": [
            *([{"role": "system", "content": prompt.system}] if prompt.system else ()),
            {"role": "user", "content": prompt.user},
        ],
    }
    response_format = _make_response_format(prompt, capabilities)
    if response_format is not None:
        value["response_format"] = response_format
    value[capabilities.limit_parameter] = settings.output_tokens
    if settings.effort and capabilities.sends_effort:
        value["reasoning_effort"] = settings.effort
    if settings.temperature is not None and capabilities.sends_temperature:
        value["temperature"] = settings.temperature
    return ProviderRequest(url=url, headers=JSON_HEADERS, body=encode_body(value))


def _make_response_format(
    prompt: JudgePrompt, capabilities: ServiceCapabilities
) -> JsonObject | None:
    if prompt.schema is None or capabilities.format == "prompt":
        return None
    if capabilities.format == "json_object":
        return {"type": "json_object"}
    schema: JsonObject = {
        "name": SCHEMA_NAME,
        "strict": True,
        "schema": make_answer_schema(prompt.schema),
    }
    return {"type": "json_schema", "json_schema": schema}


class _ChatMessage(ServiceModel):
    content: str | None = None
    refusal: str | None = None


class _ChatChoice(ServiceModel):
    message: _ChatMessage
    finish_reason: str | None = None


class _ChatUsage(ServiceModel):
    prompt_tokens: TokenCount
    completion_tokens: TokenCount


class _ChatCompletion(ServiceModel):
    choices: Annotated[list[_ChatChoice], Field(min_length=1)]
    usage: _ChatUsage | None = None


class AzureProvider(OpenAIProvider):
    """Azure OpenAI: the v1 API, and the dated APIs with the deployment in the URL."""

    BASE_URL = ""

    initial_capabilities = staticmethod(assume_all_capabilities)

    def build_url(self, settings: ModelSettings, path: str) -> str:
        """Build the URL of the API ``path``.

        ``base_url`` is the resource, with or without ``/openai/v1``.
        """
        resource = settings.base_url.rstrip("/").removesuffix("/v1").removesuffix("/openai")
        if not settings.api_version:
            return f"{resource}/openai/v1/{path}"
        deployment, version = quote(settings.model, safe=""), quote(settings.api_version, safe="")
        return f"{resource}/openai/deployments/{deployment}/{path}?api-version={version}"

    def make_key_header(self, key: str) -> tuple[str, str]:
        """Return the name and value of the header for an API key."""
        return "api-key", key


ANTHROPIC_VERSION: Final = "2026-10-21"
ANTHROPIC_ENDINGS: Final[dict[str, FinishStatus]] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
}


class AnthropicProvider:
    """Anthropic's Messages API."""

    BASE_URL = "https://api.anthropic.com"
    FORMATS: tuple[ResponseFormat, ...] = ("json_schema", "prompt")
    SUPPORTS_EFFORT = True

    initial_capabilities = staticmethod(assume_all_capabilities)

    def build_request(
        self, prompt: JudgePrompt, settings: ModelSettings, capabilities: ServiceCapabilities
    ) -> ProviderRequest:
        """Build the HTTP request."""
        value: dict[str, Json] = {
            "model": settings.model,
            "max_tokens": settings.output_tokens,
            **({"system": prompt.system} if prompt.system else {}),
            "messages": [{"role": "user", "content": prompt.user}],
        }
        output: dict[str, Json] = {}
        if prompt.schema is not None and capabilities.format == "json_schema":
            output["format"] = {"type": "json_schema", "schema": make_answer_schema(prompt.schema)}
        if settings.effort and capabilities.sends_effort:
            output["effort"] = settings.effort
        if output:
            value["output_config"] = output
        if settings.temperature is not None and capabilities.sends_temperature:
            value["temperature"] = settings.temperature
        base = (settings.base_url or self.BASE_URL).rstrip("/").removesuffix("/v1")
        version = settings.api_version or ANTHROPIC_VERSION
        return ProviderRequest(
            url=f"{base}/v1/messages",
            headers={**JSON_HEADERS, "anthropic-version": version},
            body=encode_body(value),
        )

    def make_key_header(self, key: str) -> tuple[str, str]:
        """Return the name and value of the header for an API key."""
        return "x-api-key", key

    def parse_response(self, content: bytes) -> ModelResponse:
        """Parse the body of a successful response."""
        response = parse_body(_AnthropicResponse, content)
        reason = response.stop_reason or ""
        return ModelResponse(
            text="".join(block.text for block in response.content if block.type == "text"),
            ending=ANTHROPIC_ENDINGS.get(reason, "unknown"),
            finish_reason=reason,
            tokens_in=response.usage.input_tokens if response.usage else None,
            tokens_out=response.usage.output_tokens if response.usage else None,
        )


class _AnthropicBlock(ServiceModel):
    type: str
    text: str = ""


class _AnthropicUsage(ServiceModel):
    input_tokens: TokenCount
    output_tokens: TokenCount


class _AnthropicResponse(ServiceModel):
    content: list[_AnthropicBlock]
    stop_reason: str | None = None
    usage: _AnthropicUsage | None = None


GEMINI_ENDINGS: Final[dict[str, FinishStatus]] = {
    "STOP": "complete",
    "MAX_TOKENS": "truncated",
    "SAFETY": "refused",
    "RECITATION": "refused",
    "BLOCKLIST": "refused",
    "PROHIBITED_CONTENT": "refused",
    "SPII": "refused",
}


class GeminiProvider:
    """Google's Gemini API."""

    BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
    FORMATS: tuple[ResponseFormat, ...] = ("json_schema", "json_object", "prompt")
    SUPPORTS_EFFORT = False

    initial_capabilities = staticmethod(assume_all_capabilities)

    def build_request(
        self, prompt: JudgePrompt, settings: ModelSettings, capabilities: ServiceCapabilities
    ) -> ProviderRequest:
        """Build the HTTP request."""
        generation: dict[str, Json] = {}
        if prompt.schema is not None and capabilities.format != "prompt":
            generation["responseMimeType"] = "application/json"
        if prompt.schema is not None and capabilities.format == "json_schema":
            generation["responseJsonSchema"] = make_answer_schema(prompt.schema)
        generation["maxOutputTokens"] = settings.output_tokens
        if settings.temperature is not None and capabilities.sends_temperature:
            generation["temperature"] = settings.temperature
        system: JsonObject = {"systemInstruction": {"parts": [{"text": prompt.system}]}}
        base = (settings.base_url or self.BASE_URL).rstrip("/")
        model = quote(settings.model.removeprefix("models/"), safe="")
        return ProviderRequest(
            url=f"{base}/models/{model}:generateContent",
            headers=JSON_HEADERS,
            body=encode_body(
                {
                    "contents": [{"role": "user", "parts": [{"text": prompt.user}]}],
                    **(system if prompt.system else {}),
                    "generationConfig": generation,
                }
            ),
        )

    def make_key_header(self, key: str) -> tuple[str, str]:
        """Return the name and value of the header for an API key."""
        return "x-goog-api-key", key

    def parse_response(self, content: bytes) -> ModelResponse:
        """Parse the body of a successful response; a blocked prompt has no candidates."""
        response = parse_body(_GeminiResponse, content)
        candidate = response.candidates[0] if response.candidates else _GeminiCandidate()
        reason, ending = (
            candidate.finish_reason,
            GEMINI_ENDINGS.get(candidate.finish_reason, "unknown"),
        )
        if response.feedback.block_reason:
            reason, ending = response.feedback.block_reason, "refused"
        usage = response.usage
        return ModelResponse(
            text="".join(part.text for part in candidate.content.parts if not part.thought),
            ending=ending,
            finish_reason=reason,
            tokens_in=usage.prompt if usage else None,
            tokens_out=usage.candidates + usage.thoughts if usage else None,
        )


class _GeminiPart(ServiceModel):
    text: str = ""
    thought: bool = False


class _GeminiContent(ServiceModel):
    parts: tuple[_GeminiPart, ...] = ()


class _GeminiCandidate(ServiceModel):
    content: _GeminiContent = _GeminiContent()
    finish_reason: str = Field(default="", alias="finishReason")


class _GeminiFeedback(ServiceModel):
    block_reason: str = Field(default="", alias="blockReason")


class _GeminiUsage(ServiceModel):
    prompt: Annotated[TokenCount, Field(alias="promptTokenCount")]
    candidates: Annotated[TokenCount, Field(alias="candidatesTokenCount")] = 0
    thoughts: Annotated[TokenCount, Field(alias="thoughtsTokenCount")] = 0


class _GeminiResponse(ServiceModel):
    candidates: tuple[_GeminiCandidate, ...] = ()
    feedback: _GeminiFeedback = Field(default=_GeminiFeedback(), alias="promptFeedback")
    usage: _GeminiUsage | None = Field(default=None, alias="usageMetadata")


OPENAI: Final = OpenAIProvider()
AZURE: Final = AzureProvider()

PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": OPENAI,
    "azure": AZURE,
    "anthropic": AnthropicProvider(),
    "gemini": GeminiProvider(),
}
