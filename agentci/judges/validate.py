"""What can be told of a judge before anything is spent: what is missing, dead or about to end."""

from collections.abc import Iterator, Mapping
from typing import Final

from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.errors import FetchError
from agentci.judges import federation
from agentci.judges.registry import COMMAND, PROVIDERS
from agentci.model.judging import ModelSettings

# Hosts of services that have ended, and since when.
GITHUB_MODELS: Final = "GitHub Models, which ended on 2026-07-30"
DEAD_HOSTS: Final[Mapping[str, str]] = {
    "models.github.ai": GITHUB_MODELS,
    "models.inference.ai.azure.com": GITHUB_MODELS,
}
INSTEAD: Final = "name another service, or a program (provider: command) such as Copilot's CLI"


def objections(settings: ModelSettings) -> Iterator[str]:
    """What keeps a model from being asked, a sentence each; nothing is asked to find out."""
    if settings.provider == COMMAND:
        if not settings.command:
            yield "the provider 'command' needs a command"
        yield from _unknown_to(settings, takes_effort=False, takes_temperature=False)
    elif settings.provider not in PROVIDERS:
        names = (*PROVIDERS, COMMAND)
        hint = did_you_mean(settings.provider, names) or f"it is {one_of(names)}"
        yield f"there is no provider {quoted(settings.provider)}; {hint}"
        return
    else:
        yield from _of_service(settings)
    if settings.federation is not None:
        yield from federation.objections(settings, settings.federation)


def _of_service(settings: ModelSettings) -> Iterator[str]:
    provider = PROVIDERS[settings.provider]
    url = settings.base_url or provider.BASE_URL
    if settings.command:
        yield f"the provider {settings.provider!r} takes no command; leave one of them out"
    if not settings.model:
        yield "no model is named; there is none by default, because models come and go"
    if not url:
        yield f"the provider {settings.provider!r} needs a base_url"
    else:
        yield from _of_address(url, has_key=bool(settings.key_variable or settings.federation))
    yield from _unknown_to(settings, takes_effort=provider.TAKES_EFFORT, takes_temperature=True)


def _of_address(url: str, *, has_key: bool) -> Iterator[str]:
    # requests is slow to import, and most runs have no judge.
    from agentci._util.http.addresses import base_of  # noqa: PLC0415 (see above)

    try:
        address = base_of(url, unencrypted=not has_key)
    except FetchError as error:
        yield f"base_url cannot be used: {error}; {error.hint}"
        return
    if dead := DEAD_HOSTS.get(address.origin[1]):
        yield f"base_url is that of {dead}; {INSTEAD}"


def _unknown_to(
    settings: ModelSettings, *, takes_effort: bool, takes_temperature: bool
) -> Iterator[str]:
    if settings.effort and not takes_effort:
        yield f"the provider {settings.provider!r} takes no effort"
    if settings.temperature is not None and not takes_temperature:
        yield f"the provider {settings.provider!r} takes no temperature"
