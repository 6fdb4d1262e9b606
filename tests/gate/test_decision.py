"""When the gate opens, and what it says."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.gate.decision import compute_totals, decide, decide_shard, group_results_by_policy
from agentci.model.choices import FailOn
from agentci.model.gate import CaseThresholds, Gate, GatePolicy, GateThresholds
from agentci.model.problem import Place, Problem
from agentci.model.result import CheckResult, Decision, Status, Totals
from agentci.model.shard import Shard
from agentci.model.values import replace
from tests.helpers.building import values
from tests.helpers.reports import make_result

BROKEN = Problem(message="is no JSON", place=Place(file="traces/a.json", line=4))
STATUSES: list[Status] = ["passed", "failed", "errored", "skipped"]


def _results(
    *, passed: int = 0, failed: int = 0, errored: int = 0, skipped: int = 0, **others: Any
) -> list[CheckResult]:
    counts = zip(STATUSES, (passed, failed, errored, skipped), strict=True)
    return [make_result(status, **others) for status, count in counts for _ in range(count)]


def _cases(*, passed: int = 0, failed: int = 0, score: float | None = None, **others: Any) -> Any:
    """As many cases, each judged once."""
    return [
        make_result("passed" if number < passed else "failed", score, case=f"c{number}", **others)
        for number in range(passed + failed)
    ]


def _decide(
    results: Sequence[CheckResult], bar: GateThresholds | None = None, **others: Any
) -> Decision:
    policy = GatePolicy(overall=bar or GateThresholds(), evaluators=others.pop("evaluators", {}))
    return _decide_all([(policy, results)], **others)


def _decide_all(
    judged: Sequence[tuple[GatePolicy, Sequence[CheckResult]]], **others: Any
) -> Decision:
    others = {"problems": (), "uncovered": 0, "complete": True, "fail_on": "failed", **others}
    return decide(judged, **others)


class TestTheExitCode:
    @pytest.mark.parametrize(
        ("results", "bar", "exit_code"),
        [
            pytest.param(_results(passed=12), GateThresholds(), 0, id="all passed"),
            pytest.param(_results(passed=1, failed=1), GateThresholds(), 1, id="one failed"),
            pytest.param(_results(passed=1, errored=1), GateThresholds(), 3, id="one errored"),
            pytest.param(_results(failed=1, errored=1), GateThresholds(), 1, id="one of each"),
            pytest.param(
                _results(passed=1, errored=1),
                GateThresholds(on_error="warn"),
                0,
                id="errors only warn",
            ),
            pytest.param(
                _results(failed=1, errored=1),
                GateThresholds(on_error="warn"),
                1,
                id="and failures fail",
            ),
            pytest.param(
                _results(passed=1, skipped=1), GateThresholds(), 0, id="skips are allowed"
            ),
            pytest.param(
                _results(passed=1, skipped=1),
                GateThresholds(on_skip="fail"),
                1,
                id="skips are not allowed",
            ),
            pytest.param(
                _results(passed=1, skipped=1, errored=1),
                GateThresholds(on_skip="fail"),
                1,
                id="skips weigh more",
            ),
        ],
    )
    def test_follows_the_policy(
        self, results: list[CheckResult], bar: GateThresholds, exit_code: int
    ) -> None:
        decision = _decide(results, bar)
        assert (decision.exit_code, decision.passed) == (exit_code, exit_code == 0)

    @pytest.mark.parametrize(
        ("results", "bar", "exit_code"),
        [
            pytest.param([], GateThresholds(), 1, id="no checks"),
            pytest.param(_results(skipped=2), GateThresholds(), 1, id="all skipped"),
            pytest.param(_results(errored=2), GateThresholds(), 3, id="all errored"),
            pytest.param(
                _results(errored=2), GateThresholds(on_error="warn"), 1, id="all errored, warn"
            ),
            pytest.param(_results(errored=1, skipped=1), GateThresholds(), 3, id="some of both"),
            pytest.param(
                _results(passed=2, required=False), GateThresholds(), 1, id="all advisory"
            ),
            pytest.param(
                _results(skipped=1) + _results(passed=1, required=False),
                GateThresholds(),
                1,
                id="advice passed",
            ),
            pytest.param(
                _results(skipped=1), GateThresholds(min_pass_rate=0.0), 1, id="no rate asked for"
            ),
        ],
    )
    def test_is_never_0_where_nothing_was_judged(
        self, results: list[CheckResult], bar: GateThresholds, exit_code: int
    ) -> None:
        decision = _decide(results, bar)
        assert (decision.exit_code, decision.passed) == (exit_code, False)
        said = {"no check was evaluated", "no required check was evaluated"}
        assert bool(said & {*decision.reasons}) == (exit_code == 1)

    def test_says_so_where_all_that_was_judged_is_advice(self) -> None:
        advice = _results(passed=1, required=False)
        assert _decide(_results(skipped=1) + advice).reasons[0] == "no required check was evaluated"

    def test_is_1_without_any_config(self) -> None:
        assert _decide_all([]).exit_code == 1

    @pytest.mark.parametrize("results", [_results(passed=1), _results(failed=1, errored=1), []])
    @pytest.mark.parametrize("fail_on", ["failed", "error", "never"])
    def test_is_2_where_the_input_is_broken(
        self, results: list[CheckResult], fail_on: FailOn
    ) -> None:
        decision = _decide(results, problems=[BROKEN], fail_on=fail_on)
        assert (decision.exit_code, decision.passed) == (2, False)
        assert decision.reasons[0] == "invalid input (1 error)"

    def test_does_not_mind_warnings_and_notices(self) -> None:
        problems = [
            Problem(message="x", severity="warning"),
            Problem(message="y", severity="note"),
        ]
        assert _decide(_results(passed=1), problems=problems).exit_code == 0

    @pytest.mark.parametrize("fail_on", ["failed", "error", "never"])
    def test_is_never_0_where_the_run_was_broken_off(self, fail_on: FailOn) -> None:
        decision = _decide(_results(passed=1), complete=False, fail_on=fail_on)
        assert (decision.exit_code, decision.passed) == (1, False)
        assert decision.reasons == ("the run was interrupted before all checks finished",)


class TestFailOn:
    @pytest.mark.parametrize(
        ("fail_on", "results", "exit_code"),
        [
            pytest.param("error", _results(passed=1, failed=1), 0, id="error spares failures"),
            pytest.param("error", _results(failed=1, errored=1), 3, id="error minds errors"),
            pytest.param(
                "error", _results(skipped=1), 1, id="error minds that no check was evaluated"
            ),
            pytest.param("never", _results(failed=1), 0, id="never spares failures"),
            pytest.param("never", _results(errored=1), 0, id="never spares errors"),
            pytest.param("never", [], 0, id="never spares all"),
        ],
    )
    def test_says_what_may_shut_the_gate(
        self, fail_on: FailOn, results: list[CheckResult], exit_code: int
    ) -> None:
        decision = _decide(results, fail_on=fail_on)
        assert (decision.exit_code, decision.passed) == (exit_code, exit_code == 0)

    def test_error_keeps_the_policy_for_errors(self) -> None:
        bar = GateThresholds(on_error="warn")
        assert _decide(_results(passed=1, errored=1), bar, fail_on="error").passed

    def test_what_is_spared_is_reported_after_what_is_not(self) -> None:
        assert _decide(_results(failed=1, errored=1), fail_on="error").reasons == (
            "1 check errored (response_quality)",
            "1 of 1 check failed (pass rate 0%, required 100%); reported only (fail-on: error)",
        )


class TestThePassRate:
    @pytest.mark.parametrize(
        ("passed", "failed", "least", "is_open"),
        [
            (9, 1, 0.9, True),
            (8, 2, 0.9, False),
            (7, 3, 0.7, True),
            (2, 1, 2 / 3, True),
            (2, 1, 0.6667, False),
            (29, 71, 0.29, True),
            (57, 43, 0.57, True),
            (0, 3, 0.0, True),
            (9_999, 1, 1.0, False),
        ],
    )
    def test_may_be_just_what_is_asked_for(
        self, passed: int, failed: int, least: float, is_open: bool
    ) -> None:
        results = _results(passed=passed, failed=failed)
        assert _decide(results, GateThresholds(min_pass_rate=least)).passed is is_open

    @given(st.integers(0, 300), st.integers(1, 300))
    def test_of_a_share_reaches_that_share(self, passed: int, failed: int) -> None:
        share = round(passed / (passed + failed), 12)
        results = _results(passed=passed, failed=failed)
        assert _decide(results, GateThresholds(min_pass_rate=share)).passed

    def test_leaves_out_what_was_not_judged(self) -> None:
        results = _results(passed=1, errored=5, skipped=5)
        assert _decide(results, GateThresholds(on_error="warn")).passed


class TestAPassRateThatIsToBeProven:
    BAR = GateThresholds(min_pass_rate=0.9, pass_rate_confidence=0.95)

    def test_takes_more_cases_than_ten_however_many_pass(self) -> None:
        decision = _decide(_cases(passed=10), self.BAR)
        assert (decision.passed, decision.exit_code) == (False, 1)
        assert decision.reasons[0] == (
            "pass rate 95% confidence bound 74% is below 90% "
            "(10 of 10 cases passed; 19 more passing cases needed)"
        )

    def test_is_proven_by_as_many_as_it_takes(self) -> None:
        assert not _decide(_cases(passed=28), self.BAR).passed
        decision = _decide(_cases(passed=29), self.BAR)
        assert decision.passed
        assert decision.reasons == (
            "29 checks passed",
            "pass rate 95% confidence bound 90.2% reaches 90% (29 of 29 cases passed)",
        )

    def test_takes_more_where_some_failed(self) -> None:
        decision = _decide(_cases(passed=29, failed=1), self.BAR)
        assert "16 more passing cases needed" in decision.reasons[0]
        assert _decide(_cases(passed=45, failed=1), self.BAR).passed

    def test_is_asked_beside_the_rate_itself(self) -> None:
        decision = _decide(_cases(passed=1, failed=1), self.BAR)
        assert decision.reasons[0].startswith("1 of 2 checks failed (pass rate 50%, required 90%)")
        assert decision.reasons[1].endswith("(1 of 2 cases passed; 44 more passing cases needed)")

    def test_counts_cases_and_not_what_several_evaluators_say_of_one(self) -> None:
        twice = [*_cases(passed=20), *_cases(passed=20, evaluator="tone")]
        assert "20 of 20 cases passed" in _decide(twice, self.BAR).reasons[0]

    def test_counts_recordings_that_belong_together_once_and_all_have_to_pass(self) -> None:
        results = [
            replace(each, case=replace(each.case, group=str(number % 20)))
            for number, each in enumerate(_cases(passed=59, failed=1))
        ]
        assert "19 of 20 cases passed" in _decide(results, self.BAR).reasons[0]

    def test_is_one_more_case_where_one_is_lacking(self) -> None:
        assert (
            _decide(_cases(passed=28), self.BAR).reasons[0].endswith("1 more passing case needed)")
        )

    def test_may_be_asked_of_one_evaluator(self) -> None:
        results = [*_cases(passed=10), *_cases(passed=10, evaluator="tone")]
        decision = _decide(results, evaluators={"tone": self.BAR})
        assert decision.reasons[0].startswith(
            "tone: pass rate 95% confidence bound 74% is below 90% "
        )

    def test_leaves_a_bar_of_all_as_it_is(self) -> None:
        bar = GateThresholds(min_pass_rate=1.0, pass_rate_confidence=0.95)
        assert _decide(_cases(passed=3), bar).passed
        assert not _decide(_cases(passed=99, failed=1), bar).passed

    def test_is_not_asked_where_nothing_was_judged(self) -> None:
        assert _decide(_results(skipped=1), self.BAR).reasons[0] == "no check was evaluated"

    def test_is_not_asked_of_a_shard(self) -> None:
        cases = CaseThresholds(threshold=0.5, min_pass_rate=0.9, pass_rate_confidence=0.95)
        policy = GatePolicy(overall=self.BAR, evaluators={"tone": self.BAR}, cases=cases)
        results = _cases(passed=3, score=0.9)
        shard, plain = Shard(index=1, total=2), GatePolicy(overall=self.BAR)
        for each in (policy, plain):
            decision = decide_shard(
                [(each, results)], shard=shard, problems=(), complete=True, fail_on="failed"
            )
            assert not decision.is_failure

    def test_may_be_asked_of_whole_cases(self) -> None:
        cases = CaseThresholds(threshold=0.5, min_pass_rate=0.9, pass_rate_confidence=0.95)
        policy = GatePolicy(overall=GateThresholds(min_pass_rate=0.0), cases=cases)
        results = [
            make_result("failed", 0.6 if number else 0.2, case=f"c{number}") for number in range(30)
        ]
        why = _decide_all([(policy, results)]).reasons
        assert why[0].startswith("pass rate 95% confidence bound 85% is below 90%")
        assert _decide_all([(policy, results[1:])]).passed


class TestTheScore:
    @pytest.mark.parametrize(
        ("scores", "least", "is_open"),
        [
            pytest.param([0.7, 0.7, 0.7], 0.7, True, id="equal"),
            pytest.param([0.1, 0.2, 0.3], 0.2, True, id="equal but for rounding"),
            pytest.param([0.9, 0.6], 0.75, True, id="mean"),
            pytest.param([0.9, 0.59], 0.75, False, id="below"),
            pytest.param([None, 0.8], 0.8, True, id="no score is not zero"),
            pytest.param([None], 0.0, False, id="no score at all"),
        ],
    )
    def test_is_the_mean_of_what_was_judged(
        self, scores: list[float | None], least: float, is_open: bool
    ) -> None:
        results = [make_result("passed", score) for score in scores]
        decision = _decide(results, GateThresholds(min_score=least))
        assert (decision.passed, decision.exit_code) == (is_open, 0 if is_open else 1)

    def test_of_a_skipped_check_is_left_out(self) -> None:
        results = [make_result("passed", 0.9), make_result("skipped", 0.1)]
        assert _decide(results, GateThresholds(min_score=0.9)).passed


TONE = {"tone": GateThresholds(min_pass_rate=0.5)}


class TestTheBarOfAnEvaluator:
    def test_holds_for_it_alone(self) -> None:
        results = [*_results(passed=1, failed=1, evaluator="tone"), *_results(passed=2)]
        assert _decide(results, evaluators=TONE).passed
        results += _results(failed=1)
        assert _decide(results, evaluators=TONE).reasons[0] == (
            "1 of 3 checks failed (pass rate 67%, required 100%)"
        )

    def test_is_not_helped_by_the_others(self) -> None:
        results = [*_results(passed=1, failed=2, evaluator="tone"), *_results(passed=97)]
        decision = _decide(results, GateThresholds(min_pass_rate=0.9), evaluators=TONE)
        assert decision.reasons == ("tone: 2 of 3 checks failed (pass rate 33%, required 50%)",)

    def test_decides_on_its_errors_and_skips(self) -> None:
        bar = GateThresholds(on_error="warn", on_skip="fail")
        results = [*_results(errored=1, evaluator="tone"), *_results(passed=1, skipped=1)]
        assert _decide(results, evaluators={"tone": bar}).passed
        results += _results(skipped=1, evaluator="tone")
        assert _decide(results, evaluators={"tone": bar}).exit_code == 1

    def test_without_a_demand_of_its_own_leaves_it_among_the_others(self) -> None:
        bar = GateThresholds(min_pass_rate=None, on_error="warn")
        results = [*_results(passed=5, evaluator="tone"), *_results(failed=5)]
        decision = _decide(results, GateThresholds(min_pass_rate=0.5), evaluators={"tone": bar})
        assert decision.passed

    def test_for_the_score_leaves_its_pass_rate_among_the_others(self) -> None:
        bar = GateThresholds(min_pass_rate=None, min_score=0.1)
        results = [
            *(make_result("passed", 0.5, evaluator="tone") for _ in range(5)),
            *_results(failed=5),
        ]
        assert not _decide(results, evaluators={"tone": bar}).passed
        assert _decide(results, GateThresholds(min_pass_rate=0.5), evaluators={"tone": bar}).passed

    def test_is_not_reached_by_judging_nothing(self) -> None:
        results = [*_results(skipped=2, evaluator="tone"), *_results(passed=1)]
        decision = _decide(results, evaluators=TONE)
        assert (decision.exit_code, decision.reasons[0]) == (1, "tone: no check was evaluated")

    def test_of_an_evaluator_without_checks_asks_for_nothing(self) -> None:
        assert _decide(
            _results(passed=1), evaluators={"gone": GateThresholds(min_score=1.0)}
        ).passed

    def test_makes_no_advisory_evaluator_count(self) -> None:
        results = [*_results(failed=1, evaluator="tone", required=False), *_results(passed=1)]
        assert _decide(results, evaluators=TONE).passed


class TestSeveralConfigs:
    def _two(self, first: Sequence[CheckResult], second: Sequence[CheckResult]) -> Decision:
        return _decide_all([(GatePolicy(), first), (GatePolicy(), second)])

    def test_are_open_together(self) -> None:
        results = _results(passed=1, config="a.yaml"), _results(passed=1, config="b.yaml")
        decision = self._two(*results)
        assert decision.passed
        assert decision.reasons == ("2 checks passed",)

    def test_are_shut_by_one_which_is_named(self) -> None:
        results = _results(passed=9, config="a.yaml"), _results(failed=1, config="b.yaml")
        decision = self._two(*results)
        assert decision.reasons == ("b.yaml: 1 of 1 check failed (pass rate 0%, required 100%)",)

    @pytest.mark.parametrize("second", [[], _results(skipped=1, config="b.yaml")])
    def test_are_shut_by_one_that_judged_nothing(self, second: list[CheckResult]) -> None:
        assert self._two(_results(passed=9, config="a.yaml"), second).exit_code == 1

    def test_are_not_shut_by_one_that_only_advises(self) -> None:
        advice = _results(failed=1, config="b.yaml", required=False)
        decision = self._two(_results(passed=1, config="a.yaml"), advice)
        assert decision.passed

    def test_put_failures_before_errors_whatever_their_order(self) -> None:
        results = _results(errored=1, config="a.yaml"), _results(failed=1, config="b.yaml")
        decision = self._two(*results)
        assert decision.exit_code == 1
        assert [why.split(":")[0] for why in decision.reasons] == ["b.yaml", "a.yaml"]


class TestGoldenCasesWithoutARecording:
    def test_are_told(self) -> None:
        decision = _decide(_results(passed=1), uncovered=3)
        assert decision.passed
        assert decision.reasons == (
            "1 check passed",
            "3 eval cases without a matching trace",
        )

    def test_shut_the_gate_where_skips_do(self) -> None:
        decision = _decide(_results(passed=1), GateThresholds(on_skip="fail"), uncovered=1)
        assert decision.exit_code == 1
        assert decision.reasons == ("1 eval case without a matching trace",)


class TestWhatIsSaid:
    @pytest.mark.parametrize(
        ("results", "bar", "why"),
        [
            pytest.param(
                _results(passed=12), GateThresholds(), ["12 checks passed"], id="all passed"
            ),
            pytest.param(_results(passed=1), GateThresholds(), ["1 check passed"], id="one passed"),
            pytest.param(
                _results(passed=2, skipped=1),
                GateThresholds(),
                ["2 checks passed", "1 check skipped (response_quality)"],
                id="some were skipped",
            ),
            pytest.param(
                _results(passed=10, failed=2),
                GateThresholds(),
                ["2 of 12 checks failed (pass rate 83%, required 100%)"],
                id="some failed",
            ),
            pytest.param(
                _results(passed=9_999, failed=1),
                GateThresholds(),
                ["1 of 10,000 checks failed (pass rate 99.99%, required 100%)"],
                id="almost all passed",
            ),
            pytest.param(
                _results(passed=11, failed=1),
                GateThresholds(min_pass_rate=0.9),
                [
                    "11 of 12 checks passed",
                    "1 of 12 checks failed (pass rate 92%, required 90%)",
                ],
                id="enough passed",
            ),
            pytest.param(
                _results(passed=2, failed=1, errored=1),
                GateThresholds(),
                [
                    "1 of 3 checks failed (pass rate 67%, required 100%)",
                    "1 check errored (response_quality)",
                ],
                id="the weightiest first",
            ),
            pytest.param(
                _results(passed=1, errored=1),
                GateThresholds(on_error="warn"),
                [
                    "1 check passed",
                    "1 check errored (response_quality); reported only (on_error: warn)",
                ],
                id="an error that only warns",
            ),
            pytest.param(
                _results(passed=1) + _results(failed=1, evaluator="tone", required=False),
                GateThresholds(),
                ["1 check passed", "1 advisory check did not pass (tone)"],
                id="advice",
            ),
            pytest.param(
                [make_result("passed", 0.7999)],
                GateThresholds(min_score=0.8),
                ["mean score 0.7999 is below the threshold 0.8"],
                id="a mean close to the bar",
            ),
            pytest.param(
                [make_result("passed")],
                GateThresholds(min_score=0.8),
                ["no check has a score; `min_score` needs one"],
                id="no mean",
            ),
        ],
    )
    def test_is_plain(
        self, results: list[CheckResult], bar: GateThresholds, why: list[str]
    ) -> None:
        assert list(_decide(results, bar).reasons) == why

    def test_names_a_few_evaluators_only(self) -> None:
        results = [make_result("errored", evaluator=f"e{number}") for number in range(9)]
        assert _decide(results).reasons == ("9 checks errored (e0, e1, e2, e3, e4, … and 4 more)",)

    def test_counts_broken_inputs(self) -> None:
        assert _decide([], problems=[BROKEN] * 3).reasons[0] == "invalid input (3 errors)"


@given(
    results=st.lists(
        st.builds(
            make_result,
            st.sampled_from(STATUSES),
            st.none() | st.floats(0, 1),
            evaluator=st.sampled_from(["a", "b"]),
            required=st.booleans(),
            config=st.sampled_from(["a.yaml", "b.yaml"]),
        ),
        max_size=8,
    ),
    bar=values(
        GateThresholds,
        min_pass_rate=st.floats(0, 1),
        min_score=st.none() | st.floats(0, 1),
        on_error=st.sampled_from(["fail", "warn"]),
        on_skip=st.sampled_from(["fail", "allow"]),
    ),
    fail_on=st.sampled_from(["never", "error", "failed"]),
    complete=st.booleans(),
)
def test_a_decision_is_open_exactly_with_exit_code_0_and_always_has_a_reason(
    results: list[CheckResult], bar: GateThresholds, fail_on: FailOn, complete: bool
) -> None:
    judged = [
        (GatePolicy(overall=bar, evaluators={"b": bar}), [r for r in results if r.config == config])
        for config in ("a.yaml", "b.yaml")
    ]
    decision = _decide_all(judged, complete=complete, fail_on=fail_on)
    assert decision.passed == (decision.exit_code == 0)
    assert decision.exit_code in {0, 1, 3}
    assert decision.reasons
    assert all(decision.reasons)
    required = [result.status for result in results if result.evaluator.required]
    if decision.passed and fail_on == "failed":
        assert set(required) & {"passed", "failed"}
        assert "errored" not in required or bar.on_error == "warn"


def test_totals_count_everything_and_average_the_scores_there_are() -> None:
    results = [
        make_result("passed", 1.0),
        make_result("failed", 0.5, required=False),
        make_result("passed"),
        make_result("errored"),
        make_result("skipped"),
    ]
    assert compute_totals(results) == Totals(
        checks=5, passed=2, failed=1, errored=1, skipped=1, score=0.75
    )
    assert compute_totals([]) == Totals(
        checks=0, passed=0, failed=0, errored=0, skipped=0, score=None
    )


def test_a_score_beside_a_refusal_to_judge_says_nothing() -> None:
    assert compute_totals([make_result("skipped", 0.0), make_result("passed", 0.5)]).score == 0.5


def test_a_score_that_is_no_number_is_none() -> None:
    assert (
        compute_totals([make_result("passed", float("nan")), make_result("passed", 0.5)]).score
        == 0.5
    )


def _decide_shard(
    results: Sequence[CheckResult], bar: GateThresholds | None = None, **others: Any
) -> Decision:
    policy = GatePolicy(overall=bar or GateThresholds(), evaluators=others.pop("evaluators", {}))
    others = {"problems": (), "complete": True, "fail_on": "failed", **others}
    return decide_shard([(policy, results)], shard=Shard(index=2, total=3), **others)


class TestAShard:
    @pytest.mark.parametrize(
        ("results", "bar", "exit_code"),
        [
            pytest.param([], GateThresholds(), 0, id="no checks"),
            pytest.param(_results(passed=2), GateThresholds(), 0, id="all passed"),
            pytest.param(_results(skipped=2), GateThresholds(), 0, id="nothing judged"),
            pytest.param(
                _results(passed=2, required=False), GateThresholds(), 0, id="advice alone"
            ),
            pytest.param(_results(passed=1, failed=1), GateThresholds(), 1, id="one failed"),
            pytest.param(
                _results(passed=1, failed=1), GateThresholds(min_pass_rate=0.5), 0, id="enough"
            ),
            pytest.param(_results(passed=1, errored=1), GateThresholds(), 3, id="one errored"),
            pytest.param(
                _results(errored=1), GateThresholds(on_error="warn"), 0, id="errors only warn"
            ),
            pytest.param(
                _results(skipped=1), GateThresholds(on_skip="fail"), 1, id="no skips are allowed"
            ),
        ],
    )
    def test_is_shut_by_what_was_judged_in_it_and_never_open(
        self, results: list[CheckResult], bar: GateThresholds, exit_code: int
    ) -> None:
        decision = _decide_shard(results, bar)
        assert (decision.exit_code, decision.passed) == (exit_code, False)
        assert decision.is_failure is (exit_code != 0)
        assert (
            decision.reasons[-1]
            == "results of shard 2 of 3 only; `agentci merge` decides for all shards"
        )

    @pytest.mark.parametrize(
        ("results", "why"),
        [
            ([], "no checks in this shard"),
            (_results(skipped=1), "no required check was evaluated"),
            (_results(passed=1, required=False), "no required check was evaluated"),
            (_results(passed=2), "2 checks passed"),
        ],
    )
    def test_says_why_it_is_not_shut(self, results: list[CheckResult], why: str) -> None:
        assert _decide_shard(results).reasons[0] == why

    def test_does_not_mind_an_evaluator_that_judged_in_another(self) -> None:
        results = [*_results(passed=1), *_results(skipped=1, evaluator="tone")]
        own = {"tone": GateThresholds(min_pass_rate=0.5)}
        assert _decide(results, evaluators=own).exit_code == 1
        assert _decide_shard(results, evaluators=own).exit_code == 0

    @pytest.mark.parametrize(
        ("others", "exit_code"), [({"problems": [BROKEN]}, 2), ({"complete": False}, 1)]
    )
    def test_minds_broken_input_and_an_end_before_its_time(
        self, others: dict[str, Any], exit_code: int
    ) -> None:
        assert _decide_shard([], fail_on="never", **others).exit_code == exit_code


def test_every_gate_has_the_results_of_its_config_also_where_there_are_none() -> None:
    gates = [Gate(config=config, policy=GatePolicy(), evaluators=()) for config in ("a", "b", "c")]
    results = [make_result("passed", config=config) for config in ("c", "a", "c")]
    assert [len(own) for _, own in group_results_by_policy(gates, results)] == [1, 0, 2]


class TestABarForCases:
    def _decide(
        self, results: Sequence[CheckResult], least: float = 1.0, **others: Any
    ) -> Decision:
        bar = CaseThresholds(threshold=0.8, min_pass_rate=least)
        policy = GatePolicy(overall=GateThresholds(min_pass_rate=0.0), cases=bar)
        return _decide_all([(policy, results)], **others)

    def _case(self, case: str, *scores: tuple[float, float]) -> list[CheckResult]:
        """A case with a check for each weight and score."""
        results = [
            make_result("passed" if score >= 0.8 else "failed", score, case=case)
            for _, score in scores
        ]
        return [
            replace(each, evaluator=replace(each.evaluator, weight=weight))
            for each, (weight, _) in zip(results, scores, strict=True)
        ]

    def test_is_about_the_weighted_mean_of_the_checks(self) -> None:
        assert self._decide(self._case("a", (9, 1.0), (1, 0.5))).passed
        assert not self._decide(self._case("a", (1, 1.0), (1, 0.5))).passed

    def test_says_which_cases_fell_short_the_worst_first(self) -> None:
        results = [
            *self._case("a", (1, 0.7)), *self._case("b", (1, 0.2)), *self._case("c", (1, 0.9)),
        ]  # fmt: skip
        assert self._decide(results).reasons[0] == (
            "2 of 3 cases scored below 0.8 (pass rate 33%, required 100%): b 0.2, a 0.7"
        )

    def test_may_be_reached_by_a_share_of_them(self) -> None:
        results = [*self._case("a", (1, 0.7)), *self._case("b", (1, 0.9))]
        decision = self._decide(results, least=0.5)
        assert decision.passed
        assert (
            "1 of 2 cases scored below 0.8 (pass rate 50%, required 50%): a 0.7" in decision.reasons
        )

    def test_is_not_reached_without_any_weight(self) -> None:
        assert not self._decide(self._case("a", (0, 1.0))).passed

    def test_does_not_make_up_for_what_was_not_judged(self) -> None:
        errored = make_result("errored", case="b")
        assert self._decide([*self._case("a", (1, 0.9)), errored]).exit_code == 3
