"""The cost of model calls by prices per token."""

from collections.abc import Iterable
from typing import Final

from agentci._util.text.patterns import matches_name
from agentci.model.trace import ModelStep, PriceList

MILLION: Final = 1_000_000


def count_input(step: ModelStep) -> int | None:
    """Return all input tokens of a model call, with those of a cache; see ``add_cached``."""
    if step.input_tokens is None:
        return None
    cached = (step.cached_tokens or 0) + (step.cache_write_tokens or 0)
    return int(add_cached(step.input_tokens, cached))


def add_cached(given: float, cached: float) -> float:
    """Return the input tokens with those of a cache.

    Conventions include the latter in the input. Where they are more than the input, the recording
    does not follow that, and they are added.
    """
    return given + cached if cached > given else given


def price_steps(steps: Iterable[ModelStep], prices: PriceList) -> tuple[float, str]:
    """Return the known cost of model calls in US dollars, and why it is not all; "" if it is."""
    known, missing = 0.0, ""
    for step in steps:
        cost, why = _price_step(step, prices)
        known, missing = known + cost, missing or why
    return known, missing


def _price_step(step: ModelStep, prices: PriceList) -> tuple[float, str]:
    if step.cost_usd is not None:
        return step.cost_usd, ""
    model = step.model
    if model is None:
        return 0.0, "a model call recorded neither its cost nor its model"
    price = next((each for pattern, each in prices.items() if matches_name(pattern, model)), None)
    if price is None:
        return 0.0, f"model `{model}` recorded no cost and has no price in `prices`"
    total, output = count_input(step), step.output_tokens
    read, written = step.cached_tokens or 0, step.cache_write_tokens or 0
    plain = max((total or 0) - read - written, 0)
    cost = plain * price.input + read * price.cache_read + written * price.cache_write
    cost = (cost + (output or 0) * price.output) / MILLION
    is_known = total is not None and output is not None
    return cost, "" if is_known else f"a call of model `{model}` recorded no usage"
