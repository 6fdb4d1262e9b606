"""Embeddings of two texts; an invalid response is an error and never a score."""

import json
from typing import Any

import pytest

from agentci.errors import EvaluatorError, UncachedResponseError
from agentci.evaluators.openai_eval.build import EMBEDDING_PROVIDERS
from agentci.judges.client import EMBEDDING_URLS, parse_cosine
from agentci.model.judges import (
    BudgetLimits,
    CacheMode,
    JudgeConfig,
    ModelResponse,
    ModelSettings,
    TokenPrices,
)
from agentci.model.requests import CompareEmbeddings, EmbeddingSimilarity
from agentci.model.result import ModelCost
from tests._util.http.servers import Answer, Server, script, serve
from tests.judges.bench import KEY, Bench, embedded, refused, settings

TEXTS = ("It is sunny.", "The sun shines.")
GOOD = embedded([1, 0], [3, 4], usage={"prompt_tokens": 8})


def request(given: ModelSettings, replay: CacheMode = "first") -> CompareEmbeddings:
    return CompareEmbeddings(texts=TEXTS, judge=JudgeConfig(settings=given, replay=replay))


def compare(bench: Bench, server: Server, **others: Any) -> EmbeddingSimilarity:
    given = settings(server.url, output_tokens=0, **others)
    return bench.comparer.compare(request(given))


def body(*data: object, **others: object) -> Answer:
    return Answer(body=json.dumps({"data": data, **others}).encode())


def vector(index: object, *numbers: object) -> dict[str, object]:
    return {"index": index, "embedding": numbers}


@pytest.mark.parametrize(
    ("fields", "path", "header"),
    [
        ({}, "/embeddings", ("authorization", f"Bearer {KEY}")),
        ({"provider": "azure"}, "/openai/v1/embeddings", ("api-key", KEY)),
        (
            {"provider": "azure", "api_version": "2024-10-21"},
            "/openai/deployments/m/embeddings?api-version=2024-10-21",
            ("api-key", KEY),
        ),
    ],
)
def test_both_texts_are_sent_in_one_request(
    fields: dict[str, Any], path: str, header: tuple[str, str]
) -> None:
    bench = Bench()
    with serve(script(GOOD)) as server:
        likeness = compare(bench, server, **fields)
    [asked] = server.asked
    assert (asked.method, asked.path) == ("POST", path)
    assert json.loads(asked.body) == {"model": "m", "input": [*TEXTS]}
    assert header in asked.headers.items()
    assert likeness.cosine == pytest.approx(0.6)
    assert (likeness.response.tokens_in, likeness.response.tokens_out) == (8, 0)


def test_config_accepts_every_embedding_provider() -> None:
    assert set(EMBEDDING_PROVIDERS) == set(EMBEDDING_URLS)


def test_vectors_are_ordered_by_index() -> None:
    with serve(script(body(vector(1, 0, 2), vector(0, -1, 0), model="m", usage=None))) as server:
        assert compare(Bench(), server).cosine == 0.0


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (body(vector(0, 1, 0)), "one vector per text"),
        (body(vector(0, 1), vector(0, 1)), "one vector per text"),
        (body(vector(1, 1), vector(2, 1)), "one vector per text"),
        (body(*(vector(i, 1) for i in range(3))), "one vector per text"),
        (body(vector(0, 1), vector(1, 1), vector(1, 1)), "one vector per text"),
        (body(), "one vector per text"),
        (body(vector(0, 1, 0), vector(1, 1)), "different lengths"),
        (body(vector(0), vector(1)), "did not return a response of its provider's API"),
        (body(vector(0, 1, 1), vector(1, 0, 0)), "a vector of zeros has no direction"),
        (body(vector(0, 1), vector(1, "1")), "did not return a response of its provider's API"),
        (body(vector(0, 1), vector(1, True)), "did not return a response of its provider's API"),
        (body(vector(0, 1), vector(1, None)), "did not return a response of its provider's API"),
        (
            body(vector(0, 1), vector(1, float("nan"))),
            "did not return a response of its provider's API",
        ),
        (
            body(vector(0, 1), vector(1, float("inf"))),
            "did not return a response of its provider's API",
        ),
        (body(vector("0", 1), vector(1, 1)), "did not return a response of its provider's API"),
        (body({"embedding": [1]}, vector(1, 1)), "did not return a response of its provider's API"),
        (
            body({"index": 0, "embedding": "AACAPw=="}, vector(1, 1)),
            "did not return a response of its provider's API",
        ),
        (Answer(body=b'{"choices": []}'), "did not return a response of its provider's API"),
        (Answer(body=b"[]"), "did not return a response of its provider's API"),
    ],
)
def test_invalid_embedding_response_is_an_error(answer: Answer, why: str) -> None:
    with serve(script(answer)) as server, pytest.raises(EvaluatorError, match=why):
        compare(Bench(), server)
    assert len(server.asked) == 1


def test_busy_or_garbled_response_is_retried() -> None:
    with serve(script(refused(429), Answer(body=b"<html>"), GOOD)) as server:
        assert compare(Bench(), server).cosine == pytest.approx(0.6)
    assert len(server.asked) == 3


def test_error_response_is_reported_without_key() -> None:
    answer = refused(400, message=f"{KEY} is too long")
    with serve(script(answer)) as server, pytest.raises(EvaluatorError) as caught:
        compare(Bench(), server)
    assert "status 400 (*** is too long)" in str(caught.value)
    assert len(server.asked) == 1


def test_unencrypted_base_url_is_an_error() -> None:
    with pytest.raises(EvaluatorError, match="http"):
        Bench().comparer.compare(request(settings("http://192.0.2.1/v1")))


def test_embedding_call_is_charged() -> None:
    bench = Bench(caps=BudgetLimits(max_calls=1, max_usd=1))
    prices = TokenPrices(input_usd=2, output_usd=10)
    with serve(script(GOOD)) as server:
        compare(bench, server, prices=prices)
        assert bench.budget.spent == ModelCost(calls=1, tokens=8, usd=16e-6)
        with pytest.raises(EvaluatorError, match=r"exceed `max_calls` \(1\)"):
            compare(bench, server, prices=prices)
    assert len(server.asked) == 1


def test_unreported_tokens_are_estimated() -> None:
    bench = Bench()
    with serve(script(embedded([1], [1]))) as server:
        compare(bench, server)
    assert bench.budget.spent == ModelCost(calls=1, tokens=7)


def test_replay_only_makes_no_call() -> None:
    given = request(settings("http://127.0.0.1:9"), replay="only")
    with pytest.raises(UncachedResponseError, match="`replay: only` calls no model"):
        Bench().comparer.compare(given)


@pytest.mark.parametrize("text", ["", "good", "nan", "inf", "2", "-1.1"])
def test_invalid_cached_cosine_is_ignored(text: str) -> None:
    assert parse_cosine(ModelResponse(text=text, ending="complete")) is None
