"""Checks the settings of a judge before a run: missing values, retired services and models."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from typing import Final
from urllib.parse import quote, urlsplit

from agentci._util.http.interface import HttpResponse
from agentci._util.text.format import format_count
from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.errors import EvaluatorError, FetchError, SkippedError
from agentci.judges import federation, openai
from agentci.judges.keys import ApiKeys
from agentci.judges.provider import JSON_HEADERS, InvalidJsonError, ServiceModel, parse_body
from agentci.judges.registry import COMMAND_PROVIDER, PROVIDERS
from agentci.judges.transport import ServiceRequest, ServiceState, Transport
from agentci.model.judges import ModelSettings

WARNING_PERIOD: Final = timedelta(days=60)
LOOK_UP_SECONDS: Final = 15.0
OK: Final = 200


def reports_shutdown_dates(settings: ModelSettings) -> bool:
    """Whether the service reports shutdown dates of models: only OpenAI's own address does."""
    if settings.provider != "openai":
        return False
    given, own = (urlsplit(url).hostname for url in (settings.base_url, openai.BASE_URL))
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
    base = (settings.base_url or openai.BASE_URL).rstrip("/")
    try:
        key = keys.get(settings, until=until)
        letter = ServiceRequest(
            url=f"{base}/models/{quote(settings.model, safe='')}",
            headers={**JSON_HEADERS, **key.headers},
            content=None,
            has_key=bool(key.secret),
            until=until,
        )
        end = transport.send(letter, ServiceState(), _parse_shutdown_date)
    except (EvaluatorError, FetchError, SkippedError):
        return ""
    return "" if end is None else _format_shutdown(settings.model, end, today)


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


def _format_shutdown(model: str, end: date, today: date) -> str:
    if end <= today:
        raise EvaluatorError(f"the model {model} ended on {end}: name another one")
    if end - today > WARNING_PERIOD:
        return ""
    return f"the model {model} ends on {end}, in {format_count((end - today).days, 'day')}"


# Hosts of retired services, with the date.
GITHUB_MODELS: Final = "GitHub Models, which ended on 2026-07-30"
RETIRED_HOSTS: Final[Mapping[str, str]] = {
    "models.github.ai": GITHUB_MODELS,
    "models.inference.ai.azure.com": GITHUB_MODELS,
}
ALTERNATIVE_HINT: Final = (
    "name another service, or a program (provider: command) such as Copilot's CLI"
)


def find_settings_problems(settings: ModelSettings) -> Iterator[str]:
    """List problems that prevent calls of a model, one sentence each; makes no request."""
    if settings.provider == COMMAND_PROVIDER:
        if not settings.command:
            yield "the provider 'command' needs a command"
        yield from _check_unsupported(settings, takes_effort=False, takes_temperature=False)
    elif settings.provider not in PROVIDERS:
        names = (*PROVIDERS, COMMAND_PROVIDER)
        hint = suggest_name(settings.provider, names) or f"it is {join_with_or(names)}"
        yield f"there is no provider {quote_name(settings.provider)}; {hint}"
        return
    else:
        yield from _check_service(settings)
    if settings.federation is not None:
        yield from federation.find_federation_problems(settings, settings.federation)


def _check_service(settings: ModelSettings) -> Iterator[str]:
    provider = PROVIDERS[settings.provider]
    url = settings.base_url or provider.BASE_URL
    if settings.command:
        yield f"the provider {settings.provider!r} takes no command; leave one of them out"
    if not settings.model:
        yield "no model is named; there is none by default, because models come and go"
    if not url:
        yield f"the provider {settings.provider!r} needs a base_url"
    else:
        yield from _check_address(url, has_key=bool(settings.key_variable or settings.federation))
    yield from _check_unsupported(
        settings, takes_effort=provider.SUPPORTS_EFFORT, takes_temperature=True
    )


def _check_address(url: str, *, has_key: bool) -> Iterator[str]:
    # requests is slow to import, and most runs have no judge.
    from agentci._util.http.addresses import parse_base_url  # noqa: PLC0415 (see above)

    try:
        address = parse_base_url(url, unencrypted=not has_key)
    except FetchError as error:
        yield f"base_url cannot be used: {error}; {error.hint}"
        return
    if dead := RETIRED_HOSTS.get(address.origin[1]):
        yield f"base_url is that of {dead}; {ALTERNATIVE_HINT}"


def _check_unsupported(
    settings: ModelSettings, *, takes_effort: bool, takes_temperature: bool
) -> Iterator[str]:
    if settings.effort and not takes_effort:
        yield f"the provider {settings.provider!r} takes no effort"
    if settings.temperature is not None and not takes_temperature:
        yield f"the provider {settings.provider!r} takes no temperature"
