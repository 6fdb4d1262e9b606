"""Workload identity federation: exchanges the identity token of a workflow for an access token.

The addresses are not configurable: a config could otherwise send an identity token that
services trust to any server.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from msgspec import Struct

from agentci._util.text.suggest import join_with_or
from agentci.judges.provider import JSON_HEADERS, ProviderRequest
from agentci.model.judges import IdentityFederation, ModelSettings

FORM_HEADERS: Final = {
    "Accept": "application/json",
    "Content-Type": "application/x-www-form-urlencoded",
}
# Path of Azure addresses that belong to a Foundry project.
FOUNDRY_PROJECT_PATH: Final = "/api/projects/"


class TokenExchange(Struct, frozen=True, kw_only=True):
    """How one service exchanges an identity token.

    Attributes:
        audience: default audience of the identity token.
        required_ids, optional_ids: the ids in a config.
        allowed_hosts: hosts that may receive tokens; a leading dot allows all subdomains.
        headers: sent with model requests in addition to the token.
        build_request: builds the request from the settings, the ids and the identity token.
    """

    audience: str
    required_ids: tuple[str, ...]
    optional_ids: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...]
    headers: Mapping[str, str]
    build_request: Callable[[ModelSettings, Mapping[str, str], str], ProviderRequest]


def find_federation_problems(
    settings: ModelSettings, federation: IdentityFederation
) -> Iterator[str]:
    """List problems that prevent the exchange of an identity token."""
    exchange = TOKEN_EXCHANGES.get(settings.provider)
    if exchange is None:
        supported = join_with_or(tuple(TOKEN_EXCHANGES))
        yield f"the provider {settings.provider!r} does not support github-oidc; use {supported}"
        return
    given = dict(federation.ids)
    missing = [name for name in exchange.required_ids if name not in given]
    if missing:
        yield f"`auth` needs {', '.join(missing)}"
    unknown = [
        name for name in given if name not in (*exchange.required_ids, *exchange.optional_ids)
    ]
    if unknown:
        yield f"`auth` has keys that {settings.provider} does not support: {', '.join(unknown)}"
    if settings.base_url and not _is_allowed_host(settings.base_url, exchange.allowed_hosts):
        yield f"`base_url` is not a host of {settings.provider}, so it must not receive a token"
    if settings.key_variable:
        yield f"`auth` and the key in {settings.key_variable} exclude each other; remove one"


def _is_allowed_host(url: str, hosts: tuple[str, ...]) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "https" and any(
        host.endswith(each) if each.startswith(".") else host == each for each in hosts
    )


def _build_openai_request(
    _: ModelSettings, ids: Mapping[str, str], identity: str
) -> ProviderRequest:
    value = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": identity,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        **ids,
    }
    return ProviderRequest(
        url="https://auth.openai.com/oauth/token",
        headers=JSON_HEADERS,
        body=json.dumps(value).encode(),
    )


def _build_anthropic_request(
    _: ModelSettings, ids: Mapping[str, str], identity: str
) -> ProviderRequest:
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    value = {"grant_type": grant, "assertion": identity, **ids}
    return ProviderRequest(
        url="https://api.anthropic.com/v1/oauth/token",
        headers={**JSON_HEADERS, "anthropic-beta": "oauth-2025-04-20,oidc-federation-2026-04-01"},
        body=json.dumps(value).encode(),
    )


def _build_azure_request(
    settings: ModelSettings, ids: Mapping[str, str], identity: str
) -> ProviderRequest:
    is_foundry = FOUNDRY_PROJECT_PATH in settings.base_url
    resource = "ai.azure" if is_foundry else "cognitiveservices.azure"
    value = {
        "client_id": ids["client_id"],
        "grant_type": "client_credentials",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": identity,
        "scope": f"https://{resource}.com/.default",
    }
    tenant = quote(ids["tenant_id"], safe="")
    return ProviderRequest(
        url=f"https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token",
        headers=FORM_HEADERS,
        body=urlencode(value).encode(),
    )


TOKEN_EXCHANGES: Final[Mapping[str, TokenExchange]] = {
    "openai": TokenExchange(
        audience="https://api.openai.com/v1",
        required_ids=("identity_provider_id", "service_account_id"),
        allowed_hosts=("api.openai.com", ".api.openai.com"),
        headers={},
        build_request=_build_openai_request,
    ),
    "anthropic": TokenExchange(
        audience="https://api.anthropic.com",
        required_ids=("federation_rule_id", "organization_id"),
        optional_ids=("service_account_id", "workspace_id"),
        allowed_hosts=("api.anthropic.com",),
        headers={"anthropic-beta": "oauth-2025-04-20"},
        build_request=_build_anthropic_request,
    ),
    "azure": TokenExchange(
        audience="api://AzureADTokenExchange",
        required_ids=("tenant_id", "client_id"),
        allowed_hosts=(
            ".openai.azure.com",
            ".cognitiveservices.azure.com",
            ".services.ai.azure.com",
        ),
        headers={},
        build_request=_build_azure_request,
    ),
}
