"""What every provider is: how one kind of service is asked, and how its answers are read."""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from agentci.errors import EvaluatorError
from agentci.model.judging import ModelReply, ModelSettings, Question

# How a service is told the form of a reply, the strictest first. The prompt says it in any case.
Format: TypeAlias = Literal["json_schema", "json_object", "prompt"]
# What OpenAI calls the limit of a reply, and what it was called before.
CapName: TypeAlias = Literal["max_completion_tokens", "max_tokens"]


class NoVerdictError(EvaluatorError):
    """A reply came, and it is no verdict: this sample counts for nothing."""


class UnreadableError(NoVerdictError):
    """A reply holds no verdict in a form that we can read; the model may write it once more."""


class Way(Struct, frozen=True, kw_only=True):
    """How much of its language a service is taken to understand.

    Attributes:
        has_other_cap: whether ``cap_name`` is the second that was tried.
    """

    format: Format
    cap_name: CapName = "max_completion_tokens"
    has_other_cap: bool = False
    sends_effort: bool = True
    sends_temperature: bool = True


class Call(Struct, frozen=True, kw_only=True):
    """A request, but for the key: to be compared, shown and cached."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Provider(Protocol):
    """Pure functions; a module is one."""

    BASE_URL: str
    """Where its service is; empty where that has to be said."""

    FORMATS: tuple[Format, ...]
    """That its API has, the strictest first."""

    TAKES_EFFORT: bool
    """Whether its API lets one say how long a model thinks."""

    def first_way(self, settings: ModelSettings) -> Way:
        """How the service is asked before it has objected to anything."""
        ...

    def call(self, question: Question, settings: ModelSettings, way: Way) -> Call:
        """Make the request."""
        ...

    def key_header(self, key: str) -> tuple[str, str]:
        """The header that carries a key, and its value."""
        ...

    def read(self, content: bytes) -> ModelReply:
        """Read the body of a success.

        Raises:
            GarbledError: it is no JSON.
            EvaluatorError: it is not what the API says.
        """
        ...
