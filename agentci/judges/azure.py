"""Provider for Azure OpenAI: the v1 API, and the dated APIs with the deployment in the URL."""

from urllib.parse import quote

from agentci.judges import chat
from agentci.judges.provider import JSON_HEADERS, ProviderRequest, ServiceCapabilities
from agentci.model.judges import JudgePrompt, ModelResponse, ModelSettings

BASE_URL = ""
FORMATS = chat.FORMATS
SUPPORTS_EFFORT = True


def initial_capabilities(settings: ModelSettings) -> ServiceCapabilities:
    """Return the same capabilities for all deployments, as their model is unknown."""
    del settings
    return ServiceCapabilities(format=FORMATS[0])


def build_request(
    prompt: JudgePrompt, settings: ModelSettings, capabilities: ServiceCapabilities
) -> ProviderRequest:
    """Build the HTTP request."""
    url = build_url(settings, chat.PATH)
    return ProviderRequest(
        url=url, headers=JSON_HEADERS, body=chat.build_body(prompt, settings, capabilities)
    )


def build_url(settings: ModelSettings, path: str) -> str:
    """Build the URL of the API ``path``.

    ``base_url`` is the resource, with or without ``/openai/v1``.
    """
    resource = settings.base_url.rstrip("/").removesuffix("/v1").removesuffix("/openai")
    if not settings.api_version:
        return f"{resource}/openai/v1/{path}"
    deployment, version = quote(settings.model, safe=""), quote(settings.api_version, safe="")
    return f"{resource}/openai/deployments/{deployment}/{path}?api-version={version}"


def make_key_header(key: str) -> tuple[str, str]:
    """Return the name and value of the header for an API key."""
    return "api-key", key


def parse_response(content: bytes) -> ModelResponse:
    """Parse the body of a successful response."""
    return chat.parse_response(content)
