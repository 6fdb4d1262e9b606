"""Models that their service is about to end, or has ended: looked up before anything is spent."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final
from urllib.parse import quote, urlsplit

from agentci._util.http.document import Response
from agentci._util.text.format import count
from agentci.errors import EvaluatorError, FetchError, SkippedError
from agentci.judges import openai
from agentci.judges.json_body import JSON_HEADERS, GarbledError, Wire, parse
from agentci.judges.keys import Keys
from agentci.judges.rate_limit import Account
from agentci.judges.transport import Letter, Transport
from agentci.model.judging import ModelSettings

SOON: Final = timedelta(days=60)
LOOK_UP_SECONDS: Final = 15.0
OK: Final = 200


def tells_ends(settings: ModelSettings) -> bool:
    """Whether the service of a model tells of its end: OpenAI does, at its own address."""
    if settings.provider != "openai":
        return False
    given, own = (urlsplit(url).hostname for url in (settings.base_url, openai.BASE_URL))
    return given in (None, own)


def warning_of(settings: ModelSettings, transport: Transport, *, keys: Keys, today: date) -> str:
    """What a user should know of the end of a model at OpenAI; empty where there is nothing.

    Other services do not tell. Where nothing can be found out, that is left to the first question.

    Raises:
        EvaluatorError: the model has ended.
    """
    until = transport.clock() + LOOK_UP_SECONDS
    base = (settings.base_url or openai.BASE_URL).rstrip("/")
    try:
        key = keys.of(settings, until=until)
        letter = Letter(
            url=f"{base}/models/{quote(settings.model, safe='')}",
            headers={**JSON_HEADERS, **key.headers},
            content=None,
            has_key=bool(key.secret),
            until=until,
        )
        end = transport.send(letter, Account(), _end_in)
    except (EvaluatorError, FetchError, SkippedError):
        return ""
    return "" if end is None else _in_words(settings.model, end, today)


class _Model(Wire):
    shutdown_date: date | None = None


def _end_in(fetch: Callable[[], Response]) -> date | None:
    response = fetch()
    if response.status != OK:
        return None
    try:
        return parse(_Model, response.content).shutdown_date
    except GarbledError:
        return None


def _in_words(model: str, end: date, today: date) -> str:
    if end <= today:
        raise EvaluatorError(f"the model {model} ended on {end}: name another one")
    if end - today > SOON:
        return ""
    return f"the model {model} ends on {end}, in {count((end - today).days, 'day')}"
