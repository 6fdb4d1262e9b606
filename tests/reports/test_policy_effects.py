"""Which checks pass, or do not count, only by what is looser than the base."""

from typing import Any

import pytest

from agentci.model.gate import (
    EvaluatorSettings,
    Gate,
    GatePolicy,
    GateThresholds,
    PolicyChange,
    PolicyComparison,
    PolicyKey,
)
from agentci.model.result import CheckResult, Report
from agentci.model.values import replace
from agentci.reports.policy_effects import drop_effects, explain_policy
from tests.helpers.reports import CONFIG, make_report, make_result


def change(key: PolicyKey, value: float | None = None, **others: Any) -> PolicyChange:
    """A looser setting of ``tone``, with the base's value."""
    evaluator = "" if key == "min_pass_rate" else "tone"
    return PolicyChange(
        config=CONFIG,
        kind="loosened",
        subject=f"{key} of tone",
        after="looser",
        **{"key": key, "evaluator": evaluator, "value": value, **others},
    )


def settings(threshold: float | None, *cases: str, **others: Any) -> EvaluatorSettings:
    return EvaluatorSettings(
        name="tone", cases=cases, threshold=threshold, criterion="", required=True, **others
    )


def check(score: float | None, case: str = "a", status: Any = "passed", **others: Any) -> Any:
    return make_result(status, score, case=case, **{"evaluator": "tone", **others})


def lower_is_better(result: CheckResult) -> CheckResult:
    return replace(result, evaluator=replace(result.evaluator, better="lower"))


def report_of(found: PolicyChange, *results: CheckResult, **gate: Any) -> Report:
    own = {"policy": GatePolicy(), "settings": (settings(0.7),), **gate}
    return replace(
        make_report(results),
        gates=(Gate(config=CONFIG, evaluators=("tone",), **own),),
        policy=PolicyComparison(base="main", loosened=(found,)),
    )


def effect_of(found: PolicyChange, *results: CheckResult, **gate: Any) -> str:
    policy = explain_policy(report_of(found, *results, **gate))
    assert policy is not None
    [explained] = policy.loosened
    return explained.effect


THRESHOLD = change("threshold", 0.9)
ONE = "1 check passes only because of it: a"


@pytest.mark.parametrize(
    ("result", "effect"),
    [
        pytest.param(check(0.8), ONE, id="below the threshold of the base"),
        pytest.param(check(0.9), "", id="at the threshold of the base"),
        pytest.param(check(0.1, status="failed"), "", id="failed"),
        pytest.param(check(None), "", id="without a score"),
        pytest.param(check(0.8, evaluator="other"), "", id="of another evaluator"),
        pytest.param(check(0.8, threshold=3.0), "", id="of another scale"),
        pytest.param(check(0.8, repeats=(check(0.8),)), "", id="several runs decide"),
        pytest.param(check(0.8, config="other.yaml"), "", id="of another config"),
    ],
)
def test_checks_that_pass_only_by_a_lower_threshold(result: CheckResult, effect: str) -> None:
    assert effect_of(THRESHOLD, result) == effect


def test_base_without_a_threshold_hides_nothing() -> None:
    assert effect_of(change("threshold"), check(0.8)) == ""


@pytest.mark.parametrize(
    ("score", "effect"),
    [pytest.param(0.5, ONE, id="above the base's"), pytest.param(0.2, "", id="below both")],
)
def test_checks_that_pass_only_by_a_higher_maximum(score: float, effect: str) -> None:
    result = lower_is_better(check(score))
    found = effect_of(change("maximum", 0.3), result, settings=(settings(None, maximum=0.7),))
    assert found == effect
    # Of scores of which lower ones are better, a lower threshold is no reason to pass.
    assert effect_of(THRESHOLD, result) == ""


def test_threshold_of_a_case_counts_before_that_of_all() -> None:
    results = [check(0.8, "a"), check(0.8, "b")]
    own = (settings(0.7, "a"), settings(0.5))
    assert effect_of(THRESHOLD, *results, settings=own) == ONE


def test_change_of_some_cases_is_about_no_others() -> None:
    found = change("threshold", 0.9, names=("b",))
    effect = effect_of(found, check(0.8, "a"), check(0.8, "b"))
    assert effect == "1 check passes only because of it: b"


def test_cases_are_named_once_and_limited() -> None:
    results = [check(0.8, f"c{number}") for number in range(7)]
    effect = effect_of(THRESHOLD, *results, check(0.8, "c0"))
    assert effect == "8 checks pass only because of it: c0, c1, c2, c3, c4, … and 2 more"


def test_checks_that_would_count_if_they_were_required() -> None:
    failed = check(0.1, "a", "failed", required=False)
    errored = check(None, "b", "errored", required=False)
    others = [
        check(0.9, "c", required=False),
        check(None, "d", "skipped", required=False),
        check(0.1, "e", "failed"),
    ]
    required = change("required")
    effect = effect_of(required, failed, errored, *others)
    assert effect == "2 checks do not pass, and do not count because of it: a, b"
    effect = effect_of(required, failed, *others)
    assert effect == "1 check does not pass, and does not count because of it: a"
    assert effect_of(required, *others) == ""


@pytest.mark.parametrize(
    ("rate", "failed", "effect"),
    [
        pytest.param(1.0, 1, "1 check failed, too many for the base's pass rate: c0", id="one"),
        pytest.param(
            0.8, 3, "3 checks failed, too many for the base's pass rate: c0, c1, c2", id="several"
        ),
        pytest.param(0.8, 2, "", id="as many as the base allows"),
        pytest.param(1.0, 0, "", id="none"),
    ],
)
def test_failures_that_a_lower_pass_rate_allows(rate: float, failed: int, effect: str) -> None:
    results = [
        check(0.1, f"c{number}", "failed") if number < failed else check(0.9, f"c{number}")
        for number in range(10)
    ]
    # Neither of these counts toward the pass rate of the gate.
    results += [
        check(0.1, "advisory", "failed", required=False),
        check(0.1, "of its own", "failed", evaluator="price"),
        check(None, "skipped", "skipped"),
    ]
    policy = GatePolicy(evaluators={"price": GateThresholds(min_pass_rate=0.5)})
    assert effect_of(change("min_pass_rate", rate), *results, policy=policy) == effect


def test_effects_are_dropped_as_they_were_added() -> None:
    """Those of edited eval cases are known from the policy, and stay."""
    edited = change("", effect="amount 5 → 6")
    report = report_of(THRESHOLD, check(0.8))
    assert report.policy is not None
    given = replace(report.policy, loosened=(THRESHOLD, edited))
    explained = explain_policy(replace(report, policy=given))
    assert explained is not None
    assert [each.effect for each in explained.loosened] == [ONE, "amount 5 → 6"]
    assert drop_effects(explained) == given
    assert explain_policy(make_report([check(0.8)])) is None
