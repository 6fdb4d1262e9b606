"""What a run may spend on judges, counted across all of its threads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Final

from agentci._util.http.deadline import GLANCE_SECONDS, INTERRUPTED
from agentci._util.text.format import number
from agentci.errors import EvaluatorError
from agentci.model.judging import Caps, ModelReply, ModelSettings, Question
from agentci.model.spending import Charge

# Of a token, as a rule of thumb, where nobody has counted them.
CHARACTERS_A_TOKEN: Final = 4
_MILLION: Final = 1_000_000
# Of dollars; sums of fractions are not exact.
_TINY: Final = 1e-9


class Bill:
    """What one call costs: as much as was set aside for it, until somebody knows better."""

    def __init__(self, charge: Charge) -> None:
        self.charge = charge

    def waive(self) -> None:
        """It was refused, or never arrived: nobody is going to charge for it."""
        self.charge = Charge()


class Budget:
    """Sets aside what a call can cost at most before it is made, so that no cap is ever passed.

    Args:
        stopped: whether the run is to end.
    """

    def __init__(self, caps: Caps, *, stopped: Callable[[], bool]) -> None:
        self._caps = caps
        self._stopped = stopped
        self._settled = Condition()
        self._spent = Charge()
        self._aside = Charge()
        self._saved = Charge()

    @property
    def spent(self) -> Charge:
        """So far, without what is under way."""
        return self._spent

    @property
    def saved(self) -> Charge:
        """What replies of earlier runs would have cost."""
        return self._saved

    def save(self, charge: Charge) -> None:
        """A reply of an earlier run did."""
        with self._settled:
            self._saved += charge

    def most_for(self, question: Question, settings: ModelSettings) -> Charge:
        """What a question can cost at most, as far as one can tell before it is asked.

        Raises:
            EvaluatorError: nobody said what it costs, and there is a cap on that.
        """
        if self._caps.max_usd is not None and settings.prices is None:
            asked = settings.model or settings.provider
            raise EvaluatorError(
                f"max_usd needs the prices of {asked}, in dollars a million tokens"
            )
        return _charge(settings, _tokens(question.system + question.user), settings.output_tokens)

    @contextmanager
    def spending(self, most: Charge) -> Iterator[Bill]:
        """Make a call.

        Waits where it depends on calls under way whether there is enough.

        Raises:
            EvaluatorError: there is not enough left, or the run is to end.
        """
        self._set_aside(most)
        bill = Bill(most)
        try:
            yield bill
        finally:
            with self._settled:
                self._aside -= most
                self._spent += bill.charge
                self._settled.notify_all()

    def _set_aside(self, most: Charge) -> None:
        with self._settled:
            while self._passed(self._spent + self._aside + most):
                if passed := self._passed(self._spent + most):
                    raise EvaluatorError(
                        f"the budget of judges is used up: {passed}, and the next call would pass"
                        " it; raise it, or judge less"
                    )
                if self._stopped():
                    raise EvaluatorError(INTERRUPTED)
                self._settled.wait(GLANCE_SECONDS)
            self._aside += most

    def _passed(self, charge: Charge) -> str:
        """The cap that a sum passes, in words; empty where there is none."""
        caps = self._caps
        if caps.max_calls is not None and charge.calls > caps.max_calls:
            return f"max_calls is {caps.max_calls:,}"
        if caps.max_tokens is not None and charge.tokens > caps.max_tokens:
            return f"max_tokens is {caps.max_tokens:,}"
        if caps.max_usd is not None and charge.usd > caps.max_usd + _TINY:
            return f"max_usd is {number(caps.max_usd, 6)}"
        return ""


def charge_of(question: Question, settings: ModelSettings, reply: ModelReply) -> Charge:
    """What a reply cost; where its service did not count, by our own estimate."""
    tokens_in, tokens_out = reply.tokens_in, reply.tokens_out
    return _charge(
        settings,
        _tokens(question.system + question.user) if tokens_in is None else tokens_in,
        _tokens(reply.text) if tokens_out is None else tokens_out,
    )


def _charge(settings: ModelSettings, tokens_in: int, tokens_out: int) -> Charge:
    prices = settings.prices
    usd = (
        0.0
        if prices is None
        else (tokens_in * prices.input_usd + tokens_out * prices.output_usd) / _MILLION
    )
    return Charge(calls=1, tokens=tokens_in + tokens_out, usd=usd)


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)
