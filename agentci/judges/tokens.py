"""Short-lived tokens in the place of keys, made of the identity that GitHub gives to a job."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Final
from urllib.parse import quote, urlsplit

from pydantic import Field

from agentci._util.http.document import Response
from agentci._util.http.retries import PassingError
from agentci._util.text import escape, truncate
from agentci._util.text.secrets import HIDDEN
from agentci.errors import EvaluatorError, FetchError
from agentci.judges.api_errors import complaint_of
from agentci.judges.federation import EXCHANGES
from agentci.judges.json_body import GarbledError, W, Wire, parse
from agentci.judges.rate_limit import Account
from agentci.judges.retry import asked_seconds, is_passing
from agentci.judges.transport import Letter, Transport
from agentci.model.judging import Federation, ModelSettings

IDENTITY_VARIABLES: Final = ("ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")
# Before its end; as long as a verdict may take, so that no question is under way with one at it.
SPARE_SECONDS: Final = 180.0
OK: Final = range(200, 300)
MAX_SAID: Final = 300
OUTAGE_HINT: Final = "try again later"
# Whatever could be a piece of a token.
_SECRET: Final = re.compile(r"[A-Za-z0-9_.+/=-]{40,}")


class RefusalError(Exception):
    """A service answered that it does not; says what, in words that may be shown."""


@dataclass(slots=True, kw_only=True)
class _Slot:
    """The token for one way to ask, or why there is none."""

    lock: Lock = field(default_factory=Lock)
    token: str = field(default="", repr=False)
    good_until: float = 0.0
    refusal: str = ""


class Tokens:
    """The tokens of a run, for any number of threads: each is made once, and again at its end.

    Args:
        variables: the environment, in which GitHub says where it gives identities.
    """

    def __init__(self, variables: Mapping[str, str], transport: Transport) -> None:
        self._variables = variables
        self._transport = transport
        self._lock = Lock()
        self._slots: dict[tuple[str, str, Federation], _Slot] = {}

    def of(self, settings: ModelSettings, federation: Federation, *, until: float) -> str:
        """A token for a service.

        Raises:
            EvaluatorError: it gives none.
        """
        with self._lock:
            way = (settings.provider, settings.base_url, federation)
            slot = self._slots.setdefault(way, _Slot())
        with slot.lock:
            if slot.refusal:
                raise EvaluatorError(slot.refusal)
            if self._transport.clock() >= slot.good_until:
                try:
                    given = self._given(settings, federation, until)
                except RefusalError as error:
                    slot.refusal = str(error)
                    raise EvaluatorError(slot.refusal) from None
                seconds = max(given.expires_in - SPARE_SECONDS, given.expires_in / 2)
                slot.token = given.access_token
                slot.good_until = self._transport.clock() + seconds
            return slot.token

    def _given(self, settings: ModelSettings, federation: Federation, until: float) -> "_Token":
        exchange = EXCHANGES[settings.provider]
        identity = self._identity(federation.audience or exchange.audience, until)
        call = exchange.call(settings, dict(federation.ids), identity)
        host = urlsplit(call.url).hostname
        letter = Letter(
            url=call.url, headers=call.headers, content=call.body, has_key=True, until=until
        )
        return self._answer(
            letter,
            _Token,
            f"{host} makes no token of this job's identity",
            "see whether the ids in `auth` are right, and whether the service trusts this"
            " repository, branch and workflow",
        )

    def _identity(self, audience: str, until: float) -> str:
        url, token = (self._variables[name] for name in IDENTITY_VARIABLES)
        letter = Letter(
            url=f"{url}{'&' if '?' in url else '?'}audience={quote(audience, safe='')}",
            headers={"Accept": "application/json", "Authorization": f"bearer {token}"},
            content=None,
            has_key=True,
            until=until,
        )
        return self._answer(
            letter,
            _Identity,
            "GitHub gives this job no id token",
            "see whether it has `permissions: {id-token: write}`",
        ).value

    def _answer(self, letter: Letter, kind: type[W], what: str, way_out: str) -> W:
        """What a service answers.

        Raises:
            RefusalError: it does not give it.
            EvaluatorError: nobody knows, and it may do another time.
        """

        def attempt(fetch: Callable[[], Response]) -> W:
            response = fetch()
            if response.status in OK:
                try:
                    return parse(kind, response.content)
                except (GarbledError, EvaluatorError):
                    raise RefusalError(f"{what}: its answer holds none; {way_out}") from None
            said = f"it answered {response.status}{_said(response)}"
            if is_passing(response.status, response.headers):
                seconds = asked_seconds(response.headers, now=time.time())
                raise PassingError(said, hint=OUTAGE_HINT, asked_seconds=seconds)
            raise RefusalError(f"{what}: {said}; {way_out}")

        try:
            return self._transport.send(letter, Account(), attempt)
        except FetchError as error:
            raise EvaluatorError(f"{what}: {error}") from None


class _Identity(Wire):
    value: str = Field(min_length=1, repr=False)


class _Token(Wire):
    access_token: str = Field(min_length=1, repr=False)
    expires_in: Annotated[float, Field(gt=0)]


class _Oauth(Wire):
    error_description: str = ""


def _said(response: Response) -> str:
    """Why a service refused, in its own words, without what may be a token."""
    complaint = complaint_of(response.status, response.content)
    try:
        said = parse(_Oauth, response.content).error_description or complaint.message
    except (GarbledError, EvaluatorError):
        said = complaint.message
    said = truncate.short(escape.one_line(_SECRET.sub(HIDDEN, said)), MAX_SAID)
    return f" ({said})" if said else ""
