"""Provider for OpenAI and services with its Chat Completions API (Ollama, vLLM, LiteLLM, ...)."""

from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import Field

from agentci.evaluators.prompts import SCHEMA_NAME, make_answer_schema
from agentci.judges.provider import (
    JSON_HEADERS,
    ProviderRequest,
    ResponseFormat,
    ServiceCapabilities,
    ServiceModel,
    TokenCount,
    TokenLimitName,
    encode_body,
    parse_body,
)
from agentci.model.json import Json, JsonObject
from agentci.model.judges import FinishStatus, JudgePrompt, ModelResponse, ModelSettings

BASE_URL = "https://api.openai.com/v1"
SUPPORTS_EFFORT = True
PATH: Final = "chat/completions"
FORMATS: tuple[ResponseFormat, ...] = ("json_schema", "json_object", "prompt")
ENDINGS: Final[dict[str, FinishStatus]] = {
    "stop": "complete",
    "length": "truncated",
    "content_filter": "refused",
}


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


def parse_response(content: bytes) -> ModelResponse:
    """Parse the body of a successful response."""
    response = parse_body(_ChatCompletion, content)
    choice = response.choices[0]
    reason = choice.finish_reason or ""
    return ModelResponse(
        text=choice.message.content or "",
        ending="refused" if choice.message.refusal else ENDINGS.get(reason, "unknown"),
        finish_reason="refusal" if choice.message.refusal else reason,
        tokens_in=response.usage.prompt_tokens if response.usage else None,
        tokens_out=response.usage.completion_tokens if response.usage else None,
    )


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


def initial_capabilities(settings: ModelSettings) -> ServiceCapabilities:
    """Use the new name of the token limit only for OpenAI: not all other services support it."""
    is_openai = urlsplit(_base_url(settings)).hostname == urlsplit(BASE_URL).hostname
    name: TokenLimitName = "max_completion_tokens" if is_openai else "max_tokens"
    return ServiceCapabilities(limit_parameter=name)


def build_request(
    prompt: JudgePrompt, settings: ModelSettings, capabilities: ServiceCapabilities
) -> ProviderRequest:
    """Build the HTTP request."""
    return build_chat_request(build_url(settings, PATH), prompt, settings, capabilities)


def build_url(settings: ModelSettings, path: str) -> str:
    """Build the URL of the API ``path``."""
    return f"{_base_url(settings)}/{path}"


def make_key_header(key: str) -> tuple[str, str]:
    """Return the name and value of the header for an API key."""
    return "Authorization", f"Bearer {key}"


def _base_url(settings: ModelSettings) -> str:
    return (settings.base_url or BASE_URL).rstrip("/")
