"""The judge budget of a run, shared by all threads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Final

from agentci._util.http import INTERRUPTED, POLL_SECONDS
from agentci._util.text.format import format_number
from agentci.errors import EvaluatorError
from agentci.model.judges import BudgetLimits, JudgePrompt, ModelResponse, ModelSettings
from agentci.model.result import ModelCost

# Rule of thumb for estimating tokens that have not been counted.
CHARACTERS_PER_TOKEN: Final = 4
_MILLION: Final = 1_000_000
# In dollars: sums of floats are not exact.
_ROUNDING_TOLERANCE: Final = 1e-9


class PendingCharge:
    """The cost of one call: the reserved maximum until the actual cost is known."""

    def __init__(self, charge: ModelCost) -> None:
        self.charge = charge

    def cancel(self) -> None:
        """Set the cost to zero, as the request was refused or never arrived."""
        self.charge = ModelCost()


class Budget:
    """Reserves the maximum cost of a call before it is made, so that no limit is exceeded.

    Args:
        stopped: returns True when the run has to end.
    """

    def __init__(self, limits: BudgetLimits, *, stopped: Callable[[], bool]) -> None:
        self._limits = limits
        self._stopped = stopped
        self._condition = Condition()
        self._spent = ModelCost()
        self._reserved = ModelCost()
        self._saved = ModelCost()

    @property
    def spent(self) -> ModelCost:
        """Cost so far, without calls in progress."""
        return self._spent

    @property
    def saved(self) -> ModelCost:
        """What cached responses would have cost."""
        return self._saved

    def add_savings(self, charge: ModelCost) -> None:
        """Add the cost of a cached response."""
        with self._condition:
            self._saved += charge

    def compute_max_charge(self, prompt: JudgePrompt, settings: ModelSettings) -> ModelCost:
        """Compute the maximum cost of a prompt, as far as it is known before the call.

        Raises:
            EvaluatorError: there is a limit in dollars, but no prices.
        """
        if self._limits.max_usd is not None and settings.prices is None:
            model = settings.model or settings.provider
            raise EvaluatorError(
                f"`max_usd` needs the `price` of {model}, in US dollars per million tokens"
            )
        return _make_charge(
            settings, _estimate_tokens(prompt.system + prompt.user), settings.output_tokens
        )

    @contextmanager
    def reserve(self, most: ModelCost) -> Iterator[PendingCharge]:
        """Reserve the maximum cost of a call while the block makes it.

        Waits if calls in progress decide whether enough is left.

        Raises:
            EvaluatorError: not enough is left, or the run has to end.
        """
        with self._condition:
            while self._find_exceeded_cap(self._spent + self._reserved + most):
                if exceeded := self._find_exceeded_cap(self._spent + most):
                    raise EvaluatorError(
                        f"the judge budget is used up: the next call would exceed {exceeded};"
                        " raise it, or evaluate fewer cases"
                    )
                if self._stopped():
                    raise EvaluatorError(INTERRUPTED)
                self._condition.wait(POLL_SECONDS)
            self._reserved += most
        pending = PendingCharge(most)
        try:
            yield pending
        finally:
            with self._condition:
                self._reserved -= most
                self._spent += pending.charge
                self._condition.notify_all()

    def _find_exceeded_cap(self, charge: ModelCost) -> str:
        """Describe the limit that ``charge`` exceeds; empty if there is none."""
        limits = self._limits
        if limits.max_calls is not None and charge.calls > limits.max_calls:
            return f"`max_calls` ({limits.max_calls:,})"
        if limits.max_tokens is not None and charge.tokens > limits.max_tokens:
            return f"`max_tokens` ({limits.max_tokens:,})"
        if limits.max_usd is not None and charge.usd > limits.max_usd + _ROUNDING_TOLERANCE:
            return f"`max_usd` ({format_number(limits.max_usd, 6)})"
        return ""


def compute_charge(
    prompt: JudgePrompt, settings: ModelSettings, response: ModelResponse
) -> ModelCost:
    """Compute the cost of a response; token counts that the service omits are estimated."""
    tokens_in, tokens_out = response.tokens_in, response.tokens_out
    return _make_charge(
        settings,
        _estimate_tokens(prompt.system + prompt.user) if tokens_in is None else tokens_in,
        _estimate_tokens(response.text) if tokens_out is None else tokens_out,
    )


def _make_charge(settings: ModelSettings, tokens_in: int, tokens_out: int) -> ModelCost:
    prices = settings.prices
    usd = (
        0.0
        if prices is None
        else (tokens_in * prices.input_usd + tokens_out * prices.output_usd) / _MILLION
    )
    return ModelCost(calls=1, tokens=tokens_in + tokens_out, usd=usd)


def _estimate_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)
