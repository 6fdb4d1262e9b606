"""Gate decisions: exit codes, thresholds and reasons."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.gate.decision import compute_totals, decide, decide_shard
from agentci.gate.rules import (
    OTHER_EVALUATORS,
    Coverage,
    find_coverage,
    group_results_by_policy,
)
from agentci.model.gate import CaseThresholds, Gate, GatePolicy, GateThresholds
from agentci.model.result import CheckResult, Decision, Shard, Status, Totals
from agentci.model.values import FailOn, Place, Problem, replace
from agentci.reports.comment import CommentReport
from agentci.reports.job_summary import SummaryReport
from tests.helpers.building import values
from tests.helpers.reports import make_report, make_result, text_of

INVALID = Problem(message="is not JSON", place=Place(file="traces/a.json", line=4))
STATUSES: list[Status] = ["passed", "failed", "errored", "skipped"]


def _results(
    *, passed: int = 0, failed: int = 0, errored: int = 0, skipped: int = 0, **others: Any
) -> list[CheckResult]:
    counts = zip(STATUSES, (passed, failed, errored, skipped), strict=True)
    return [make_result(status, **others) for status, count in counts for _ in range(count)]


def _cases(*, passed: int = 0, failed: int = 0, score: float | None = None, **others: Any) -> Any:
    """One check per case."""
    return [
        make_result("passed" if number < passed else "failed", score, case=f"c{number}", **others)
        for number in range(passed + failed)
    ]


def _decide(
    results: Sequence[CheckResult], thresholds: GateThresholds | None = None, **others: Any
) -> Decision:
    policy = GatePolicy(
        overall=thresholds or GateThresholds(), evaluators=others.pop("evaluators", {})
    )
    return _decide_all([(policy, results)], **others)


def _decide_all(
    evaluated: Sequence[tuple[GatePolicy, Sequence[CheckResult]]], **others: Any
) -> Decision:
    others = {"problems": (), "complete": True, "fail_on": "failed", **others}
    return decide(evaluated, **others)


class TestExitCode:
    @pytest.mark.parametrize(
        ("results", "thresholds", "exit_code"),
        [
            pytest.param(_results(passed=12), GateThresholds(), 0, id="all passed"),
            pytest.param(_results(passed=1, failed=1), GateThresholds(), 1, id="one failed"),
            pytest.param(_results(passed=1, errored=1), GateThresholds(), 3, id="one errored"),
            pytest.param(
                _results(failed=1, errored=1), GateThresholds(), 1, id="one failed, one errored"
            ),
            pytest.param(
                _results(passed=1, errored=1),
                GateThresholds(on_error="warn"),
                0,
                id="on_error: warn",
            ),
            pytest.param(
                _results(failed=1, errored=1),
                GateThresholds(on_error="warn"),
                1,
                id="failure with on_error: warn",
            ),
            pytest.param(_results(passed=1, skipped=1), GateThresholds(), 0, id="skip allowed"),
            pytest.param(
                _results(passed=1, skipped=1),
                GateThresholds(on_skip="fail"),
                1,
                id="on_skip: fail",
            ),
            pytest.param(
                _results(passed=1, skipped=1, errored=1),
                GateThresholds(on_skip="fail"),
                1,
                id="on_skip: fail takes precedence over an error",
            ),
        ],
    )
    def test_exit_code_follows_thresholds(
        self, results: list[CheckResult], thresholds: GateThresholds, exit_code: int
    ) -> None:
        decision = _decide(results, thresholds)
        assert (decision.exit_code, decision.passed) == (exit_code, exit_code == 0)

    @pytest.mark.parametrize(
        ("results", "thresholds", "exit_code"),
        [
            pytest.param([], GateThresholds(), 1, id="no checks"),
            pytest.param(_results(skipped=2), GateThresholds(), 1, id="all skipped"),
            pytest.param(_results(errored=2), GateThresholds(), 3, id="all errored"),
            pytest.param(
                _results(errored=2),
                GateThresholds(on_error="warn"),
                1,
                id="all errored, on_error: warn",
            ),
            pytest.param(
                _results(errored=1, skipped=1), GateThresholds(), 3, id="errored and skipped"
            ),
            pytest.param(
                _results(passed=2, required=False), GateThresholds(), 1, id="all advisory"
            ),
            pytest.param(
                _results(skipped=1) + _results(passed=1, required=False),
                GateThresholds(),
                1,
                id="only advisory check passed",
            ),
            pytest.param(
                _results(skipped=1), GateThresholds(min_pass_rate=0.0), 1, id="min_pass_rate 0"
            ),
        ],
    )
    def test_exit_code_is_nonzero_if_nothing_was_evaluated(
        self, results: list[CheckResult], thresholds: GateThresholds, exit_code: int
    ) -> None:
        decision = _decide(results, thresholds)
        assert (decision.exit_code, decision.passed) == (exit_code, False)
        reasons = {"no check was evaluated", "no required check was evaluated"}
        assert bool(reasons & {*decision.reasons}) == (exit_code == 1)

    def test_run_with_only_advisory_checks_is_reported(self) -> None:
        advisory = _results(passed=1, required=False)
        assert (
            _decide(_results(skipped=1) + advisory).reasons[0] == "no required check was evaluated"
        )

    def test_exit_code_is_1_without_configs(self) -> None:
        assert _decide_all([]).exit_code == 1

    @pytest.mark.parametrize("results", [_results(passed=1), _results(failed=1, errored=1), []])
    @pytest.mark.parametrize("fail_on", ["failed", "error", "never"])
    def test_invalid_input_exits_with_2(self, results: list[CheckResult], fail_on: FailOn) -> None:
        decision = _decide(results, problems=[INVALID], fail_on=fail_on)
        assert (decision.exit_code, decision.passed) == (2, False)
        assert decision.reasons[0] == "invalid input (1 error)"

    def test_passed_check_with_a_turn_below_the_threshold_is_a_note(self) -> None:
        def conversation(*scores: float | None, **others: Any) -> CheckResult:
            found = make_result("passed", 0.8, threshold=0.7, **others)
            assert found.judgement is not None
            return replace(found, judgement=replace(found.judgement, turn_scores=scores))

        several = [
            conversation(1.0, 0.6, None, 0.2, case="a", type="builtin"),
            conversation(1.0, 0.699, case="b", type="builtin"),
            conversation(1.0, 0.7, case="c", type="builtin"),
            conversation(1.0, 0.5, evaluator="own"),
            conversation(1.0, 0.5, evaluator="advisory", required=False),
        ]
        decision = _decide(several)
        assert decision.exit_code == 0
        assert [each.split(": ", 1) for each in decision.notes] == [
            [
                "response_quality passed 2 cases with a turn below the threshold 0.7",
                (
                    "a (turn 4 of 4 scored 0.2, 1 more below), b (turn 2 of 2 scored 0.699); "
                    "`turn_score: min` fails such cases"
                ),
            ],
            [
                "own passed 1 case with a turn below the threshold 0.7",
                "books_a_flight (turn 2 of 2 scored 0.5)",
            ],
        ]
        assert decision.unlisted_notes == decision.notes

    def test_passed_check_of_an_answer_with_another_number_is_a_note(self) -> None:
        facts = 'expected "45 EUR", got "54 EUR"'
        several = [
            make_result("passed", 0.96, case="a", details={"changed_facts": [facts]}),
            make_result("failed", 0.5, case="b", details={"changed_facts": [facts]}),
            make_result("passed", 1.0, case="c", details={"changed_facts": "x", "results": {}}),
            make_result("passed", 0.96, case="e", details={"changed_facts": [facts]}),
            make_result("failed", 0.5, case="e", evaluator="similar"),
            make_result(
                "passed",
                0.96,
                case="d",
                evaluator="similar",
                details={"results": [{"score": 1.0}, {"changed_facts": facts}]},
            ),
            make_result(
                "passed", 0.96, required=False, evaluator="y", details={"changed_facts": [facts]}
            ),
        ]
        notes = [each for each in _decide(several).notes if "other facts" in each]
        hint = "; to fail such answers, add `checks: [contains: TEXT]` to the eval case"
        text = "passed 1 case whose answer has other facts than expected"
        assert notes == [
            f"response_quality {text}: a ({facts}){hint}",
            f"similar {text}: d (turn 2: {facts}){hint}",
        ]

    def test_cases_with_another_number_are_named_first(self) -> None:
        lists = [
            ['got "not free", not in the expected answer'],
            ['turn 1: expected "Oslo", got "Rome"', 'turn 2: expected "5", got "6"'],
        ]
        results = [
            make_result("passed", 0.96, case=case, details={"changed_facts": facts})
            for case, facts in zip("ab", lists, strict=True)
        ]
        [note] = [each for each in _decide(results).notes if "other facts" in each]
        assert f": b ({lists[1][1]}; {lists[1][0]}), a ({lists[0][0]});" in note

    def test_other_words_of_a_passed_answer_are_only_in_lists_of_their_own(self) -> None:
        words = 'expected "warm", got "hot"'
        result = make_result("passed", 0.96, case="a", details={"changed_words": [words]})
        decision = _decide([result])
        what = "whose answer has other words than expected"
        text = f"response_quality passed 1 case {what}: a ({words})"
        assert text in decision.notes
        assert text not in decision.unlisted_notes
        for format_ in (CommentReport(), SummaryReport()):
            page = text_of(format_, make_report([result]))
            assert "<summary>Other words than expected: 1 passed answer</summary>" in page

    def test_passed_check_of_a_result_that_looks_like_an_error_is_a_note(self) -> None:
        errors = ["`find`: not found", "`pay`: Error"]
        several = [
            make_result("passed", 1.0, case="a", details={"possible_errors": errors}),
            make_result("failed", 0.5, case="b", details={"possible_errors": errors}),
            make_result("passed", 1.0, case="c", details={"possible_errors": "x"}),
        ]
        [note] = [each for each in _decide(several).notes if "looks like" in each]
        assert note.startswith("response_quality passed 1 case in which a tool returned")
        assert note.endswith(": a (`find`: not found; \N{HORIZONTAL ELLIPSIS} and 1 more)")

    def test_warnings_and_notes_do_not_change_exit_code(self) -> None:
        problems = [
            Problem(message="x", severity="warning"),
            Problem(message="y", severity="note"),
        ]
        assert _decide(_results(passed=1), problems=problems).exit_code == 0

    @pytest.mark.parametrize("fail_on", ["failed", "error", "never"])
    def test_interrupted_run_exits_with_1(self, fail_on: FailOn) -> None:
        decision = _decide(_results(passed=1), complete=False, fail_on=fail_on)
        assert (decision.exit_code, decision.passed) == (1, False)
        assert decision.reasons == ("the run was interrupted before all checks finished",)


class TestFailOn:
    @pytest.mark.parametrize(
        ("fail_on", "results", "exit_code"),
        [
            pytest.param("error", _results(passed=1, failed=1), 0, id="error tolerates failures"),
            pytest.param("error", _results(failed=1, errored=1), 3, id="error fails on errors"),
            pytest.param(
                "error", _results(skipped=1), 1, id="error fails without an evaluated check"
            ),
            pytest.param("never", _results(failed=1), 0, id="never tolerates failures"),
            pytest.param("never", _results(errored=1), 0, id="never tolerates errors"),
            pytest.param("never", [], 0, id="never tolerates an empty run"),
        ],
    )
    def test_fail_on_selects_what_fails_gate(
        self, fail_on: FailOn, results: list[CheckResult], exit_code: int
    ) -> None:
        decision = _decide(results, fail_on=fail_on)
        assert (decision.exit_code, decision.passed) == (exit_code, exit_code == 0)

    def test_fail_on_error_respects_on_error_warn(self) -> None:
        thresholds = GateThresholds(on_error="warn")
        assert _decide(_results(passed=1, errored=1), thresholds, fail_on="error").passed

    def test_tolerated_failures_are_listed_after_failing_reasons(self) -> None:
        assert _decide(_results(failed=1, errored=1), fail_on="error").reasons == (
            "1 check errored (response_quality)",
            (
                "1 of 1 evaluated check failed (pass rate 0%, required 100%); reported only "
                "(fail-on: error)"
            ),
        )


class TestPassRateThreshold:
    @pytest.mark.parametrize(
        ("passed", "failed", "minimum", "passes"),
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
    def test_pass_rate_equal_to_threshold_passes(
        self, passed: int, failed: int, minimum: float, passes: bool
    ) -> None:
        results = _results(passed=passed, failed=failed)
        assert _decide(results, GateThresholds(min_pass_rate=minimum)).passed is passes

    @given(st.integers(0, 300), st.integers(1, 300))
    def test_rounded_pass_rate_reaches_its_own_threshold(self, passed: int, failed: int) -> None:
        share = round(passed / (passed + failed), 12)
        results = _results(passed=passed, failed=failed)
        assert _decide(results, GateThresholds(min_pass_rate=share)).passed

    def test_unevaluated_checks_do_not_count_in_pass_rate(self) -> None:
        results = _results(passed=1, errored=5, skipped=5)
        assert _decide(results, GateThresholds(on_error="warn")).passed


class TestPassRateConfidence:
    THRESHOLDS = GateThresholds(min_pass_rate=0.9, pass_rate_confidence=0.95)

    def test_ten_passing_cases_do_not_reach_confidence_bound(self) -> None:
        decision = _decide(_cases(passed=10), self.THRESHOLDS)
        assert (decision.passed, decision.exit_code) == (False, 1)
        assert decision.reasons[0] == (
            "pass rate 95% confidence bound 74% is below 90% "
            "(10 of 10 cases passed; 19 more passing cases needed)"
        )

    def test_enough_passing_cases_reach_confidence_bound(self) -> None:
        assert not _decide(_cases(passed=28), self.THRESHOLDS).passed
        decision = _decide(_cases(passed=29), self.THRESHOLDS)
        assert decision.passed
        bound = "pass rate 95% confidence bound 90.2% reaches 90% (29 of 29 cases passed)"
        assert (decision.reasons, decision.notes) == (("29 checks passed",), (bound,))

    def test_failed_case_raises_number_of_cases_needed(self) -> None:
        decision = _decide(_cases(passed=29, failed=1), self.THRESHOLDS)
        assert "16 more passing cases needed" in decision.reasons[0]
        assert _decide(_cases(passed=45, failed=1), self.THRESHOLDS).passed

    def test_confidence_bound_is_checked_besides_pass_rate(self) -> None:
        decision = _decide(_cases(passed=1, failed=1), self.THRESHOLDS)
        assert decision.reasons[0].startswith("1 of 2 checks failed (pass rate 50%, required 90%)")
        assert decision.reasons[1].endswith("(1 of 2 cases passed; 44 more passing cases needed)")

    def test_confidence_bound_counts_cases_not_checks(self) -> None:
        twice = [*_cases(passed=20), *_cases(passed=20, evaluator="tone")]
        assert "20 of 20 cases passed" in _decide(twice, self.THRESHOLDS).reasons[0]

    def test_group_counts_once_and_fails_with_one_case(self) -> None:
        results = [
            replace(each, case=replace(each.case, group=str(number % 20)))
            for number, each in enumerate(_cases(passed=59, failed=1))
        ]
        assert "19 of 20 cases passed" in _decide(results, self.THRESHOLDS).reasons[0]

    def test_single_missing_case_is_reported_in_singular(self) -> None:
        assert (
            _decide(_cases(passed=28), self.THRESHOLDS)
            .reasons[0]
            .endswith("1 more passing case needed)")
        )

    def test_confidence_bound_applies_to_one_evaluator(self) -> None:
        results = [*_cases(passed=10), *_cases(passed=10, evaluator="tone")]
        decision = _decide(results, evaluators={"tone": self.THRESHOLDS})
        assert decision.reasons[0].startswith(
            "tone: pass rate 95% confidence bound 74% is below 90% "
        )

    def test_confidence_is_ignored_for_threshold_of_100_percent(self) -> None:
        thresholds = GateThresholds(min_pass_rate=1.0, pass_rate_confidence=0.95)
        assert _decide(_cases(passed=3), thresholds).passed
        assert not _decide(_cases(passed=99, failed=1), thresholds).passed

    def test_confidence_bound_is_skipped_if_nothing_was_evaluated(self) -> None:
        assert _decide(_results(skipped=1), self.THRESHOLDS).reasons[0] == "no check was evaluated"

    def test_confidence_bound_is_not_checked_in_shard(self) -> None:
        cases = CaseThresholds(threshold=0.5, min_pass_rate=0.9, pass_rate_confidence=0.95)
        policy = GatePolicy(
            overall=self.THRESHOLDS, evaluators={"tone": self.THRESHOLDS}, cases=cases
        )
        results = _cases(passed=3, score=0.9)
        shard, plain = Shard(index=1, total=2), GatePolicy(overall=self.THRESHOLDS)
        for each in (policy, plain):
            decision = decide_shard(
                [(each, results)], shard=shard, problems=(), complete=True, fail_on="failed"
            )
            assert not decision.is_failure

    def test_confidence_bound_applies_to_case_scores(self) -> None:
        cases = CaseThresholds(threshold=0.5, min_pass_rate=0.9, pass_rate_confidence=0.95)
        policy = GatePolicy(overall=GateThresholds(min_pass_rate=0.0), cases=cases)
        results = [
            make_result("failed", 0.6 if number else 0.2, case=f"c{number}") for number in range(30)
        ]
        why = _decide_all([(policy, results)]).reasons
        assert why[0].startswith("pass rate 95% confidence bound 85% is below 90%")
        assert _decide_all([(policy, results[1:])]).passed


class TestMeanScoreThreshold:
    @pytest.mark.parametrize(
        ("scores", "minimum", "passes"),
        [
            pytest.param([0.7, 0.7, 0.7], 0.7, True, id="equal"),
            pytest.param([0.1, 0.2, 0.3], 0.2, True, id="equal up to rounding"),
            pytest.param([0.9, 0.6], 0.75, True, id="mean"),
            pytest.param([0.9, 0.59], 0.75, False, id="below"),
            pytest.param([None, 0.8], 0.8, True, id="missing score is not zero"),
            pytest.param([None], 0.0, False, id="no score at all"),
        ],
    )
    def test_mean_score_is_compared_with_threshold(
        self, scores: list[float | None], minimum: float, passes: bool
    ) -> None:
        results = [make_result("passed", score) for score in scores]
        decision = _decide(results, GateThresholds(min_score=minimum))
        assert (decision.passed, decision.exit_code) == (passes, 0 if passes else 1)

    def test_skipped_check_does_not_count_in_mean_score(self) -> None:
        results = [make_result("passed", 0.9), make_result("skipped", 0.1)]
        assert _decide(results, GateThresholds(min_score=0.9)).passed


TONE = {"tone": GateThresholds(min_pass_rate=0.5)}


class TestEvaluatorThresholds:
    def test_evaluator_threshold_applies_only_to_its_checks(self) -> None:
        results = [*_results(passed=1, failed=1, evaluator="tone"), *_results(passed=2)]
        assert _decide(results, evaluators=TONE).passed
        results += _results(failed=1)
        assert _decide(results, evaluators=TONE).reasons == (
            "2 of 5 checks failed",
            f"overall pass rate 67%, required 100%: 1 of 3 checks failed ({OTHER_EVALUATORS})",
        )

    def test_all_failed_required_checks_are_counted_before_thresholds_of_parts(self) -> None:
        results = [
            *_results(passed=1, failed=2, evaluator="tone"),
            *_results(passed=3, failed=1),
            *_results(failed=5, evaluator="style", required=False),
        ]
        reasons = _decide(results, evaluators=TONE).reasons
        assert [reasons[0], reasons[2]] == [
            "3 of 7 required checks failed",
            "tone: 2 of 3 checks failed (pass rate 33%, required 50%)",
        ]

    def test_failed_checks_are_counted_before_a_mean_score(self) -> None:
        thresholds = GateThresholds(min_pass_rate=0.5, min_score=0.9)
        results = [make_result("passed", 0.9), make_result("failed", 0.1)]
        reasons = _decide(results, thresholds).reasons
        assert reasons[0] == "1 of 2 checks failed"
        assert reasons[1].endswith("is below the threshold 0.9")

    def test_other_evaluators_do_not_raise_its_pass_rate(self) -> None:
        results = [*_results(passed=1, failed=2, evaluator="tone"), *_results(passed=97)]
        decision = _decide(results, GateThresholds(min_pass_rate=0.9), evaluators=TONE)
        assert decision.reasons == ("tone: 2 of 3 checks failed (pass rate 33%, required 50%)",)

    def test_evaluator_sets_its_own_on_error_and_on_skip(self) -> None:
        thresholds = GateThresholds(on_error="warn", on_skip="fail")
        results = [*_results(errored=1, evaluator="tone"), *_results(passed=1, skipped=1)]
        assert _decide(results, evaluators={"tone": thresholds}).passed
        results += _results(skipped=1, evaluator="tone")
        assert _decide(results, evaluators={"tone": thresholds}).exit_code == 1

    def test_evaluator_without_pass_rate_threshold_counts_in_overall(self) -> None:
        thresholds = GateThresholds(min_pass_rate=None, on_error="warn")
        results = [*_results(passed=5, evaluator="tone"), *_results(failed=5)]
        decision = _decide(
            results, GateThresholds(min_pass_rate=0.5), evaluators={"tone": thresholds}
        )
        assert decision.passed

    def test_score_threshold_keeps_evaluator_in_overall_pass_rate(self) -> None:
        thresholds = GateThresholds(min_pass_rate=None, min_score=0.1)
        results = [
            *(make_result("passed", 0.5, evaluator="tone") for _ in range(5)),
            *_results(failed=5),
        ]
        assert not _decide(results, evaluators={"tone": thresholds}).passed
        assert _decide(
            results, GateThresholds(min_pass_rate=0.5), evaluators={"tone": thresholds}
        ).passed

    def test_evaluator_with_only_skipped_checks_fails(self) -> None:
        results = [*_results(skipped=2, evaluator="tone"), *_results(passed=1)]
        decision = _decide(results, evaluators=TONE)
        assert (decision.exit_code, decision.reasons[0]) == (1, "tone evaluated no case")

    def test_threshold_of_evaluator_without_checks_is_ignored(self) -> None:
        assert _decide(
            _results(passed=1), evaluators={"gone": GateThresholds(min_score=1.0)}
        ).passed

    def test_evaluator_threshold_does_not_make_advisory_evaluator_required(self) -> None:
        results = [*_results(failed=1, evaluator="tone", required=False), *_results(passed=1)]
        assert _decide(results, evaluators=TONE).passed


class TestSeveralConfigs:
    def _two(self, first: Sequence[CheckResult], second: Sequence[CheckResult]) -> Decision:
        return _decide_all([(GatePolicy(), first), (GatePolicy(), second)])

    def test_gate_passes_if_all_configs_pass(self) -> None:
        results = _results(passed=1, config="a.yaml"), _results(passed=1, config="b.yaml")
        decision = self._two(*results)
        assert decision.passed
        assert decision.reasons == ("2 checks passed",)

    def test_failing_config_is_named(self) -> None:
        results = _results(passed=9, config="a.yaml"), _results(failed=1, config="b.yaml")
        decision = self._two(*results)
        assert decision.reasons == ("b.yaml: 1 of 1 check failed (pass rate 0%, required 100%)",)

    @pytest.mark.parametrize("second", [[], _results(skipped=1, config="b.yaml")])
    def test_config_with_nothing_evaluated_fails_gate(self, second: list[CheckResult]) -> None:
        assert self._two(_results(passed=9, config="a.yaml"), second).exit_code == 1

    def test_config_with_only_advisory_failures_does_not_fail(self) -> None:
        advisory = _results(failed=1, config="b.yaml", required=False)
        decision = self._two(_results(passed=1, config="a.yaml"), advisory)
        assert decision.passed

    def test_failures_are_listed_before_errors(self) -> None:
        results = _results(errored=1, config="a.yaml"), _results(failed=1, config="b.yaml")
        decision = self._two(*results)
        assert decision.exit_code == 1
        assert [why.split(":")[0] for why in decision.reasons] == ["b.yaml", "a.yaml"]


class TestUnmatchedEvalCases:
    def test_eval_cases_without_a_run_fail_unless_allowed(self) -> None:
        decision = _decide(_results(passed=1), coverage=Coverage(missing=("a", "b")))
        assert (decision.passed, decision.exit_code) == (False, 1)
        assert decision.reasons == ("2 eval cases without a recorded run: a, b",)
        decision = _decide(_results(passed=1), coverage=Coverage(allowed=("a",)))
        assert decision.passed
        assert decision.notes == ("1 eval case without a recorded run: a",)

    def test_runs_without_an_eval_case_fail_with_on_skip_fail(self) -> None:
        coverage = Coverage(allowed=("a",), unmatched=2)
        decision = _decide(_results(passed=1), GateThresholds(on_skip="fail"), coverage=coverage)
        assert decision.exit_code == 1
        assert decision.reasons == ("2 recorded runs without an eval case",)

    def test_eval_case_that_configs_share_needs_a_run_in_one_of_them(self) -> None:
        def gate(config: str, *uncovered: str, digest: str = "1") -> Gate:
            eval_cases = {"a": digest, "b": digest}
            return Gate(
                config=config,
                policy=GatePolicy(),
                evaluators=(),
                uncovered=uncovered,
                missing=uncovered,
                eval_cases=eval_cases,
            )

        assert find_coverage([gate("one", "a"), gate("two", "b")]) == Coverage()
        assert find_coverage([gate("one", "a"), gate("two", "a", "b")]).missing == ("a",)
        other = gate("two", digest="2")
        assert find_coverage([gate("one", "a", "b"), other]).missing == ("a", "b")


class TestReasons:
    @pytest.mark.parametrize(
        ("results", "thresholds", "why"),
        [
            pytest.param(
                _results(passed=12), GateThresholds(), ["12 checks passed"], id="all passed"
            ),
            pytest.param(_results(passed=1), GateThresholds(), ["1 check passed"], id="one passed"),
            pytest.param(
                _results(passed=2, skipped=1),
                GateThresholds(),
                ["2 checks passed", "1 check skipped (response_quality)"],
                id="some skipped",
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
                id="threshold reached",
            ),
            pytest.param(
                _results(passed=2, failed=1, errored=1),
                GateThresholds(),
                [
                    "1 of 3 evaluated checks failed (pass rate 67%, required 100%)",
                    "1 check errored (response_quality)",
                ],
                id="failures before errors",
            ),
            pytest.param(
                _results(passed=1, errored=1),
                GateThresholds(on_error="warn"),
                [
                    "1 check passed",
                    "1 check errored (response_quality); reported only (on_error: warn)",
                ],
                id="on_error: warn",
            ),
            pytest.param(
                _results(passed=1) + _results(failed=1, evaluator="tone", required=False),
                GateThresholds(),
                ["1 required check passed", "1 advisory check did not pass (tone)"],
                id="advisory",
            ),
            pytest.param(
                [make_result("passed", 0.7999)],
                GateThresholds(min_score=0.8),
                ["mean score 0.7999 is below the threshold 0.8"],
                id="mean just below the threshold",
            ),
            pytest.param(
                [make_result("passed")],
                GateThresholds(min_score=0.8),
                ["no check has a score; `min_score` needs one"],
                id="no scores",
            ),
        ],
    )
    def test_reasons_describe_results_and_thresholds(
        self, results: list[CheckResult], thresholds: GateThresholds, why: list[str]
    ) -> None:
        decision = _decide(results, thresholds)
        assert [*decision.reasons, *decision.notes] == why

    def test_long_list_of_evaluators_is_shortened(self) -> None:
        results = [
            make_result("errored", case=f"c{number}", evaluator=f"e{number}") for number in range(9)
        ]
        assert _decide(results).reasons == ("9 checks errored (e0, e1, e2, e3, e4, … and 4 more)",)

    def test_errors_of_several_evaluators_name_their_cases(self) -> None:
        """Six checks of a crashed run are one finding."""
        results = [
            make_result("errored", case=case, evaluator=f"e{number}")
            for case in "ab"
            for number in range(6)
        ]
        decision = _decide(results)
        reason = "12 checks of 2 cases errored (a, b)"
        assert decision.reasons == (reason,)
        assert decision.errored == {reason: "12 checks of 2 cases errored"}
        note = "; reported only (fail-on: never)"
        decision = _decide(results, fail_on="never")
        assert decision.errored == {f"{reason}{note}": f"12 checks of 2 cases errored{note}"}
        advisory = make_result("errored", case="a", evaluator="tone", required=False)
        decision = _decide([*results, advisory])
        assert decision.reasons == ("12 required checks of 2 cases errored (a, b)",)
        assert decision.notes == ("1 advisory check did not pass (tone)",)

    def test_counted_checks_are_named_if_others_are_not_counted(self) -> None:
        """Beside the counts of all checks, it is clear what the rate is of."""
        results = [*_results(passed=3, failed=1, skipped=2), *_results(failed=1, required=False)]
        assert _decide(results).reasons == (
            "1 of 4 evaluated required checks failed (pass rate 75%, required 100%)",
        )
        thresholds = GateThresholds(min_pass_rate=0.5)
        assert _decide(results, thresholds).reasons == ("3 of 4 evaluated required checks passed",)
        assert _decide(_results(passed=1, skipped=1)).reasons == ("1 check passed",)

    def test_input_errors_are_counted(self) -> None:
        assert _decide([], problems=[INVALID] * 3).reasons[0] == "invalid input (3 errors)"


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
    thresholds=values(
        GateThresholds,
        min_pass_rate=st.floats(0, 1),
        min_score=st.none() | st.floats(0, 1),
        on_error=st.sampled_from(["fail", "warn"]),
        on_skip=st.sampled_from(["fail", "allow"]),
    ),
    fail_on=st.sampled_from(["never", "error", "failed"]),
    complete=st.booleans(),
)
def test_decision_passes_only_with_exit_code_0_and_has_reasons(
    results: list[CheckResult], thresholds: GateThresholds, fail_on: FailOn, complete: bool
) -> None:
    evaluated = [
        (
            GatePolicy(overall=thresholds, evaluators={"b": thresholds}),
            [r for r in results if r.config == config],
        )
        for config in ("a.yaml", "b.yaml")
    ]
    decision = _decide_all(evaluated, complete=complete, fail_on=fail_on)
    assert decision.passed == (decision.exit_code == 0)
    assert decision.exit_code in {0, 1, 3}
    assert decision.reasons
    assert all(decision.reasons)
    required = [result.status for result in results if result.evaluator.required]
    if decision.passed and fail_on == "failed":
        assert set(required) & {"passed", "failed"}
        assert "errored" not in required or thresholds.on_error == "warn"


def test_totals_count_statuses_and_average_scores() -> None:
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


def test_score_of_skipped_check_does_not_count_in_totals() -> None:
    assert compute_totals([make_result("skipped", 0.0), make_result("passed", 0.5)]).score == 0.5


def test_nan_score_does_not_count_in_totals() -> None:
    assert (
        compute_totals([make_result("passed", float("nan")), make_result("passed", 0.5)]).score
        == 0.5
    )


def _decide_shard(
    results: Sequence[CheckResult], thresholds: GateThresholds | None = None, **others: Any
) -> Decision:
    policy = GatePolicy(
        overall=thresholds or GateThresholds(), evaluators=others.pop("evaluators", {})
    )
    others = {"problems": (), "complete": True, "fail_on": "failed", **others}
    return decide_shard([(policy, results)], shard=Shard(index=2, total=3), **others)


class TestShardDecision:
    @pytest.mark.parametrize(
        ("results", "thresholds", "exit_code"),
        [
            pytest.param([], GateThresholds(), 0, id="no checks"),
            pytest.param(_results(passed=2), GateThresholds(), 0, id="all passed"),
            pytest.param(_results(skipped=2), GateThresholds(), 0, id="all skipped"),
            pytest.param(
                _results(passed=2, required=False), GateThresholds(), 0, id="only advisory"
            ),
            pytest.param(_results(passed=1, failed=1), GateThresholds(), 1, id="one failed"),
            pytest.param(
                _results(passed=1, failed=1),
                GateThresholds(min_pass_rate=0.5),
                0,
                id="threshold reached",
            ),
            pytest.param(_results(passed=1, errored=1), GateThresholds(), 3, id="one errored"),
            pytest.param(
                _results(errored=1), GateThresholds(on_error="warn"), 0, id="on_error: warn"
            ),
            pytest.param(
                _results(skipped=1), GateThresholds(on_skip="fail"), 1, id="on_skip: fail"
            ),
        ],
    )
    def test_shard_never_passes_and_fails_on_its_own_failures(
        self, results: list[CheckResult], thresholds: GateThresholds, exit_code: int
    ) -> None:
        decision = _decide_shard(results, thresholds)
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
    def test_first_reason_says_why_shard_did_not_fail(
        self, results: list[CheckResult], why: str
    ) -> None:
        assert _decide_shard(results).reasons[0] == why

    def test_evaluator_skipped_in_shard_does_not_fail_it(self) -> None:
        results = [*_results(passed=1), *_results(skipped=1, evaluator="tone")]
        own = {"tone": GateThresholds(min_pass_rate=0.5)}
        assert _decide(results, evaluators=own).exit_code == 1
        assert _decide_shard(results, evaluators=own).exit_code == 0

    @pytest.mark.parametrize(
        ("others", "exit_code"), [({"problems": [INVALID]}, 2), ({"complete": False}, 1)]
    )
    def test_invalid_input_and_interruption_fail_shard(
        self, others: dict[str, Any], exit_code: int
    ) -> None:
        assert _decide_shard([], fail_on="never", **others).exit_code == exit_code


def test_configs_without_results_are_kept_in_grouping() -> None:
    gates = [Gate(config=config, policy=GatePolicy(), evaluators=()) for config in ("a", "b", "c")]
    results = [make_result("passed", config=config) for config in ("c", "a", "c")]
    assert [len(own) for _, own in group_results_by_policy(gates, results)] == [1, 0, 2]


def _make_optional(result: CheckResult) -> CheckResult:
    return replace(result, evaluator=replace(result.evaluator, required=False))


class TestCaseThresholds:
    def _decide(
        self, results: Sequence[CheckResult], minimum: float = 1.0, **others: Any
    ) -> Decision:
        thresholds = CaseThresholds(threshold=0.8, min_pass_rate=minimum)
        policy = GatePolicy(overall=GateThresholds(min_pass_rate=0.0), cases=thresholds)
        return _decide_all([(policy, results)], **others)

    def _case(self, case: str, *scores: tuple[float, float]) -> list[CheckResult]:
        """One check of the case per pair of weight and score."""
        results = [
            make_result("passed" if score >= 0.8 else "failed", score, case=case)
            for _, score in scores
        ]
        return [
            replace(each, evaluator=replace(each.evaluator, weight=weight))
            for each, (weight, _) in zip(results, scores, strict=True)
        ]

    def test_case_score_is_weighted_mean_of_its_checks(self) -> None:
        assert self._decide(self._case("a", (9, 1.0), (1, 0.5))).passed
        assert not self._decide(self._case("a", (1, 1.0), (1, 0.5))).passed

    def test_optional_checks_count_in_the_case_score(self) -> None:
        required, optional = self._case("a", (1, 1.0), (1, 0.2))
        assert not self._decide([required, _make_optional(optional)]).passed

    def test_errored_optional_check_scores_zero_in_its_case(self) -> None:
        errored = _make_optional(make_result("errored", case="a"))
        assert not self._decide([*self._case("a", (1, 1.0)), errored]).passed
        assert self._decide([*self._case("a", (9, 1.0)), errored]).passed

    def test_case_with_only_optional_checks_is_evaluated(self) -> None:
        results = [_make_optional(each) for each in self._case("a", (1, 1.0))]
        assert self._decide(results).passed

    def test_case_is_compared_with_its_own_threshold(self) -> None:
        cases = CaseThresholds(threshold=0.8, own={"a": 0.6})
        policy = GatePolicy(overall=GateThresholds(min_pass_rate=0.0), cases=cases)
        low = [*self._case("a", (1, 0.7)), *self._case("b", (1, 0.7))]
        decision = _decide_all([(policy, low)])
        assert (decision.passed, decision.reasons[0]) == (
            False,
            "1 of 2 cases scored below their thresholds (pass rate 50%, required 100%): b 0.7",
        )

    def test_errored_check_may_score_zero_in_its_case(self) -> None:
        cases = CaseThresholds(threshold=0.8, errors_score=0.0)
        overall = GateThresholds(min_pass_rate=0.0, on_error="warn")
        policy = GatePolicy(overall=overall, cases=cases)
        errored = make_result("errored", case="a")
        assert not _decide_all([(policy, [*self._case("a", (1, 1.0)), errored])]).passed
        assert _decide_all([(policy, [*self._case("a", (9, 1.0)), errored])]).passed

    def test_failed_cases_are_listed_lowest_score_first(self) -> None:
        results = [
            *self._case("a", (1, 0.7)), *self._case("b", (1, 0.2)), *self._case("c", (1, 0.9)),
        ]  # fmt: skip
        assert self._decide(results).reasons[0] == (
            "2 of 3 cases scored below 0.8 (pass rate 33%, required 100%): b 0.2, a 0.7"
        )

    def test_share_of_passing_cases_reaches_threshold(self) -> None:
        results = [*self._case("a", (1, 0.7)), *self._case("b", (1, 0.9))]
        decision = self._decide(results, minimum=0.5)
        assert decision.passed
        assert (
            "1 of 2 cases scored below 0.8 (pass rate 50%, required 50%): a 0.7" in decision.notes
        )

    def test_case_with_zero_total_weight_fails(self) -> None:
        assert not self._decide(self._case("a", (0, 1.0))).passed

    def test_errored_check_is_not_offset_by_case_scores(self) -> None:
        errored = make_result("errored", case="b")
        assert self._decide([*self._case("a", (1, 0.9)), errored]).exit_code == 3
