"""Azure OpenAI: its v1 API, and the dated ones that name the deployment in the URL."""

from urllib.parse import quote

from agentci.judges import chat
from agentci.judges.json_body import JSON_HEADERS
from agentci.judges.provider import Call, Way
from agentci.model.judging import ModelReply, ModelSettings, Question

BASE_URL = ""
FORMATS = chat.FORMATS
TAKES_EFFORT = True


def first_way(settings: ModelSettings) -> Way:
    """The same for all deployments: nobody can tell which model is behind one."""
    del settings
    return Way(format=FORMATS[0])


def call(question: Question, settings: ModelSettings, way: Way) -> Call:
    """Make the request."""
    url = address(settings, chat.PATH)
    return Call(url=url, headers=JSON_HEADERS, body=chat.body(question, settings, way))


def address(settings: ModelSettings, path: str) -> str:
    """Where the API that ``path`` names is.

    ``base_url`` is the resource, with or without ``/openai/v1``.
    """
    resource = settings.base_url.rstrip("/").removesuffix("/v1").removesuffix("/openai")
    if not settings.api_version:
        return f"{resource}/openai/v1/{path}"
    deployment, version = quote(settings.model, safe=""), quote(settings.api_version, safe="")
    return f"{resource}/openai/deployments/{deployment}/{path}?api-version={version}"


def key_header(key: str) -> tuple[str, str]:
    """The header that carries a key, and its value."""
    return "api-key", key


def read(content: bytes) -> ModelReply:
    """Read the body of a success."""
    return chat.read(content)
