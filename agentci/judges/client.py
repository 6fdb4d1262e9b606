"""Models behind services: one question, one reply, paid for once."""

import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from agentci._util.http.document import Response
from agentci._util.http.retries import PassingError
from agentci.errors import EvaluatorError, FetchError
from agentci.judges import embeddings
from agentci.judges.api_errors import Complaint, complaint_of
from agentci.judges.budget import Bill, Budget, charge_of
from agentci.judges.error_text import answer_words, refusal_words
from agentci.judges.fallbacks import lesser
from agentci.judges.json_body import GarbledError
from agentci.judges.keys import Key, Keys
from agentci.judges.provider import Call, Provider, Way
from agentci.judges.rate_limit import Account, Accounts
from agentci.judges.registry import PROVIDERS
from agentci.judges.retry import TOO_MANY_REQUESTS, asked_seconds, is_passing
from agentci.judges.transport import Letter, LimitedError, Transport
from agentci.model.embedding import CompareEmbeddings
from agentci.model.judging import ModelReply, ModelSettings, Question

SUCCESSES: Final = range(200, 300)
OUTAGE_HINT: Final = "try again later, or see whether the service has told of an outage"


class ComplaintError(Exception):
    """A service refused what it was asked, and would again."""

    def __init__(self, complaint: Complaint, response: Response) -> None:
        self.complaint = complaint
        self.response = response
        # Without its message, which may quote a key.
        super().__init__(complaint.status)


class Posed(Struct, frozen=True, kw_only=True):
    """A question, and whom it is for.

    Attributes:
        read: as that of providers.
    """

    question: Question
    settings: ModelSettings
    provider: Provider
    read: Callable[[bytes], ModelReply]
    account: Account
    key: Key
    until: float


class ServiceAsker:
    """Asks the models of services, from any number of threads.

    Args:
        accounts: shared with others that ask the same services.
        now: seconds since 1970.
    """

    def __init__(
        self,
        transport: Transport,
        budget: Budget,
        *,
        keys: Keys,
        accounts: Accounts | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._budget = budget
        self._keys = keys
        self._now = now
        self._accounts = accounts or Accounts()

    def ask(self, question: Question, settings: ModelSettings, *, until: float) -> ModelReply:
        """Ask once, in the strictest way that the service understands.

        Args:
            until: when nobody waits for a reply any more, by the clock of the transport.

        Raises:
            EvaluatorError: there is no reply, or no budget for one.
            SkippedError: there can be no key to the service.
        """
        read = PROVIDERS[settings.provider].read
        posed = self._posed(question, settings, read, until)
        way = posed.account.way(settings.model) or posed.provider.first_way(settings)
        while True:
            call = posed.provider.call(question, settings, way)
            try:
                reply = posed.key.left_out(self._send(posed, call))
            except ComplaintError as error:
                if error.complaint.is_withheld:
                    return ModelReply(text="", ending="refused", finish_reason="content_filter")
                way = self._step_down(way, error, posed)
            except FetchError as error:
                raise EvaluatorError(_with_hint(error)) from None
            else:
                posed.account.learn(settings.model, way)
                return reply

    def embed(self, request: CompareEmbeddings, *, until: float) -> ModelReply:
        """Ask for the vectors of two texts once; the text of the reply is their cosine.

        Args:
            until: as in ``ask``.

        Raises:
            EvaluatorError: there are none that can be compared, or no budget for them.
            SkippedError: there can be no key to the service.
        """
        settings = request.panel.settings
        posed = self._posed(request.question, settings, embeddings.read, until)
        try:
            return self._send(posed, embeddings.call(request.texts, settings))
        except ComplaintError as error:
            raise EvaluatorError(_refusal(error, posed)) from None
        except FetchError as error:
            raise EvaluatorError(_with_hint(error)) from None

    def _posed(
        self,
        question: Question,
        settings: ModelSettings,
        read: Callable[[bytes], ModelReply],
        until: float,
    ) -> Posed:
        return Posed(
            question=question,
            settings=settings,
            provider=PROVIDERS[settings.provider],
            read=read,
            account=self._accounts.of(settings),
            key=self._keys.of(settings, until=until),
            until=until,
        )

    def _send(self, posed: Posed, call: Call) -> ModelReply:
        letter = Letter(
            url=call.url,
            headers={**call.headers, **posed.key.headers},
            content=call.body,
            has_key=bool(posed.key.secret),
            until=posed.until,
        )

        def attempt(fetch: Callable[[], Response]) -> ModelReply:
            with self._budget.spending(
                self._budget.most_for(posed.question, posed.settings)
            ) as bill:
                return self._attempt(fetch, bill, posed)

        return self._transport.send(letter, posed.account, attempt)

    def _attempt(self, fetch: Callable[[], Response], bill: Bill, posed: Posed) -> ModelReply:
        """One try; what was lost on the way may have been charged for, what was refused is not."""
        try:
            response = fetch()
        except PassingError as failure:
            if not failure.arrived:
                bill.waive()
            raise
        if response.status not in SUCCESSES:
            bill.waive()
            self._refuse(response, posed)
        try:
            reply = posed.read(response.content)
        except GarbledError:
            raise PassingError("it sent no JSON", hint=OUTAGE_HINT) from None
        bill.charge = charge_of(posed.question, posed.settings, reply)
        return reply

    def _refuse(self, response: Response, posed: Posed) -> None:
        """Say what an answer means that is no success; never returns."""
        complaint = complaint_of(response.status, response.content)
        if complaint.is_spent:
            why = refusal_words(complaint, response, posed.settings, posed.key.secret)
            posed.account.close(f"{why}; no further question was sent")
            raise EvaluatorError(why)
        if is_passing(response.status, response.headers):
            kind = LimitedError if response.status == TOO_MANY_REQUESTS else PassingError
            seconds = asked_seconds(response.headers, now=self._now())
            said = f"it {answer_words(complaint, response, posed.key.secret)}"
            raise kind(said, hint=OUTAGE_HINT, asked_seconds=seconds)
        raise ComplaintError(complaint, response)

    def _step_down(self, way: Way, error: ComplaintError, posed: Posed) -> Way:
        """The next way to ask.

        Raises:
            EvaluatorError: there is none.
        """
        settings = posed.settings
        step = lesser(way, error.complaint, posed.provider.FORMATS)
        if step is None:
            raise EvaluatorError(_refusal(error, posed))
        for name in _lost(way, step, settings):
            self._transport.tell(f"{settings.model} takes no {name}, so it is asked without")
        return step


def _refusal(error: ComplaintError, posed: Posed) -> str:
    return refusal_words(error.complaint, error.response, posed.settings, posed.key.secret)


def _lost(way: Way, step: Way, settings: ModelSettings) -> list[str]:
    """What a user set and is not sent any more."""
    lost = []
    if way.sends_temperature and not step.sends_temperature and settings.temperature is not None:
        lost.append("temperature")
    if way.sends_effort and not step.sends_effort and settings.effort:
        lost.append("effort")
    return lost


def _with_hint(error: FetchError) -> str:
    return f"{error}; {error.hint}" if error.hint else str(error)
