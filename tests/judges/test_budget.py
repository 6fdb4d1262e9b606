"""What a run spends on judges never passes its caps, however many threads spend it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentci.errors import EvaluatorError
from agentci.judges.budget import Budget, compute_charge
from agentci.model.judges import (
    BudgetLimits,
    JudgePrompt,
    ModelResponse,
    ModelSettings,
    ScoreSchema,
    TokenPrices,
)
from agentci.model.result import ModelCost
from tests._util.http.patience import after
from tests._util.http.servers import script, serve
from tests.judges.bench import QUESTION, Bench, refused, said, scored, settings

PRICES = TokenPrices(input_usd=2, output_usd=10)
FORM = ScoreSchema()


def budget(**caps: float) -> Budget:
    return Budget(BudgetLimits(**caps), stopped=lambda: False)  # type: ignore[arg-type]  # of whole numbers


def test_what_nobody_counted_is_estimated_at_four_characters_a_token() -> None:
    question = JudgePrompt(system="12345678", user="1234", schema=FORM)
    given = ModelSettings(provider="openai", output_tokens=100, prices=PRICES)
    assert budget().compute_max_charge(question, given) == ModelCost(
        calls=1, tokens=103, usd=(3 * 2 + 100 * 10) / 1e6
    )
    response = ModelResponse(text="12345", ending="complete")
    assert compute_charge(question, given, response) == ModelCost(
        calls=1, tokens=5, usd=(6 + 20) / 1e6
    )


def test_what_a_service_counted_is_charged() -> None:
    bench = Bench()
    with serve(script(scored(1, prompt_tokens=1000, completion_tokens=50))) as server:
        given = settings(server.url, prices=PRICES)
        bench.asker.ask(QUESTION, given, until=bench.until)
    assert bench.budget.spent == ModelCost(calls=1, tokens=1050, usd=0.0025)


@pytest.mark.parametrize(
    ("caps", "why"),
    [
        (BudgetLimits(max_calls=2), r"`max_calls` \(2\)"),
        (BudgetLimits(max_tokens=1300), r"`max_tokens` \(1,300\)"),
        (BudgetLimits(max_usd=0.012), r"`max_usd` \(0.012\)"),
    ],
)
def test_what_would_pass_a_cap_is_not_asked(caps: BudgetLimits, why: str) -> None:
    bench = Bench(caps=caps)
    with serve(script(scored(1, prompt_tokens=100, completion_tokens=100))) as server:
        given = settings(server.url, prices=PRICES)
        for _ in range(2):
            bench.asker.ask(QUESTION, given, until=bench.until)
        with pytest.raises(EvaluatorError, match=why):
            bench.asker.ask(QUESTION, given, until=bench.until)
    assert len(server.asked) == 2


def test_refusals_cost_nothing() -> None:
    bench = Bench(caps=BudgetLimits(max_calls=1))
    with serve(script(refused(429), refused(503), said("ok"))) as server:
        bench.asker.ask(QUESTION, settings(server.url), until=bench.until)
    assert bench.budget.spent.calls == 1


def test_a_cap_in_dollars_needs_prices() -> None:
    bench = Bench(caps=BudgetLimits(max_usd=1))
    with serve(script(said("ok"))) as server:
        with pytest.raises(EvaluatorError, match="`max_usd` needs the `price` of m"):
            bench.asker.ask(QUESTION, settings(server.url), until=bench.until)
        assert server.asked == []


def test_whoever_might_still_be_served_waits_for_the_others_bills() -> None:
    shared = budget(max_tokens=100)
    most, begun, done = ModelCost(calls=1, tokens=60), threading.Event(), threading.Event()

    def first() -> None:
        with shared.reserve(most) as bill:
            begun.set()
            assert done.wait(10)
            bill.charge = ModelCost(calls=1, tokens=10)

    def second() -> ModelCost:
        assert begun.wait(10)
        threading.Timer(0.05, done.set).start()
        with shared.reserve(most):
            assert done.is_set()
        return shared.spent

    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(first)
        assert pool.submit(second).result() == ModelCost(calls=2, tokens=70)
        waiting.result()


def test_whoever_waits_is_woken_when_the_run_ends() -> None:
    shared = Budget(BudgetLimits(max_calls=1), stopped=after(1))
    with (
        shared.reserve(ModelCost(calls=1)),
        pytest.raises(EvaluatorError, match="was interrupted"),
        shared.reserve(ModelCost(calls=1)),
    ):
        pytest.fail("there is nothing left")


def test_a_call_that_breaks_off_is_charged_in_full() -> None:
    shared = budget(max_calls=9)
    with pytest.raises(KeyError), shared.reserve(ModelCost(calls=1, tokens=5)):
        raise KeyError
    assert shared.spent == ModelCost(calls=1, tokens=5)
