"""Models that their service is about to end, or has ended: looked up before anything is spent."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Final
from urllib.parse import quote

from agentci.errors import EvaluatorError, FetchError
from agentci.http.base import Response
from agentci.judges import openai
from agentci.judges.account import Account
from agentci.judges.standing import key_of
from agentci.judges.transport import Letter, Transport
from agentci.judges.wire import JSON_HEADERS, GarbledError, Wire, parse
from agentci.model.judging import ModelSettings
from agentci.text.words import count

SOON: Final = timedelta(days=60)
LOOK_UP_SECONDS: Final = 15.0
OK: Final = 200


def warning_of(
    settings: ModelSettings, transport: Transport, *, variables: Mapping[str, str], today: date
) -> str:
    """What a user should know of the end of a model at OpenAI; empty where there is nothing.

    Other services do not tell. Where nothing can be found out, that is left to the first question.

    Raises:
        EvaluatorError: the model has ended.
    """
    key = key_of(settings, variables)
    base = (settings.base_url or openai.BASE_URL).rstrip("/")
    letter = Letter(
        url=f"{base}/models/{quote(settings.model, safe='')}",
        headers={**JSON_HEADERS, **dict([openai.key_header(key)] if key else [])},
        content=None,
        has_key=bool(key),
        until=transport.clock() + LOOK_UP_SECONDS,
    )
    try:
        end = transport.send(letter, Account(), _end_in)
    except (EvaluatorError, FetchError):
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
