"""Provider for Google's Gemini API."""

from typing import Annotated, Final
from urllib.parse import quote

from pydantic import Field

from agentci.evaluators.prompts import make_answer_schema
from agentci.judges import provider
from agentci.model.json import Json, JsonObject
from agentci.model.judges import FinishStatus, JudgePrompt, ModelResponse, ModelSettings

BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
FORMATS: tuple[provider.ResponseFormat, ...] = ("json_schema", "json_object", "prompt")
SUPPORTS_EFFORT = False
initial_capabilities = provider.assume_all_capabilities
ENDINGS: Final[dict[str, FinishStatus]] = {
    "STOP": "complete",
    "MAX_TOKENS": "truncated",
    "SAFETY": "refused",
    "RECITATION": "refused",
    "BLOCKLIST": "refused",
    "PROHIBITED_CONTENT": "refused",
    "SPII": "refused",
}


def build_request(
    prompt: JudgePrompt, settings: ModelSettings, capabilities: provider.ServiceCapabilities
) -> provider.ProviderRequest:
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
    base = (settings.base_url or BASE_URL).rstrip("/")
    model = quote(settings.model.removeprefix("models/"), safe="")
    return provider.ProviderRequest(
        url=f"{base}/models/{model}:generateContent",
        headers=provider.JSON_HEADERS,
        body=provider.encode_body(
            {
                "contents": [{"role": "user", "parts": [{"text": prompt.user}]}],
                **(system if prompt.system else {}),
                "generationConfig": generation,
            }
        ),
    )


def make_key_header(key: str) -> tuple[str, str]:
    """Return the name and value of the header for an API key."""
    return "x-goog-api-key", key


def parse_response(content: bytes) -> ModelResponse:
    """Parse the body of a successful response; a blocked prompt has no candidates."""
    response = provider.parse_body(_GeminiResponse, content)
    candidate = response.candidates[0] if response.candidates else _GeminiCandidate()
    reason, ending = candidate.finish_reason, ENDINGS.get(candidate.finish_reason, "unknown")
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


class _GeminiPart(provider.ServiceModel):
    text: str = ""
    thought: bool = False


class _GeminiContent(provider.ServiceModel):
    parts: tuple[_GeminiPart, ...] = ()


class _GeminiCandidate(provider.ServiceModel):
    content: _GeminiContent = _GeminiContent()
    finish_reason: str = Field(default="", alias="finishReason")


class _GeminiFeedback(provider.ServiceModel):
    block_reason: str = Field(default="", alias="blockReason")


class _GeminiUsage(provider.ServiceModel):
    prompt: Annotated[provider.TokenCount, Field(alias="promptTokenCount")]
    candidates: Annotated[provider.TokenCount, Field(alias="candidatesTokenCount")] = 0
    thoughts: Annotated[provider.TokenCount, Field(alias="thoughtsTokenCount")] = 0


class _GeminiResponse(provider.ServiceModel):
    candidates: tuple[_GeminiCandidate, ...] = ()
    feedback: _GeminiFeedback = Field(default=_GeminiFeedback(), alias="promptFeedback")
    usage: _GeminiUsage | None = Field(default=None, alias="usageMetadata")
