"""OpenAI, and all that speak its Chat Completions: Ollama, vLLM, LiteLLM and others."""

from urllib.parse import urlsplit

from agentci.judges import chat
from agentci.judges.json_body import JSON_HEADERS
from agentci.judges.provider import Call, Way
from agentci.model.judging import ModelReply, ModelSettings, Question

BASE_URL = "https://api.openai.com/v1"
FORMATS = chat.FORMATS
TAKES_EFFORT = True


def first_way(settings: ModelSettings) -> Way:
    """OpenAI wants the new name of the limit; of the others not all heed it, all know the old."""
    is_openai = urlsplit(_base(settings)).hostname == urlsplit(BASE_URL).hostname
    return Way(format=FORMATS[0], cap_name="max_completion_tokens" if is_openai else "max_tokens")


def call(question: Question, settings: ModelSettings, way: Way) -> Call:
    """Make the request."""
    url = address(settings, chat.PATH)
    return Call(url=url, headers=JSON_HEADERS, body=chat.body(question, settings, way))


def address(settings: ModelSettings, path: str) -> str:
    """Where the API that ``path`` names is."""
    return f"{_base(settings)}/{path}"


def key_header(key: str) -> tuple[str, str]:
    """The header that carries a key, and its value."""
    return "Authorization", f"Bearer {key}"


def read(content: bytes) -> ModelReply:
    """Read the body of a success."""
    return chat.read(content)


def _base(settings: ModelSettings) -> str:
    return (settings.base_url or BASE_URL).rstrip("/")
