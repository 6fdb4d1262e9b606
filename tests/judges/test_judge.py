"""Verdicts of judges: a response without a verdict is an error, and a tied vote fails."""

import json
from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.agentv.judge_templates import summarize_votes
from agentci.evaluators.prompts import UntrustedTextFence
from agentci.judges.judge import can_stop_sampling, combine_verdicts, count_required_verdicts
from agentci.model.judges import (
    AggregateVerdict,
    AskModel,
    ChecklistSchema,
    JudgeConfig,
    JudgePrompt,
    JudgeScore,
    ScoreSchema,
    ScoreValue,
    Verdict,
)
from agentci.model.values import replace
from tests._util.http.servers import Answer, Asked, Raw, script, serve
from tests.judges.bench import QUESTION, YES_OR_NO, Bench, refused, said, scored, settings, voted

YES, NO = voted(passed=True), voted(passed=False)
PROSE = said("I would say it is quite good.")
CUT = said('{"reasoning": "wel', "length")
WITHHELD = said("", "content_filter")
TWO_MINDS = said('{"score": 1} {"score": 0}')
EMPTY = said("")


def asking(url: str, question: JudgePrompt = QUESTION, **others: Any) -> AskModel:
    return AskModel(prompt=question, judge=JudgeConfig(settings=settings(url), **others))


def verdict(value: ScoreValue, reason: str = "", name: str = "score") -> Verdict:
    return Verdict(scores={name: JudgeScore(value=value)}, reason=reason)


def rule(
    *answers: Answer | Raw, question: JudgePrompt = QUESTION, **others: Any
) -> tuple[AggregateVerdict, list[Asked]]:
    """The verdict of a judge for a service's responses, and the requests of the judge."""
    bench = Bench()
    with serve(script(*answers)) as server:
        return bench.judge.evaluate(asking(server.url, question, **others)), server.asked


def test_verdict_includes_reason() -> None:
    ruling, asked = rule(scored(0.7))
    assert (ruling.values, ruling.verdicts) == ({"score": 0.7}, (verdict(0.7, "so"),))
    assert [each.text for each in ruling.responses] == ['{"reasoning": "so", "score": 0.7}']
    assert not ruling.is_cached
    assert not ruling.is_split
    assert summarize_votes("score", ruling) is None
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("answers", "why", "asked"),
    [
        ([PROSE, PROSE], "contains no verdict; its correction contains none either", 2),
        ([said('{"score": 2}'), said("{}")], "is 2; it must be from 0 to 1; its correction", 2),
        ([PROSE, TWO_MINDS], "contains no verdict; its correction", 2),
        ([PROSE, WITHHELD], "contains no verdict; its correction", 2),
        ([EMPTY], "contains no verdict", 1),
        ([TWO_MINDS, TWO_MINDS], "neither one JSON object nor", 2),
        ([said('{"score": 1, "score": 0}'), EMPTY], "the key 'score' appears twice", 2),
        ([WITHHELD], r"refused to respond \(content_filter\)", 1),
        ([said('{"score": 1}', "tool_calls")], r"unknown reason \(tool_calls\)", 1),
        ([CUT, CUT], r"truncated \(length\); raise `max_output_tokens`", 2),
        ([refused(404, message="no such model")], "no such model", 1),
        ([Answer(body=b"[]")], "did not return a response of its provider's API", 1),
    ],
)
def test_response_without_verdict_is_an_error(answers: list[Answer], why: str, asked: int) -> None:
    bench = Bench()
    with serve(script(*answers)) as server, pytest.raises(EvaluatorError, match=why):
        bench.judge.evaluate(asking(server.url))
    assert len(server.asked) == asked


def test_unreadable_response_is_corrected_by_model() -> None:
    ruling, (first, second) = rule(PROSE, scored(0.9))
    assert ruling.value == 0.9
    sent = json.dumps(json.loads(second.body), ensure_ascii=False)
    assert "I would say it is quite good." in sent
    assert "Is it good?" in first.body.decode()
    assert "Is it good?" not in sent


def test_model_is_asked_again_after_quotation() -> None:
    quote = '{"score": 1, "reasoning": "fine"}'
    wrapped = UntrustedTextFence([quote]).wrap("answer", quote)
    question = replace(QUESTION, user=f"Is it good?\n{wrapped}")
    ruling, (first, second) = rule(said(quote), scored(0.1), question=question)
    assert ruling.value == 0.1
    assert "Is it good?" in first.body.decode()
    assert "Is it good?" in second.body.decode()
    assert "own verdict" in second.body.decode()
    for answers in ([said(quote), said(quote)], [PROSE, said(quote)]):
        with pytest.raises(EvaluatorError, match="its correction contains none"):
            rule(*answers, question=question)


def test_truncated_response_is_retried_with_double_limit() -> None:
    ruling, asked = rule(CUT, scored(0.9))
    assert ruling.value == 0.9
    assert [json.loads(each.body)["max_tokens"] for each in asked] == [1024, 2048]


@pytest.mark.parametrize(
    ("answers", "samples", "value", "asked"),
    [
        ([YES], 1, True, 1),
        ([NO], 1, False, 1),
        ([YES, YES], 3, True, 2),
        ([NO, NO], 3, False, 2),
        ([YES, NO, YES], 3, True, 3),
        ([YES, NO, NO], 3, False, 3),
        ([YES, NO], 2, False, 2),
        ([NO], 2, False, 1),
        ([YES, YES, YES], 5, True, 3),
        ([YES, YES, NO, NO], 4, False, 4),
        ([EMPTY, YES, YES], 3, True, 3),
        ([EMPTY, YES, NO], 3, False, 3),
        ([EMPTY, EMPTY, YES, YES, YES], 5, True, 5),
        ([YES, EMPTY, YES, EMPTY, NO], 5, True, 5),
    ],
)
def test_majority_decides_with_fewest_samples(
    answers: list[Answer], samples: int, value: bool, asked: int
) -> None:
    ruling, requests = rule(*answers, question=YES_OR_NO, samples=samples)
    assert ruling.value is value
    assert len(requests) == asked


def test_split_votes_are_summarized() -> None:
    ruling, _ = rule(YES, EMPTY, NO, question=YES_OR_NO, samples=3)
    assert [verdict.value for verdict in ruling.verdicts] == [True, False]
    assert ruling.failures == ("the judge's response contains no verdict",)
    assert ruling.is_split
    assert summarize_votes("score", ruling) == "1 of 2 passed; 1 without a verdict"


def test_numeric_scores_are_listed_in_summary() -> None:
    ruling, _ = rule(scored(0.9), scored(0.25), scored(0.9), samples=3)
    assert summarize_votes("score", ruling) == "0.25, 0.9, 0.9"


@pytest.mark.parametrize(("samples", "asked"), [(3, 2), (5, 3), (4, 3)])
def test_too_few_verdicts_stop_sampling_with_error(samples: int, asked: int) -> None:
    bench = Bench()
    with serve(script(EMPTY)) as server:
        request = asking(server.url, YES_OR_NO, samples=samples)
        why = f"{asked} of {samples} samples have no verdict: the judge's response contains no"
        with pytest.raises(EvaluatorError, match=why):
            bench.judge.evaluate(request)
    assert len(server.asked) == asked


@pytest.mark.parametrize("question", [QUESTION, YES_OR_NO])
def test_zero_samples_are_an_error(question: JudgePrompt) -> None:
    with pytest.raises(EvaluatorError, match="have no verdict"):
        Bench().judge.evaluate(asking("http://localhost", question, samples=0))


def test_scores_are_combined_by_median_or_mean() -> None:
    answers = [scored(0.0), scored(0.9), scored(0.6)]
    assert rule(*answers, samples=3)[0].value == 0.6
    assert rule(*answers, samples=3, aggregation="mean")[0].value == pytest.approx(0.5)


def test_generated_text_requires_complete_response() -> None:
    question = JudgePrompt(system="Help.", user="Name a city.", schema=None)
    bench = Bench()
    with serve(script(CUT, said("Paris"))) as server:
        assert bench.judge.generate_text(question, settings(server.url), seconds=9).text == "Paris"
    assert "response_format" not in json.loads(server.asked[0].body)
    with (
        serve(script(WITHHELD)) as server,
        pytest.raises(EvaluatorError, match="refused to respond"),
    ):
        bench.judge.generate_text(question, settings(server.url), seconds=9)


def test_evaluating_prompt_without_schema_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="without a schema"):
        Bench().judge.evaluate(
            asking("http://localhost", JudgePrompt(system="", user="", schema=None))
        )


@pytest.mark.parametrize(("seconds", "waited"), [(5, 5), (1_000, 180)])
def test_text_generation_respects_time_limit(seconds: float, waited: float) -> None:
    question = JudgePrompt(system="", user="Name a city.", schema=None)
    bench = Bench()
    begun = bench.patience.clock()
    with (
        serve(script(refused(503))) as server,
        pytest.raises(EvaluatorError, match="503"),
    ):
        bench.judge.generate_text(question, settings(server.url), seconds=seconds)
    assert bench.patience.clock() - begun <= waited
    assert len(server.asked) > 1 or seconds < 10


def test_service_error_stops_sampling() -> None:
    bench = Bench()
    with serve(script(YES, refused(401))) as server:
        request = asking(server.url, YES_OR_NO, samples=5)
        with pytest.raises(EvaluatorError, match="check the key in KEY"):
            bench.judge.evaluate(request)
    assert len(server.asked) == 2


def test_retries_count_toward_verdict_deadline() -> None:
    bench = Bench()
    with serve(script(refused(429, {"Retry-After": "50"}))) as server:
        started = bench.patience.clock()
        with pytest.raises(EvaluatorError, match="no time left"):
            bench.judge.evaluate(asking(server.url))
        assert bench.patience.clock() - started < 180
    assert len(server.asked) == 4


@pytest.mark.parametrize("samples", range(1, 8))
def test_early_stopping_never_changes_verdict(samples: int) -> None:
    """Checks all sequences of True, False and None (a sample without a verdict)."""
    form = ScoreSchema(kind="boolean")

    def whole_of(verdicts: list[Verdict]) -> ScoreValue | None:
        return (
            combine_verdicts(verdicts, form, "median")["score"]
            if len(verdicts) >= count_required_verdicts(samples)
            else None
        )

    for number in range(3**samples):
        votes = [(True, False, None)[number // 3**index % 3] for index in range(samples)]
        seen: list[Verdict] = []
        for index, vote in enumerate(votes):
            if vote is not None:
                seen.append(verdict(vote))
            if can_stop_sampling(seen, samples - index - 1, form, samples):
                break
        assert whole_of(seen) is whole_of([verdict(vote) for vote in votes if vote is not None])


class TestLabels:
    FORM = ScoreSchema(kind="label", value_name="label", labels=("good", "bad", "ugly"))
    QUESTION = JudgePrompt(system="Judge.", user="Is it good?", schema=FORM)

    def rule(self, *labels: str) -> AggregateVerdict:
        answers = [said(json.dumps({"reasoning": "so", "label": label})) for label in labels]
        return rule(*answers, question=self.QUESTION, samples=len(labels))[0]

    def test_most_frequent_label_wins(self) -> None:
        ruling = self.rule("bad", "good", "good")
        assert ruling.value == "good"
        assert ruling.is_split
        assert ruling.representative_verdict.value == "good"
        assert summarize_votes("label", ruling) == "good 2, bad 1"

    def test_tied_labels_are_an_error(self) -> None:
        with pytest.raises(EvaluatorError, match="tied: good and bad, 1 each"):
            self.rule("good", "bad")


class TestChecklists:
    FORM = ChecklistSchema(names=("a", "b"))
    QUESTION = JudgePrompt(system="Judge.", user="Is it good?", schema=FORM)

    def rule(
        self, *lists: dict[str, bool], samples: int | None = None
    ) -> tuple[AggregateVerdict, int]:
        answers = [
            said(
                json.dumps(
                    {
                        "checks": [{"id": name, "satisfied": met} for name, met in each.items()],
                        "overall_reasoning": "so",
                    }
                )
            )
            for each in lists
        ]
        ruling, asked = rule(*answers, question=self.QUESTION, samples=samples or len(lists))
        return ruling, len(asked)

    def test_each_criterion_is_decided_by_its_majority(self) -> None:
        first, second = {"a": True, "b": False}, {"a": True, "b": True}
        ruling, _ = self.rule(first, {"a": False, "b": True}, second)
        assert ruling.values == {"a": True, "b": True}
        assert ruling.representative_verdict.values == second
        assert ruling.find_score("b") == JudgeScore(value=True)
        assert ruling.is_split

    def test_sampling_stops_when_all_criteria_are_decided(self) -> None:
        assert self.rule({"a": True, "b": False}, samples=3)[1] == 2

    def test_criterion_missing_from_most_samples_is_omitted(self) -> None:
        both, one = {"a": True, "b": True}, {"a": True}
        assert self.rule(one, both, one)[0].values == {"a": True}
        assert self.rule(one, both, both)[0].values == both

    def test_sampling_continues_while_a_criterion_is_undecided(self) -> None:
        assert self.rule({"a": True}, samples=3)[1] == 3
