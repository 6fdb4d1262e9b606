"""Provider for Azure OpenAI: the v1 API, and the dated APIs with the deployment in the URL."""

from urllib.parse import quote

from agentci.judges import openai
from agentci.judges.openai import PATH, build_chat_request
from agentci.judges.provider import ProviderRequest, ServiceCapabilities, assume_all_capabilities
from agentci.model.judges import JudgePrompt, ModelSettings

BASE_URL = ""
FORMATS = openai.FORMATS
SUPPORTS_EFFORT = openai.SUPPORTS_EFFORT
initial_capabilities = assume_all_capabilities
parse_response = openai.parse_response


def build_request(
    prompt: JudgePrompt, settings: ModelSettings, capabilities: ServiceCapabilities
) -> ProviderRequest:
    """Build the HTTP request."""
    return build_chat_request(build_url(settings, PATH), prompt, settings, capabilities)


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
