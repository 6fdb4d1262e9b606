"""The table of APIs, and the variables through which clients find them."""

import re
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
            has one: the variable is then set only if the user set it.
        conflict: if the user set this variable, the own one is not added: clients refuse both.
        needs: variables of which one must be set, as clients otherwise do not start with this one.
        needs_if: a switch without which ``needs`` does not apply; empty if it always applies.
    """

    name: str
    route: str
    vendor: str = ""
    suffix: str = ""
    fallbacks: tuple[str, ...] = ()
    conflict: str = ""
    needs: tuple[str, ...] = ()
    needs_if: str = ""

    def is_set_for(self, environ: Mapping[str, str]) -> bool:
        """Return whether a program with this environment gets the variable."""
        if not environ.get(self.name) and environ.get(self.conflict):
            return False
        is_needed = not self.needs_if or _is_on(environ.get(self.needs_if, ""))
        if environ.get(self.name) or not self.needs or not is_needed:
            return bool(self.find_upstream(environ))
        return any(environ.get(each) for each in self.needs)

    def find_suffix(self, environ: Mapping[str, str]) -> str:
        """Return the end of the base URL in this environment."""
        # Google's clients take any base URL but Google's for the whole address.
        is_whole = not self.find_upstream(environ).endswith(_GOOGLE_HOST)
        return "" if self.suffix == _GOOGLE_SUFFIX and is_whole else self.suffix

    def find_upstream(self, environ: Mapping[str, str]) -> str:
        """Return the base URL that clients would use without the proxy."""
        named = (environ.get(each, "").strip() for each in (self.name, *self.fallbacks))
        return (next(filter(None, named), "") or self.vendor).rstrip("/")


AZURE_VARIABLE: Final = "AZURE_OPENAI_ENDPOINT"
LITELLM_AZURE_VARIABLE: Final = "AZURE_API_BASE"
# Prefix of the paths of Azure's clients: `/openai/deployments/NAME/chat/completions`.
AZURE_PATH: Final = "/openai/"
_GEMINI: Final = "https://generativelanguage.googleapis.com"
_VERTEX: Final = "https://aiplatform.googleapis.com"
_USE_VERTEX: Final = "GOOGLE_GENAI_USE_VERTEXAI"
# With a base URL, Google's client needs one of them; without one, it looks for the project.
_VERTEX_ACCESS: Final = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_API_KEY", "GEMINI_API_KEY")
_GOOGLE_HOST: Final = ".googleapis.com"
_GOOGLE_SUFFIX: Final = f"/aiplatform{_GOOGLE_HOST}"
_VERTEX_PATH: Final = re.compile(
    r"/v\w+/(?:projects/[^/]+/locations/(?P<location>[a-z0-9-]+)|publishers)/"
)
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
    ApiVariable(name=LITELLM_AZURE_VARIABLE, route="azure-api-base"),
    ApiVariable(name="ANTHROPIC_BASE_URL", route="anthropic", vendor="https://api.anthropic.com"),
    ApiVariable(
        name="GOOGLE_GEMINI_BASE_URL",  # also read for Vertex AI, if only the environment names it
        route="gemini",
        vendor=_GEMINI,
        suffix=_GOOGLE_SUFFIX,
        needs=_VERTEX_ACCESS,
        needs_if=_USE_VERTEX,
    ),
    ApiVariable(
        name="GOOGLE_VERTEX_BASE_URL",
        route="vertex",
        vendor=_VERTEX,
        suffix=_GOOGLE_SUFFIX,
        needs=_VERTEX_ACCESS,
    ),
)


def find_address(upstream: str, path: str) -> str:
    """Return the base URL for a request, which for Vertex AI depends on its location.

    Args:
        upstream: of the request's route.
        path: of the API.
    """
    if upstream not in (_GEMINI, _VERTEX):
        return upstream
    found = _VERTEX_PATH.match(path)
    location = found["location"] if found else ""
    if not found:
        return _GEMINI
    if location in ("us", "eu"):
        return f"https://aiplatform.{location}.rep.googleapis.com"
    regional = f"https://{location}-aiplatform.googleapis.com"
    return _VERTEX if location in (None, "global") else regional


class UnrecordedService(Struct, frozen=True, kw_only=True):
    """A service whose requests the proxy does not record.

    Attributes:
        reason: why not.
        variables: environment variables that direct clients to the service.
        modules: Python modules that are its clients.
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
        reason=(
            "only google-genai reaches the recorder, and needs GOOGLE_CLOUD_PROJECT or "
            "GOOGLE_API_KEY for it"
        ),
        variables=(
            *(_USE_VERTEX, "VERTEXAI_PROJECT"),
            *("CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_VERTEX_PROJECT_ID"),
        ),
        modules=("vertexai",),
    ),
    UnrecordedService(
        name="Azure OpenAI",
        reason="the client makes the address from the resource name",
        variables=("AZURE_RESOURCE_NAME",),
        modules=(),
    ),
)
_OFF: Final = frozenset({"", "0", "false"})


def find_unrecorded_service(environ: Mapping[str, str], modules: Collection[str]) -> str:
    """Describe the service that an agent seems to use; empty if there is no sign of one.

    Args:
        modules: Python modules that the agent imported.
    """
    for service in UNRECORDED_SERVICES:
        signs = [f"`{name}` is set" for name in service.variables if _is_on(environ.get(name, ""))]
        signs += [f"`{name}` is imported" for name in service.modules if name in modules]
        if signs:
            return f"requests to {service.name} are not recorded, as {service.reason} ({signs[0]})"
    return ""


def _is_on(value: str) -> bool:
    return value.strip().lower() not in _OFF


# Prefixes of the paths of clients, by route; they are part of the base URL.
SUFFIXES: Final = {each.route: each.suffix for each in API_VARIABLES}


def find_api_or_other(method: str, path: str) -> ModelApi:
    """Return the API that a request uses; ``other_requests`` if it calls no model.

    Args:
        path: without the query.
    """
    asking = (api for api in APIS if method == "POST" and api.matches(path))
    return next(asking, other_requests)
