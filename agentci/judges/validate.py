"""Checks the settings of a judge before a run: missing values, retired services and models."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from typing import Final
from urllib.parse import quote, urlsplit

from agentci._util.http import HttpResponse
from agentci._util.text.format import format_count
from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.errors import EvaluatorError, FetchError, SkippedError
from agentci.judges.keys import ApiKeys, find_federation_problems
from agentci.judges.providers import (
    COMMAND_PROVIDER,
    JSON_HEADERS,
    OPENAI,
    PROVIDERS,
    InvalidJsonError,
    ServiceModel,
    parse_body,
)
from agentci.judges.transport import ServiceRequest, ServiceState, Transport
from agentci.model.judges import ModelSettings

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
