"""Rubrics: criteria that are scored one by one, with AgentV's scores and messages."""

from typing import Any

import pytest

from agentci.errors import InputError
from agentci.evaluators.evaluator import Evaluator
from agentci.model.judges import (
    AggregateVerdict,
    AskModel,
    ChecklistSchema,
    JudgePrompt,
    JudgeScore,
    ScoreValue,
    Verdict,
)
from agentci.model.requests import Judgement
from tests.evaluators.agentv.agentv_cases import case, run_with_answer, run_with_tools, suite_of

JUDGE = {"command": ["judge"]}


def judge(*criteria: Any, key: str = "cases", **fields: Any) -> Evaluator:
    entry = {"name": "r", "type": "rubrics", "criteria": list(criteria), "judge": JUDGE, **fields}
    [evaluator] = suite_of(entry, key=key).evaluators
    return evaluator


def make_prompt(of: Evaluator, **case_fields: Any) -> JudgePrompt:
    request = of.ask(case(run_with_answer("x"), **case_fields))
    assert isinstance(request, AskModel)
    return request.prompt


def read(of: Evaluator, **values: ScoreValue) -> Judgement:
    marks = {name: JudgeScore(value=value, reason=f"r{name}") for name, value in values.items()}
    return of.read(AggregateVerdict(values=values, verdicts=(Verdict(scores=marks, reason="all"),)))


class TestPrompt:
    def test_prompt_lists_criteria_as_instructions(self) -> None:
        evaluator = judge("Says it.", {"id": "b", "outcome": "Is kind.", "required": False})
        question = make_prompt(evaluator)
        assert question.schema == ChecklistSchema(names=("rubric-1", "b"))
        assert "[[ ## rubrics ## ]]\n- [rubric-1] (required): Says it.\n- [b]: Is kind." in (
            question.user
        )
        assert "satisfied" in question.system
        assert "meets the criteria" not in question.system

    def test_prompt_lists_score_ranges(self) -> None:
        given = {"id": "a", "outcome": "Is right.", "weight": 2, "min_score": 0.7}
        question = make_prompt(judge({**given, "score_ranges": {"4": "fair", "0": "bad"}}))
        assert question.schema == ChecklistSchema(names=("a",), kind="number")
        lines = (
            "- [a] (required: at least 7) (weight: 2): Is right.\n"
            "  - 0 to 3: bad\n"
            "  - 4 to 10: fair"
        )
        assert lines in question.user

    def test_prompt_lists_used_tools(self) -> None:
        request = judge("Searches.").ask(case(run_with_tools("search")))
        assert isinstance(request, AskModel)
        assert "[[ ## tool_calls ## ]]\n<untrusted" in request.prompt.user
        assert "tool_calls" not in make_prompt(judge("Searches.")).user

    def test_rubrics_fill_template_or_are_appended(self) -> None:
        entry = {"type": "llm_judge", "rubrics": ["Says it."], "criteria": None}
        below = self.by_template(entry, "Look: {{ output }}")
        assert "\n\n[[ ## rubrics ## ]]\n- [rubric-1]" in below
        inside = self.by_template(entry, "{{ rubrics }} Look: {{ output }} {{ rubrics_json }}")
        assert inside.count("[rubric-1] (required): Says it.") == 1
        assert '"outcome": "Says it."' in inside
        ranges = {"outcome": "Says it.", "score_ranges": {"0": "no"}}
        graded = self.by_template({**entry, "rubrics": [ranges]}, "{{ output }}{{ rubrics_json }}")
        assert '"score_ranges": [\n      {\n        "score_range": [\n          0,' in graded

    def by_template(self, entry: dict[str, Any], template: str) -> str:
        given = {name: value for name, value in entry.items() if value is not None}
        full = {"name": "r", "judge": JUDGE, "prompt": template, **given}
        [evaluator] = suite_of(full).evaluators
        return make_prompt(evaluator).user


class TestBinaryCriteria:
    CRITERIA = (
        {"id": "a", "outcome": "has a", "weight": 2, "required": False},
        {"id": "b", "description": "has b"},
        {"id": "c", "expected_outcome": "has c", "required": False},
    )

    def test_score_is_weighted_share_of_met_criteria(self) -> None:
        judgement = read(judge(*self.CRITERIA), a=True, b=True, c=False)
        assert (judgement.score, judgement.passed) == (0.75, False)
        assert judgement.hits == ("[a] has a: ra", "[b] has b: rb")
        assert judgement.misses == ("[c] has c: rc",)
        assert judgement.reasoning == "all"
        assert judgement.details["criteria"] == {
            "a": {"satisfied": True},
            "b": {"satisfied": True},
            "c": {"satisfied": False},
        }

    def test_missing_required_criterion_fails(self) -> None:
        judgement = read(judge(*self.CRITERIA, min_score=0.5), a=True, b=False, c=True)
        assert (judgement.score, judgement.passed) == (0.75, False)
        assert judgement.reason == "required criteria not met: [b]"

    def test_ungraded_criterion_fails(self) -> None:
        judgement = read(judge(*self.CRITERIA), a=True, b=True)
        assert (judgement.score, judgement.passed) == (1.0, False)
        assert judgement.misses == ("[c] has c: not graded by the judge",)
        assert judgement.reason == "not graded by the judge: [c]"

    def test_negated_criteria_pass_if_not_met(self) -> None:
        evaluator = judge("names a rival", {"id": "b", "outcome": "is rude"}, negate=True)
        clean = read(evaluator, **{"rubric-1": False, "b": False})
        assert (clean.score, clean.passed, clean.reason) == (1.0, True, None)
        assert not read(evaluator, **{"rubric-1": True, "b": False}).passed
        partial = read(evaluator, b=False)
        assert (partial.passed, partial.score) == (False, 1.0)
        assert partial.reason is not None
        assert "not graded by the judge: [rubric-1]" in partial.reason

    def test_zero_weight_criteria_score_zero(self) -> None:
        assert read(judge({"id": "a", "outcome": "x", "weight": 0}), a=True).score == 0.0

    def test_unmet_optional_criterion_does_not_fail(self) -> None:
        judgement = read(judge("a", {"criteria": "b", "required": False, "weight": 0.1}), **{
            "rubric-1": True, "rubric-2": False,
        })  # fmt: skip
        assert (judgement.passed, judgement.reason) == (True, None)

    def test_samples_decide_by_majority_with_matching_reason(self) -> None:
        verdicts = tuple(
            Verdict(scores={"rubric-1": JudgeScore(value=value, reason=f"because {n}")})
            for n, value in enumerate([False, True, True])
        )
        judgement = judge("a").read(AggregateVerdict(values={"rubric-1": True}, verdicts=verdicts))
        assert judgement.hits == ("[rubric-1] a: because 1",)
        assert judgement.details["criteria"] == {
            "rubric-1": {"satisfied": True, "samples": "2 of 3 passed"}
        }


RANGES = {"0": "bad", "4": "ok", "8": "great"}


class TestGradedCriteria:
    def judge(self, *others: Any, **fields: Any) -> Evaluator:
        given = {"id": "a", "outcome": "accuracy", "score_ranges": RANGES, **fields}
        return judge(given, *others)

    def test_score_is_weighted_mean_of_grades(self) -> None:
        other = {"id": "b", "outcome": "style"}
        judgement = read(self.judge(other, weight=3), a=8.0, b=6.0)
        assert judgement.score == pytest.approx(0.75)
        assert judgement.hits == ("[a] accuracy - Score: 8/10 (great): ra",)
        assert judgement.misses == ("[b] style - Score: 6/10: rb",)
        assert judgement.details["criteria"] == {"a": {"score": 8.0}, "b": {"score": 6.0}}

    @pytest.mark.parametrize(
        ("fields", "grade", "passed"),
        [
            ({}, 8.0, True),
            ({"required": True}, 9.0, False),
            ({"required": True}, 10.0, True),
            ({"required_min_score": 9}, 8.0, False),
            ({"required_min_score": 8}, 8.0, True),
            ({"min_score": 0.9}, 8.0, False),
            ({"min_score": 0.8, "required": True}, 8.0, True),
        ],
    )
    def test_grade_below_required_minimum_fails(
        self, fields: dict[str, Any], grade: float, passed: bool
    ) -> None:
        judgement = read(self.judge(**fields), a=grade)
        assert judgement.passed is passed
        assert bool(judgement.hits) is passed

    def test_criterion_with_ranges_only_is_named_by_its_id(self) -> None:
        evaluator = judge({"id": "depth", "score_ranges": RANGES})
        assert "- [depth]: depth\n  - 0 to " in make_prompt(evaluator).user
        assert read(evaluator, depth=8.0).hits == ("[depth] depth - Score: 8/10 (great): rdepth",)
        assert read(evaluator).misses == ("[depth] depth: not graded by the judge",)

    def test_fractional_grade_uses_lower_range(self) -> None:
        judgement = read(self.judge(), a=7.5)
        assert judgement.hits == ("[a] accuracy - Score: 7.5/10 (ok): ra",)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"criteria": [{"id": "a"}]}, "a criterion needs `outcome`"),
        ({"criteria": ["a", {"id": "rubric-1", "outcome": "x"}]}, "have the id 'rubric-1'"),
        ({"rubrics": ["a"]}, "set either `criteria` or `rubrics`"),
        ({"criteria": [{"outcome": "x", "score_ranges": {"1": "a"}}]}, "must cover 0 to 10"),
        ({"criteria": [{"outcome": "x", "score_ranges": {}}]}, "must cover 0 to 10"),
        ({"criteria": [{"outcome": "x", "score_ranges": {"low": "a"}}]}, "must be grades"),
        ({"criteria": [{"outcome": "x", "score_ranges": {"9" * 20: "a"}}]}, "must be grades"),
        (
            {
                "criteria": [
                    {
                        "outcome": "x",
                        "score_ranges": [
                            {"score_range": [0, 5], "outcome": "a"},
                            {"score_range": [5, 10], "outcome": "b"},
                        ],
                    }
                ]
            },
            "without gaps or overlaps",
        ),
    ],
)
def test_invalid_criteria_are_rejected(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        judge(**{"criteria": ["a"], **fields})


def test_score_ranges_are_accepted_in_any_order() -> None:
    ranges = [
        {"score_range": [6, 10], "outcome": "nice"},
        {"score_range": [0, 5], "outcome": "poor"},
    ]
    judgement = read(judge({"id": "a", "outcome": "x", "score_ranges": ranges}), a=6.0)
    assert judgement.misses == ("[a] x - Score: 6/10 (nice): ra",)
