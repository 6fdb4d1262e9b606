"""How services take the identity of a workflow for a key: what each is sent, and to where.

The addresses are no settings: a config that named another one would be handed an identity that
services trust.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from msgspec import Struct

from agentci._util.text.suggest import one_of
from agentci.judges.json_body import JSON_HEADERS
from agentci.judges.provider import Call
from agentci.model.judging import Federation, ModelSettings

FORM_HEADERS: Final = {
    "Accept": "application/json",
    "Content-Type": "application/x-www-form-urlencoded",
}
# Of Azure's addresses, those of a project of Foundry.
OF_PROJECT: Final = "/api/projects/"


class Exchange(Struct, frozen=True, kw_only=True):
    """How one service makes a token of an identity.

    Attributes:
        audience: whom an identity is for, where a config does not say.
        needs, takes: the ids that a config names.
        hosts: that tokens are sent to; with a dot before them, all below them.
        headers: of questions, beside the token.
        call: is given the identity.
    """

    audience: str
    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()
    hosts: tuple[str, ...]
    headers: Mapping[str, str]
    call: Callable[[ModelSettings, Mapping[str, str], str], Call]


def objections(settings: ModelSettings, federation: Federation) -> Iterator[str]:
    """What keeps an identity from being taken for a key, a sentence each."""
    exchange = EXCHANGES.get(settings.provider)
    if exchange is None:
        takers = one_of(tuple(EXCHANGES))
        yield f"the provider {settings.provider!r} takes no github-oidc; it is {takers} that do"
        return
    given = dict(federation.ids)
    lacking = [name for name in exchange.needs if name not in given]
    if lacking:
        yield f"its `auth` lacks {', '.join(lacking)}"
    strange = [name for name in given if name not in (*exchange.needs, *exchange.takes)]
    if strange:
        yield f"its `auth` has {', '.join(strange)}, which {settings.provider} does not know"
    if settings.base_url and not _is_home(settings.base_url, exchange.hosts):
        yield f"its base_url is not one of {settings.provider}, and gets no token of it"
    if settings.key_variable:
        yield f"it has both `auth` and the key in {settings.key_variable}: leave one of them out"


def _is_home(url: str, hosts: tuple[str, ...]) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "https" and any(
        host.endswith(each) if each.startswith(".") else host == each for each in hosts
    )


def _of_openai(_: ModelSettings, ids: Mapping[str, str], identity: str) -> Call:
    value = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": identity,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        **ids,
    }
    return Call(
        url="https://auth.openai.com/oauth/token",
        headers=JSON_HEADERS,
        body=json.dumps(value).encode(),
    )


def _of_anthropic(_: ModelSettings, ids: Mapping[str, str], identity: str) -> Call:
    value = {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": identity,
        **ids,
    }
    return Call(
        url="https://api.anthropic.com/v1/oauth/token",
        headers={
            **JSON_HEADERS,
            "anthropic-beta": "oauth-2025-04-20,oidc-federation-2026-04-01",
        },
        body=json.dumps(value).encode(),
    )


def _of_azure(settings: ModelSettings, ids: Mapping[str, str], identity: str) -> Call:
    resource = "ai.azure" if OF_PROJECT in settings.base_url else "cognitiveservices.azure"
    value = {
        "client_id": ids["client_id"],
        "grant_type": "client_credentials",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": identity,
        "scope": f"https://{resource}.com/.default",
    }
    tenant = quote(ids["tenant_id"], safe="")
    return Call(
        url=f"https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token",
        headers=FORM_HEADERS,
        body=urlencode(value).encode(),
    )


EXCHANGES: Final[Mapping[str, Exchange]] = {
    "openai": Exchange(
        audience="https://api.openai.com/v1",
        needs=("identity_provider_id", "service_account_id"),
        hosts=("api.openai.com", ".api.openai.com"),
        headers={},
        call=_of_openai,
    ),
    "anthropic": Exchange(
        audience="https://api.anthropic.com",
        needs=("federation_rule_id", "organization_id"),
        takes=("service_account_id", "workspace_id"),
        hosts=("api.anthropic.com",),
        headers={"anthropic-beta": "oauth-2025-04-20"},
        call=_of_anthropic,
    ),
    "azure": Exchange(
        audience="api://AzureADTokenExchange",
        needs=("tenant_id", "client_id"),
        hosts=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
        headers={},
        call=_of_azure,
    ),
}
