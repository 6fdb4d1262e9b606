"""Provider for OpenAI and services with its Chat Completions API (Ollama, vLLM, LiteLLM, ...)."""

from urllib.parse import urlsplit

from agentci.judges import chat
from agentci.judges.provider import JSON_HEADERS, ProviderRequest, ServiceCapabilities
from agentci.model.judges import JudgePrompt, ModelResponse, ModelSettings

BASE_URL = "https://api.openai.com/v1"
FORMATS = chat.FORMATS
SUPPORTS_EFFORT = True


def initial_capabilities(settings: ModelSettings) -> ServiceCapabilities:
    """Use the new name of the token limit only for OpenAI: not all other services support it."""
    is_openai = urlsplit(_base_url(settings)).hostname == urlsplit(BASE_URL).hostname
    return ServiceCapabilities(
        format=FORMATS[0], limit_parameter="max_completion_tokens" if is_openai else "max_tokens"
    )


def build_request(
    prompt: JudgePrompt, settings: ModelSettings, capabilities: ServiceCapabilities
) -> ProviderRequest:
    """Build the HTTP request."""
    url = build_url(settings, chat.PATH)
    return ProviderRequest(
        url=url, headers=JSON_HEADERS, body=chat.build_body(prompt, settings, capabilities)
    )


def build_url(settings: ModelSettings, path: str) -> str:
    """Build the URL of the API ``path``."""
    return f"{_base_url(settings)}/{path}"


def make_key_header(key: str) -> tuple[str, str]:
    """Return the name and value of the header for an API key."""
    return "Authorization", f"Bearer {key}"


def parse_response(content: bytes) -> ModelResponse:
    """Parse the body of a successful response."""
    return chat.parse_response(content)


def _base_url(settings: ModelSettings) -> str:
    return (settings.base_url or BASE_URL).rstrip("/")
