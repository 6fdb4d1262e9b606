"""Azure OpenAI: its v1 API, and the dated ones that name the deployment in the URL."""

from urllib.parse import quote

from agentci.judges import chat
from agentci.judges.provider import JSON_HEADERS, ProviderRequest, ServiceCapabilities
from agentci.model.judges import JudgePrompt, ModelResponse, ModelSettings

BASE_URL = ""
FORMATS = chat.FORMATS
SUPPORTS_EFFORT = True


def initial_capabilities(settings: ModelSettings) -> ServiceCapabilities:
    """The same for all deployments: nobody can tell which model is behind one."""
    del settings
    return ServiceCapabilities(format=FORMATS[0])


def build_request(
    question: JudgePrompt, settings: ModelSettings, way: ServiceCapabilities
) -> ProviderRequest:
    """Make the request."""
    url = build_url(settings, chat.PATH)
    return ProviderRequest(
        url=url, headers=JSON_HEADERS, body=chat.build_body(question, settings, way)
    )


def build_url(settings: ModelSettings, path: str) -> str:
    """Where the API that ``path`` names is.

    ``base_url`` is the resource, with or without ``/openai/v1``.
    """
    resource = settings.base_url.rstrip("/").removesuffix("/v1").removesuffix("/openai")
    if not settings.api_version:
        return f"{resource}/openai/v1/{path}"
    deployment, version = quote(settings.model, safe=""), quote(settings.api_version, safe="")
    return f"{resource}/openai/deployments/{deployment}/{path}?api-version={version}"


def make_key_header(key: str) -> tuple[str, str]:
    """The header that carries a key, and its value."""
    return "api-key", key


def parse_response(content: bytes) -> ModelResponse:
    """Read the body of a success."""
    return chat.parse_response(content)
