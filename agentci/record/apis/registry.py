"""The table of APIs, and the variables through which clients find them."""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from agentci.record.apis import (
    anthropic,
    gemini,
    openai_chat,
    openai_responses,
    other_requests,
)
from agentci.record.apis.model_api import ModelApi

APIS: Final[tuple[ModelApi, ...]] = (openai_chat, openai_responses, anthropic, gemini)


class ApiVariable(Struct, frozen=True, kw_only=True):
    """An environment variable with the base URL of an API.

    Attributes:
        route: name in the proxy's addresses.
        suffix: end of the base URL that clients of the variable expect.
        fallbacks: variables that name the address if this one is not set.
        vendor: the vendor's address, which clients use without a variable; empty if each customer
            has one, and then the variable is only set in place of the user's.
        conflict: a variable of the user with which this one is not added, as clients refuse both.
    """

    name: str
    route: str
    vendor: str = ""
    suffix: str = ""
    fallbacks: tuple[str, ...] = ()
    conflict: str = ""

    def is_set_for(self, environ: Mapping[str, str]) -> bool:
        """Return whether a program with this environment gets the variable."""
        if not environ.get(self.name) and environ.get(self.conflict):
            return False
        return bool(self.find_upstream(environ))

    def find_upstream(self, environ: Mapping[str, str]) -> str:
        """Return the base URL that clients would use without the proxy."""
        named = (environ.get(each, "").strip() for each in (self.name, *self.fallbacks))
        return (next(filter(None, named), "") or self.vendor).rstrip("/")


AZURE_VARIABLE: Final = "AZURE_OPENAI_ENDPOINT"
# What the paths of Azure's clients begin with: `/openai/deployments/NAME/chat/completions`.
AZURE_PATH: Final = "/openai/"
_OPENAI: Final = "https://api.openai.com/v1"
API_VARIABLES: Final = (
    ApiVariable(
        name="OPENAI_BASE_URL",
        route="openai",
        vendor=_OPENAI,
        suffix="/v1",
        fallbacks=("OPENAI_API_BASE",),
    ),
    ApiVariable(
        name="OPENAI_API_BASE",
        route="openai-api-base",
        vendor=_OPENAI,
        suffix="/v1",
        fallbacks=("OPENAI_BASE_URL",),
        conflict=AZURE_VARIABLE,  # with both, LangChain's client of Azure does not start
    ),
    ApiVariable(name=AZURE_VARIABLE, route="azure-openai"),
    ApiVariable(name="ANTHROPIC_BASE_URL", route="anthropic", vendor="https://api.anthropic.com"),
    ApiVariable(
        name="GOOGLE_GEMINI_BASE_URL",
        route="gemini",
        vendor="https://generativelanguage.googleapis.com",
    ),
)


class UnrecordedService(Struct, frozen=True, kw_only=True):
    """A service whose requests the proxy does not record.

    Attributes:
        reason: why not.
        variables: of the environment, which lead clients to the service.
        modules: of Python, which are its clients.
    """

    name: str
    reason: str
    variables: tuple[str, ...]
    modules: tuple[str, ...]


UNRECORDED_SERVICES: Final = (
    UnrecordedService(
        name="Amazon Bedrock",
        reason="they are signed for its address",
        variables=(
            *("AWS_BEARER_TOKEN_BEDROCK", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"),
            *("CLAUDE_CODE_USE_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL"),
        ),
        modules=("botocore",),
    ),
    UnrecordedService(
        name="Vertex AI",
        reason="its address depends on the region",
        variables=(
            *("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_VERTEX_BASE_URL", "VERTEXAI_PROJECT"),
            *("CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_VERTEX_PROJECT_ID"),
        ),
        modules=("vertexai",),
    ),
)
_OFF: Final = frozenset({"", "0", "false"})


def find_unrecorded_service(environ: Mapping[str, str], modules: Collection[str]) -> str:
    """Describe the service that an agent seems to use; empty if there is no sign of one.

    Args:
        modules: of Python, that the agent imported.
    """
    for service in UNRECORDED_SERVICES:
        signs = [f"`{name}` is set" for name in service.variables if _is_on(environ.get(name, ""))]
        signs += [f"`{name}` is imported" for name in service.modules if name in modules]
        if signs:
            return f"requests to {service.name} are not recorded, as {service.reason} ({signs[0]})"
    return ""


def _is_on(value: str) -> bool:
    return value.strip().lower() not in _OFF


# What the paths of clients begin with, by route; it is part of the base URL.
SUFFIXES: Final = {each.route: each.suffix for each in API_VARIABLES}


def find_api_or_other(method: str, path: str) -> ModelApi:
    """Return the API that a request uses; ``other_requests`` if it does not ask a model.

    Args:
        path: without the query.
    """
    asking = (api for api in APIS if method == "POST" and api.matches(path))
    return next(asking, other_requests)
