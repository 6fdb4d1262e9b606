"""`cosine` has the embeddings of two texts compared by the model that `judge` names for that."""

from typing import Any

import pytest

from agentci.config.overrides import Overrides
from agentci.errors import EvaluatorError, InputError
from agentci.model.judges import ModelResponse, ModelSettings, RequiredJudge, TokenPrices
from agentci.model.requests import CompareEmbeddings, EmbeddingSimilarity, MetricResult
from tests.evaluators.openai_eval.configs import a_case, asked, evaluator, judged, read

COSINE = {"type": "text_similarity", "evaluation_metric": "cosine"}
JUDGE = {"provider": "openai", "model": "m", "embedding_model": "e"}


def likeness(cosine: float) -> EmbeddingSimilarity:
    return EmbeddingSimilarity(
        cosine=cosine, response=ModelResponse(text=repr(cosine), ending="complete")
    )


def settings(own: object = None, shared: object = None, model: str = "") -> ModelSettings:
    fields = {} if own is None else {"judge": own}
    one = evaluator(COSINE, shared=shared, overrides=Overrides(judge_model=model), **fields)
    [need] = one.needs
    [task] = asked(one, a_case("x"))
    assert isinstance(need, RequiredJudge)
    assert isinstance(task, CompareEmbeddings)
    assert need.judge == task.judge
    return task.judge.settings


def test_each_turn_is_compared_with_its_golden_one() -> None:
    tasks = asked(evaluator(COSINE, shared=JUDGE), a_case("Rome", "Oslo", golden=("Paris", "Bonn")))
    assert [each.texts for each in tasks if isinstance(each, CompareEmbeddings)] == [
        ("Rome", "Paris"),
        ("Oslo", "Bonn"),
    ]


@pytest.mark.parametrize(
    ("cosine", "score", "passed"), [(0.8, 0.8, True), (0.79, 0.79, False), (-0.5, 0.0, False)]
)
def test_a_score_is_a_cosine_and_never_below_0(cosine: float, score: float, passed: bool) -> None:
    one = evaluator(COSINE, shared=JUDGE, threshold=0.8)
    judgement = read(one, a_case("Rome"), likeness(cosine))
    assert (judgement.score, judgement.passed) == (score, passed)
    assert judgement.details["results"] == [
        {
            "score": score,
            "passed": passed,
            "evaluation_metric": "cosine",
            "model": "e",
            "cosine": cosine,
        }
    ]


def test_a_miss_says_what_a_negative_cosine_counts_as() -> None:
    judgement = read(evaluator(COSINE, shared=JUDGE), a_case("Rome"), likeness(-0.5))
    assert judgement.misses[0].startswith("turn 1: cosine -0.50 (counts as 0): expected ")


def test_without_a_text_nothing_is_asked_and_the_score_is_0() -> None:
    judgement = judged(a_case(None), COSINE, shared=JUDGE)
    assert (judgement.score, judgement.passed) == (0.0, False)
    assert "cosine 0.00 (a text is empty)" in judgement.misses[0]


def test_a_text_that_is_too_long_is_an_error() -> None:
    with pytest.raises(EvaluatorError, match="the limit is 200,000"):
        asked(evaluator(COSINE, shared=JUDGE), a_case("x" * 200_001))


def test_in_a_formula_it_is_one_of_the_scores() -> None:
    same = {"type": "string_check", "operation": "eq"}
    grader = {"type": "multi", "graders": {"a": COSINE, "b": same}, "calculate_output": "a + b"}
    one = evaluator(grader, shared=JUDGE)
    assert len(one.needs) == 1
    assert read(one, a_case("Rome"), likeness(0.5)).score == 0.5


class TestModels:
    def test_are_those_of_the_judge_without_what_texts_are_written_by(self) -> None:
        price = {"input": 1, "output": 2}
        shared = {**JUDGE, "effort": "low", "temperature": 1, "base_url": "http://x", "samples": 3}
        assert settings(shared={**shared, "price": price}) == ModelSettings(
            provider="openai",
            model="e",
            base_url="http://x",
            output_tokens=0,
            prices=TokenPrices(input_usd=1, output_usd=2),
        )

    @pytest.mark.parametrize(
        ("own", "shared", "provider", "model"),
        [
            ({"embedding_model": "e"}, None, "openai", "e"),
            ({"embedding_model": "own"}, JUDGE, "openai", "own"),
            (
                {"embedding_model": "d"},
                {"provider": "azure", "base_url": "https://x", "model": "m"},
                "azure",
                "d",
            ),
            ({"provider": "azure", "embedding_model": "d"}, JUDGE, "azure", "d"),
            (None, {"model": "openai/m", "embedding_model": "e"}, "openai", "e"),
        ],
    )
    def test_may_be_the_entrys_own(
        self, own: object, shared: object, provider: str, model: str
    ) -> None:
        found = settings(own, shared)
        assert (found.provider, found.model) == (provider, model)

    def test_are_not_replaced_by_another_judge(self) -> None:
        found = settings(shared=JUDGE, model="anthropic/claude")
        assert (found.provider, found.model) == ("openai", "e")

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"shared": {"provider": "openai", "model": "m"}},
            {"judge": {"provider": "azure", "model": "m"}, "shared": JUDGE},
        ],
    )
    def test_have_to_be_named(self, fields: dict[str, Any]) -> None:
        with pytest.raises(InputError) as caught:
            evaluator(COSINE, **fields)
        [problem] = caught.value.problems
        assert problem.message.startswith("`cosine` needs an embedding model")
        hint = problem.hint or ""
        assert all(word in hint for word in ("embedding_model", "cosine_tf", "backend: remote"))

    @pytest.mark.parametrize(
        "judge",
        [
            {"provider": "anthropic", "model": "m"},
            {"provider": "gemini", "model": "m"},
            {"model": "gemini-3"},
            {"command": ["copilot"]},
        ],
    )
    def test_are_not_asked_of_other_providers(self, judge: dict[str, Any]) -> None:
        with pytest.raises(InputError, match=r"embeddings of provider .* are not supported"):
            evaluator(COSINE, judge={**judge, "embedding_model": "e"})


def test_another_reply_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="got a MetricResult"):
        read(evaluator(COSINE, shared=JUDGE), a_case("x"), MetricResult(score=1, turn_scores=()))
