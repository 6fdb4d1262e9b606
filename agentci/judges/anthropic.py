"""Provider for Anthropic's Messages API."""

from typing import Final

from agentci.evaluators.prompts import make_answer_schema
from agentci.judges import provider
from agentci.model.json import Json
from agentci.model.judges import FinishStatus, JudgePrompt, ModelResponse, ModelSettings

BASE_URL = "https://api.anthropic.com"
API_VERSION: Final = "2026-10-21"
FORMATS: tuple[provider.ResponseFormat, ...] = ("json_schema", "prompt")
SUPPORTS_EFFORT = True
initial_capabilities = provider.assume_all_capabilities
ENDINGS: Final[dict[str, FinishStatus]] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
}


def build_request(
    prompt: JudgePrompt, settings: ModelSettings, capabilities: provider.ServiceCapabilities
) -> provider.ProviderRequest:
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
    base = (settings.base_url or BASE_URL).rstrip("/").removesuffix("/v1")
    version = settings.api_version or API_VERSION
    return provider.ProviderRequest(
        url=f"{base}/v1/messages",
        headers={**provider.JSON_HEADERS, "anthropic-version": version},
        body=provider.encode_body(value),
    )


def make_key_header(key: str) -> tuple[str, str]:
    """Return the name and value of the header for an API key."""
    return "x-api-key", key


def parse_response(content: bytes) -> ModelResponse:
    """Parse the body of a successful response."""
    response = provider.parse_body(_AnthropicResponse, content)
    reason = response.stop_reason or ""
    return ModelResponse(
        text="".join(block.text for block in response.content if block.type == "text"),
        ending=ENDINGS.get(reason, "unknown"),
        finish_reason=reason,
        tokens_in=response.usage.input_tokens if response.usage else None,
        tokens_out=response.usage.output_tokens if response.usage else None,
    )


class _AnthropicBlock(provider.ServiceModel):
    type: str
    text: str = ""


class _AnthropicUsage(provider.ServiceModel):
    input_tokens: provider.TokenCount
    output_tokens: provider.TokenCount


class _AnthropicResponse(provider.ServiceModel):
    content: list[_AnthropicBlock]
    stop_reason: str | None = None
    usage: _AnthropicUsage | None = None
