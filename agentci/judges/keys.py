"""API keys of model services: from the environment, or exchanged for a workflow identity.

The settings of a judge are checked before a run: missing values, retired services and models.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from threading import Lock
from typing import Annotated, Final
from urllib.parse import quote, urlencode, urlsplit

from msgspec import Struct
from pydantic import Field

from agentci._util.http import HttpResponse
from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count
from agentci._util.text.secrets import HIDDEN, redact
from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.config.variables import ConfigVariables
from agentci.errors import EvaluatorError, FetchError, SkippedError
from agentci.evaluators.judge_config import uses_default_key
from agentci.judges.providers import (
    COMMAND_PROVIDER,
    JSON_HEADERS,
    OPENAI,
    PROVIDERS,
    InvalidJsonError,
    ProviderRequest,
    ServiceModel,
    W,
    parse_body,
)
from agentci.judges.transport import (
    ServiceRequest,
    ServiceState,
    Transport,
    find_retryable_error,
    parse_api_error,
)
from agentci.model.judges import IdentityFederation, ModelResponse, ModelSettings
from agentci.model.values import replace

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

IDENTITY_URL: Final = "ACTIONS_ID_TOKEN_REQUEST_URL"
IDENTITY_TOKEN: Final = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"  # noqa: S105 (a name)
IDENTITY_VARIABLES: Final = (IDENTITY_URL, IDENTITY_TOKEN)
# Renew tokens this long before they expire: the time limit of a verdict, so that no token
# expires during a request.
EXPIRY_MARGIN_SECONDS: Final = 180.0
SUCCESS_STATUSES: Final = range(200, 300)
MAX_REASON_SHOWN: Final = 300
# Matches anything that may be part of a token.
_SECRET: Final = re.compile(r"[A-Za-z0-9_.+/=-]{40,}")


class TokenRefusedError(Exception):
    """A service refused to issue a token; the message is safe to show."""


@dataclass(slots=True, kw_only=True)
class _CachedToken:
    """The token of one service and identity, or the error of getting it."""

    lock: Lock = field(default_factory=Lock)
    token: str = field(default="", repr=False)
    valid_until: float = 0.0
    error: str = ""


class ShortLivedTokens:
    """Short-lived tokens of a run; thread-safe. Each is requested once, and again when it expires.

    Args:
        variables: the environment, with the address of GitHub's identity tokens.
    """

    def __init__(self, variables: ConfigVariables, transport: Transport) -> None:
        self._variables = variables
        self._transport = transport
        self._lock = Lock()
        self._slots: dict[tuple[str, str, IdentityFederation], _CachedToken] = {}

    def get(self, settings: ModelSettings, federation: IdentityFederation, *, until: float) -> str:
        """Return a token for a service.

        Raises:
            EvaluatorError: the service issues none.
        """
        with self._lock:
            key = (settings.provider, settings.base_url, federation)
            slot = self._slots.setdefault(key, _CachedToken())
        with slot.lock:
            if slot.error:
                raise EvaluatorError(slot.error)
            if self._transport.clock() >= slot.valid_until:
                try:
                    response = self._request_token(settings, federation, until)
                except TokenRefusedError as error:
                    slot.error = str(error)
                    raise EvaluatorError(slot.error) from None
                seconds = max(response.expires_in - EXPIRY_MARGIN_SECONDS, response.expires_in / 2)
                slot.token = response.access_token
                self._variables.redactor.add(slot.token)
                slot.valid_until = self._transport.clock() + seconds
            return slot.token

    def _request_token(
        self, settings: ModelSettings, federation: IdentityFederation, until: float
    ) -> "_TokenResponse":
        exchange = TOKEN_EXCHANGES[settings.provider]
        identity = self._request_identity(federation.audience or exchange.audience, until)
        provider_request = exchange.build_request(settings, dict(federation.ids), identity)
        host = urlsplit(provider_request.url).hostname
        http_request = ServiceRequest(
            url=provider_request.url,
            headers=provider_request.headers,
            content=provider_request.body,
            has_key=True,
            until=until,
        )
        return self._send(
            http_request,
            _TokenResponse,
            f"{host} issued no token for this job's identity",
            "check the ids in `auth`, and that the service trusts this repository, branch and"
            " workflow",
        )

    def _request_identity(self, audience: str, until: float) -> str:
        url = self._variables.read_own(IDENTITY_URL, is_secret=False)
        token = self._variables.read_own(IDENTITY_TOKEN)
        http_request = ServiceRequest(
            url=f"{url}{'&' if '?' in url else '?'}audience={quote(audience, safe='')}",
            headers={"Accept": "application/json", "Authorization": f"bearer {token}"},
            content=None,
            has_key=True,
            until=until,
        )
        identity = self._send(
            http_request,
            _IdentityResponse,
            "GitHub issued no ID token for this job",
            "check that the job has `permissions: {id-token: write}`",
        ).value
        self._variables.redactor.add(identity)
        return identity

    def _send(self, http_request: ServiceRequest, model: type[W], problem: str, hint: str) -> W:
        """Send a request and parse the response.

        Raises:
            TokenRefusedError: the service refuses.
            EvaluatorError: no response; a later attempt may succeed.
        """

        def attempt(fetch: Callable[[], HttpResponse]) -> W:
            response = fetch()
            if response.status in SUCCESS_STATUSES:
                try:
                    return parse_body(model, response.content)
                except (InvalidJsonError, EvaluatorError):
                    raise TokenRefusedError(
                        f"{problem}: the response contains none; {hint}"
                    ) from None
            message = f"status {response.status}{_format_reason(response)}"
            if failure := find_retryable_error(response, message, now=time.time()):
                raise failure
            raise TokenRefusedError(f"{problem}: {message}; {hint}")

        try:
            return self._transport.send(http_request, ServiceState(), attempt)
        except FetchError as error:
            advice = f"; {error.hint}" if error.hint else ""
            raise EvaluatorError(f"{problem}: {error}{advice}") from None


class _IdentityResponse(ServiceModel):
    value: str = Field(min_length=1, repr=False)


class _TokenResponse(ServiceModel):
    access_token: str = Field(min_length=1, repr=False)
    expires_in: Annotated[float, Field(gt=0)]


class _OauthErrorResponse(ServiceModel):
    error_description: str = ""


def _format_reason(response: HttpResponse) -> str:
    """Return the service's reason for a refusal, without anything that may be a token."""
    details = parse_api_error(response.status, response.content)
    try:
        message = (
            parse_body(_OauthErrorResponse, response.content).error_description or details.message
        )
    except (InvalidJsonError, EvaluatorError):
        message = details.message
    message = truncate.short(
        escape.escape_for_log_line(_SECRET.sub(HIDDEN, message)), MAX_REASON_SHOWN
    )
    return f" ({message})" if message else ""


ID_REQUEST_DENIED: Final = (
    "this job cannot get an ID token from GitHub; add `permissions: {id-token: write}`"
)
NOT_IN_ACTIONS: Final = "`auth: {type: github-oidc}` works only in GitHub Actions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key and its headers; empty if none is needed."""

    secret: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def redact(self, text: str) -> str:
        """Remove the key from a text."""
        return redact(text, (self.secret,)) if self.secret else text

    def redact_response(self, response: ModelResponse) -> ModelResponse:
        """Remove the key from a response, which is cached and shown in reports."""
        message, reason = self.redact(response.text), self.redact(response.finish_reason)
        return replace(response, text=message, finish_reason=reason)


class ApiKeys:
    """The keys of a run; thread-safe.

    Args:
        variables: the environment.
        transport: used to request short-lived tokens.
        unavailable_reason: why keys are unavailable in this run; empty if they should exist.
    """

    def __init__(
        self, variables: ConfigVariables, transport: Transport, *, unavailable_reason: str = ""
    ) -> None:
        self.unavailable_reason = unavailable_reason
        self._variables = variables
        self._tokens = ShortLivedTokens(variables, transport)

    def explain_missing(self, settings: ModelSettings) -> str:
        """Explain which key is missing for a model; empty if none is."""
        name = settings.key_variable
        if settings.federation is not None:
            if all(self._variables.read_own(each, is_secret=False) for each in IDENTITY_VARIABLES):
                return ""
            is_step = self._variables.read_own("GITHUB_ACTIONS", is_secret=False) == "true"
            return ID_REQUEST_DENIED if is_step else NOT_IN_ACTIONS
        if name and not self._read_key(settings):
            return f"the environment variable {name} with the judge's key is not set"
        return ""

    def get(self, settings: ModelSettings, *, until: float) -> ApiKey:
        """Return the key of a service.

        Args:
            until: deadline, by the clock of the transport.

        Raises:
            EvaluatorError: a key is needed but missing.
            SkippedError: a key is needed, but unavailable in this run, as expected.
        """
        if message := self.explain_missing(settings):
            if self.unavailable_reason:
                raise SkippedError(f"{message}: {self.unavailable_reason}")
            raise EvaluatorError(message)
        if settings.federation is not None:
            token = self._tokens.get(settings, settings.federation, until=until)
            more = TOKEN_EXCHANGES[settings.provider].headers
            return ApiKey(secret=token, headers={"Authorization": f"Bearer {token}", **more})
        secret = self._read_key(settings)
        if not secret or settings.provider not in PROVIDERS:
            return ApiKey(secret=secret)
        header = PROVIDERS[settings.provider].make_key_header(secret)
        return ApiKey(secret=secret, headers=dict([header]))

    def _read_key(self, settings: ModelSettings) -> str:
        """The key in the environment; empty if it is not set, or the config may not name it."""
        name = settings.key_variable
        variables = self._variables
        return (variables.read_own if uses_default_key(settings) else variables.get)(name).strip()


WARNING_PERIOD: Final = timedelta(days=60)
LOOK_UP_SECONDS: Final = 15.0
OK: Final = 200


def reports_shutdown_dates(settings: ModelSettings) -> bool:
    """Whether the service reports shutdown dates of models: only OpenAI's own address does."""
    if settings.provider != "openai":
        return False
    given, own = (urlsplit(url).hostname for url in (settings.base_url, OPENAI.BASE_URL))
    return given in (None, own)


def find_shutdown_warning(
    settings: ModelSettings, transport: Transport, *, keys: ApiKeys, today: date
) -> str:
    """Warn about the shutdown date of a model at OpenAI; empty if there is nothing to warn about.

    Other services do not report it. If the request fails, the first judge call shows the error.

    Raises:
        EvaluatorError: the model has been shut down.
    """
    until = transport.clock() + LOOK_UP_SECONDS
    base = (settings.base_url or OPENAI.BASE_URL).rstrip("/")
    try:
        key = keys.get(settings, until=until)
        request = ServiceRequest(
            url=f"{base}/models/{quote(settings.model, safe='')}",
            headers={**JSON_HEADERS, **key.headers},
            content=None,
            has_key=bool(key.secret),
            until=until,
        )
        shutdown = transport.send(request, ServiceState(), _parse_shutdown_date)
    except (EvaluatorError, FetchError, SkippedError):
        return ""
    return "" if shutdown is None else _format_shutdown(settings.model, shutdown, today)


class _ModelInfo(ServiceModel):
    shutdown_date: date | None = None


def _parse_shutdown_date(fetch: Callable[[], HttpResponse]) -> date | None:
    response = fetch()
    if response.status != OK:
        return None
    try:
        return parse_body(_ModelInfo, response.content).shutdown_date
    except InvalidJsonError:
        return None


def _format_shutdown(model: str, shutdown: date, today: date) -> str:
    if shutdown <= today:
        raise EvaluatorError(f"the model {model} was shut down on {shutdown}; use another model")
    if shutdown - today > WARNING_PERIOD:
        return ""
    days = format_count((shutdown - today).days, "day")
    return f"the model {model} will be shut down on {shutdown}, in {days}"


# Hosts of retired services, with the date.
GITHUB_MODELS: Final = "GitHub Models, which was shut down on 2026-07-30"
RETIRED_HOSTS: Final[Mapping[str, str]] = {
    "models.github.ai": GITHUB_MODELS,
    "models.inference.ai.azure.com": GITHUB_MODELS,
}
ALTERNATIVE_HINT: Final = (
    "use another service, or a program (`provider: command`) such as the Copilot CLI"
)


def find_settings_problems(settings: ModelSettings) -> Iterator[str]:
    """List problems that prevent calls of a model; makes no request."""
    if settings.provider == COMMAND_PROVIDER:
        if not settings.command:
            yield "`provider: command` needs a `command`"
        yield from _check_unsupported(settings, supports_effort=False, supports_temperature=False)
    elif settings.provider not in PROVIDERS:
        names = (*PROVIDERS, COMMAND_PROVIDER)
        hint = suggest_name(settings.provider, names) or f"use {join_with_or(names)}"
        yield f"unknown provider {quote_name(settings.provider)}; {hint}"
        return
    else:
        yield from _check_service(settings)
    if settings.federation is not None:
        yield from find_federation_problems(settings, settings.federation)


def _check_service(settings: ModelSettings) -> Iterator[str]:
    provider = PROVIDERS[settings.provider]
    url = settings.base_url or provider.BASE_URL
    if settings.command:
        yield f"the provider {settings.provider!r} does not use `command`; remove one of them"
    if not settings.model:
        yield "`model` is missing; there is no default model"
    if not url:
        yield f"the provider {settings.provider!r} needs a `base_url`"
    else:
        yield from _check_address(url, has_key=bool(settings.key_variable or settings.federation))
    yield from _check_unsupported(
        settings, supports_effort=provider.SUPPORTS_EFFORT, supports_temperature=True
    )


def _check_address(url: str, *, has_key: bool) -> Iterator[str]:
    # requests is slow to import, and most runs have no judge.
    from agentci._util.http_transport import parse_base_url  # noqa: PLC0415 (see above)

    try:
        address = parse_base_url(url, unencrypted=not has_key)
    except FetchError as error:
        yield f"invalid `base_url`: {error}; {error.hint}"
        return
    if retired := RETIRED_HOSTS.get(address.origin[1]):
        yield f"`base_url` is the address of {retired}; {ALTERNATIVE_HINT}"


def _check_unsupported(
    settings: ModelSettings, *, supports_effort: bool, supports_temperature: bool
) -> Iterator[str]:
    if settings.effort and not supports_effort:
        yield f"the provider {settings.provider!r} does not support `effort`"
    if settings.temperature is not None and not supports_temperature:
        yield f"the provider {settings.provider!r} does not support `temperature`"
