"""What is looser than the policy of the base commit."""

from typing import Annotated, Any

import msgspec
import pytest

from agentci.config.models import CaseThresholdSpec, EvalFileGateSpec, GateSpec, ThresholdSpec
from agentci.gate import policy_changes
from agentci.gate.policy_changes import (
    add_fail_on,
    apply_base_policy,
    choose_fail_on,
    compare_fail_on,
    describe_change,
    find_policy_changes,
    find_policy_reasons,
    find_unmet_requirements,
    merge_policies,
)
from agentci.model.gate import (
    CaseThresholds,
    Comparability,
    EvaluatorSettings,
    Gate,
    GatePolicy,
    GateThresholds,
    PolicyChange,
    PolicyComparison,
    RegressionThresholds,
    list_compared,
)
from agentci.model.values import FailOn, replace

STRICTEST_FIRST = {
    "on_error": ("fail", "warn"),
    "on_skip": ("fail", "allow"),
    "on_empty": ("fail", "allow"),
    "on_turn_mismatch": ("fail", "allow"),
    "on_missing": ("fail", "allow"),
    "on_removed": ("fail", "warn", "allow"),
    "on_loosened": ("fail", "warn"),
    "source": ("base", "head"),
    "mode": ("prove", "detect"),
    "match_type": ("EXACT", "IN_ORDER", "ANY_ORDER"),
    "turn_score": ("min", "mean"),
}


def settings(name: str = "tone", **others: Any) -> EvaluatorSettings:
    given = {"threshold": 0.8, "criterion": "score >= 0.8", "required": True, **others}
    return EvaluatorSettings(name=name, **given)


def gate(*evaluators: EvaluatorSettings, config: str = "a.yaml", **others: Any) -> Gate:
    """A gate of ``evaluators``; others are fields of the gate or of its policy."""
    own = {
        key: others.pop(key)
        for key in (
            "eval_cases",
            "recorded_runs",
            "selection",
            "case_names",
            "trials",
            "names",
            "inputs",
            "case_values",
        )
        if key in others
    }
    found = evaluators or (settings(),)
    names = own.pop("names", tuple(dict.fromkeys(each.name for each in found)))
    return Gate(config=config, policy=GatePolicy(**others), evaluators=names, settings=found, **own)


def changes(before: Gate, after: Gate) -> list[str]:
    return [describe_change(each) for each in find_policy_changes([before], [after])]


POLICY = (GateThresholds, CaseThresholds, RegressionThresholds, GatePolicy)


class TestEveryKeyIsCompared:
    """A new key of the gate says which values are stricter."""

    @pytest.mark.parametrize("values", POLICY)
    def test_every_field_is_compared(self, values: type[msgspec.Struct]) -> None:
        assert (*list_compared(values),) == values.__struct_fields__

    @pytest.mark.parametrize("spec", [ThresholdSpec, GateSpec, CaseThresholdSpec, EvalFileGateSpec])
    def test_every_config_key_is_a_field(self, spec: Any) -> None:
        names = {key: name for name, key in policy_changes.CONFIG_KEYS.items()}
        fields = {name for values in POLICY for name in values.__struct_fields__}
        assert {names.get(key, key) for key in spec.model_fields} <= fields

    @pytest.mark.parametrize("values", [*POLICY, EvaluatorSettings])
    def test_choices_start_with_strictest(self, values: type[msgspec.Struct]) -> None:
        found = {name: each.choices for name, each in list_compared(values).items() if each.choices}
        assert found == {name: STRICTEST_FIRST[name] for name in found}

    def test_parts_have_no_values_of_their_own(self) -> None:
        parts = {
            name
            for values in POLICY
            for name, each in list_compared(values).items()
            if each.stricter in {"by part", "neither"}
        }
        assert parts == {"overall", "evaluators", "cases", "regression", "own", "errors_score"}


class TestThresholdsOfGate:
    @pytest.mark.parametrize(
        ("before", "after", "shown"),
        [
            ({}, {"min_pass_rate": 0.9}, "gate.min_pass_rate: 1 → 0.9"),
            ({"min_score": 0.7}, {"min_score": 0.6}, "gate.min_score: 0.7 → 0.6"),
            ({"min_score": 0.7}, {}, "gate.min_score: 0.7 → not set"),
            (
                {"min_pass_rate": 0.9, "pass_rate_confidence": 0.95},
                {"min_pass_rate": 0.9},
                "gate.pass_rate_confidence: 0.95 → not set",
            ),
            ({}, {"on_error": "warn"}, "gate.on_error: fail → warn"),
            ({"on_skip": "fail"}, {}, "gate.on_skip: fail → allow"),
            ({}, {"on_turn_mismatch": "allow"}, "gate.on_turn_mismatch: fail → allow"),
        ],
    )
    def test_looser_value_is_listed_and_stricter_one_is_not(
        self, before: Any, after: Any, shown: str
    ) -> None:
        base, head = (gate(overall=GateThresholds(**each)) for each in (before, after))
        assert changes(base, head) == [shown]
        assert changes(head, base) == []

    @pytest.mark.parametrize(
        ("before", "after", "shown"),
        [
            ({}, None, "gate.max_regression: 0 → not set"),
            ({}, {"max_drop": 0.1}, "gate.max_regression: 0 → 0.1"),
            ({"mode": "prove"}, {}, "gate.regression_mode: prove → detect"),
            ({}, {"confidence": 0.99}, "gate.regression_confidence: 0.95 → 0.99"),
            (
                {"mode": "prove"},
                {"mode": "prove", "confidence": 0.9},
                "gate.regression_confidence: 0.95 → 0.9",
            ),
            (
                {"fail_on": ("fail", "stale")},
                {},
                "gate.fail_on_regression: fail, stale → fail",
            ),
            ({}, {"fail_on": ()}, "gate.fail_on_regression: fail → none"),
        ],
    )
    def test_looser_regression_thresholds(self, before: Any, after: Any, shown: str) -> None:
        base = gate(regression=RegressionThresholds(**before))
        head = gate(regression=None if after is None else RegressionThresholds(**after))
        assert changes(base, head) == [shown]
        assert changes(head, base) == []

    def test_switches_of_policy_are_compared(self) -> None:
        base, head = gate(on_loosened="fail", source="base"), gate()
        assert changes(base, head) == [
            "gate.on_loosened: fail → warn",
            "gate.policy: base → head",
        ]
        assert changes(head, base) == []

    def test_thresholds_of_cases(self) -> None:
        base = gate(cases=CaseThresholds(threshold=0.8))
        looser = gate(cases=CaseThresholds(threshold=0.5, min_pass_rate=0.9))
        assert changes(base, looser) == [
            "gate.cases.threshold: 0.8 → 0.5",
            "gate.cases.min_pass_rate: 1 → 0.9",
        ]
        assert changes(looser, base) == []
        assert changes(base, gate()) == ["gate.cases: score >= 0.8 → not set"]

    def test_own_thresholds_of_cases(self) -> None:
        base = gate(cases=CaseThresholds(threshold=0.8, own={"a": 0.9, "b": 0.5, "c": 0.9}))
        head = gate(cases=CaseThresholds(threshold=0.8, own={"b": 0.4, "c": 1.0}))
        assert changes(base, head) == [
            "gate.cases.a.threshold: 0.9 → 0.8",
            "gate.cases.b.threshold: 0.5 → 0.4",
        ]
        assert changes(head, base) == ["gate.cases.c.threshold: 1 → 0.9"]

    def test_new_own_threshold_may_be_looser(self) -> None:
        base = gate(cases=CaseThresholds(threshold=0.8))
        head = gate(cases=CaseThresholds(threshold=0.8, own={"a": 0.2}))
        assert changes(base, head) == ["gate.cases.a.threshold: 0.8 → 0.2"]

    def test_new_thresholds_of_cases_loosen_those_of_checks(self) -> None:
        head = gate(cases=CaseThresholds(threshold=0.8), overall=GateThresholds(min_pass_rate=0.0))
        assert changes(gate(), head) == ["gate.min_pass_rate: 1 → 0"]
        assert changes(head, gate()) == []


class MaxErrors(msgspec.Struct):
    rate: Annotated[float | None, Comparability("lower", pooled=True)] = None


class TestThresholdsOfOneEvaluator:
    def test_own_thresholds_are_compared_with_those_that_applied(self) -> None:
        own = {"tone": GateThresholds(min_pass_rate=0.5)}
        assert changes(gate(), gate(evaluators=own)) == [
            "gate.evaluators.tone.min_pass_rate: 1 → 0.5"
        ]
        assert changes(gate(evaluators=own), gate()) == []

    def test_removed_thresholds_of_evaluator(self) -> None:
        base = gate(
            overall=GateThresholds(min_pass_rate=0.8),
            evaluators={"tone": GateThresholds(min_pass_rate=1.0)},
        )
        head = gate(overall=GateThresholds(min_pass_rate=0.8))
        assert changes(base, head) == ["gate.evaluators.tone.min_pass_rate: 1 → 0.8"]

    @pytest.mark.parametrize(
        ("own", "shared", "shown"),
        [
            (0.8, 0.8, ["only that of all evaluators together"]),
            (0.8, 0.9, ["only that of all evaluators together"]),
            (0.8, 0.7, ["0.7"]),
            (0.8, 1.0, []),
        ],
    )
    def test_threshold_that_is_now_shared_with_other_evaluators(
        self, own: float, shared: float, shown: list[str]
    ) -> None:
        both = settings(), settings("facts")
        overall = GateThresholds(min_pass_rate=shared)
        base = gate(*both, overall=overall, evaluators={"tone": GateThresholds(min_pass_rate=own)})
        head = gate(*both, overall=overall)
        expected = [f"gate.evaluators.tone.min_pass_rate: 0.8 → {each}" for each in shown]
        assert changes(base, head) == expected

    def test_threshold_of_the_only_evaluator_is_shared_with_no_other(self) -> None:
        overall = GateThresholds(min_pass_rate=0.9)
        base = gate(overall=overall, evaluators={"tone": GateThresholds(min_pass_rate=0.8)})
        assert changes(base, gate(overall=overall)) == []

    @pytest.mark.parametrize(("shared", "listed"), [(0.2, True), (0.1, True), (0.0, False)])
    def test_shared_limit_of_which_lower_values_are_stricter(
        self, shared: float, listed: bool
    ) -> None:
        own, overall = MaxErrors(rate=0.2), MaxErrors(rate=shared)
        assert [*policy_changes.find_pooled(own, None, overall)] == (
            [("rate", "0.2", "only that of all evaluators together")] if listed else []
        )
        assert [*policy_changes.find_pooled(own, own, overall)] == []

    def test_inherited_change_is_listed_once(self) -> None:
        base = gate(evaluators={"tone": GateThresholds(min_pass_rate=1.0)})
        head = gate(
            overall=GateThresholds(on_error="warn"),
            evaluators={"tone": GateThresholds(min_pass_rate=1.0, on_error="warn")},
        )
        assert changes(base, head) == ["gate.on_error: fail → warn"]


class TestEvaluators:
    @pytest.mark.parametrize(
        ("before", "after", "shown"),
        [
            ({}, {"threshold": 0.1}, "threshold of tone: 0.8 → 0.1"),
            ({}, {"required": False}, "tone: required → advisory"),
            (
                {"match_type": "EXACT"},
                {"match_type": "ANY_ORDER"},
                "match type of tone: EXACT → ANY_ORDER",
            ),
            (
                {"on_turn_mismatch": "fail"},
                {"on_turn_mismatch": "allow"},
                "on_turn_mismatch of tone: fail → allow",
            ),
            (
                {"turn_score": "min"},
                {"turn_score": "mean"},
                "turn_score of tone: min → mean",
            ),
            ({"repeat": 5}, {"repeat": 3}, "repeat of tone: 5 → 3"),
        ],
    )
    def test_looser_setting_is_listed_and_stricter_one_is_not(
        self, before: Any, after: Any, shown: str
    ) -> None:
        base, head = gate(settings(**before)), gate(settings(**after))
        assert changes(base, head) == [shown]
        assert changes(head, base) == []

    @pytest.mark.parametrize(
        ("before", "after", "shown"),
        [
            ({}, {"definition": "2"}, "tone edited"),
            (
                {"repeat": 5},
                {"repeat": 5, "repeat_by": "mean"},
                "repeat_by of tone: majority → mean",
            ),
        ],
    )
    def test_edit_is_listed_in_both_directions(self, before: Any, after: Any, shown: str) -> None:
        base, head = gate(settings(**before)), gate(settings(**after))
        assert changes(base, head) == [shown]
        assert len(changes(head, base)) == 1

    @pytest.mark.parametrize(
        ("before", "after", "shown"),
        [
            (
                {"config.words": "20", "path": "a.py"},
                {"config.words": "30", "path": "a.py", "network": "true"},
                ["config.words of tone: 20 → 30", "network of tone: not set → true"],
            ),
            (
                {"key": "***", "path": "a.py"},
                {"key": "secret", "path": "b.py"},
                ["path of tone: a.py → b.py", "tone edited"],
            ),
            ({"path": "a.py"}, {"path": "a.py"}, ["tone edited"]),
            ({}, {"path": "a.py"}, ["tone edited"]),
        ],
    )
    def test_edit_shows_both_values(
        self, before: dict[str, str], after: dict[str, str], shown: list[str]
    ) -> None:
        base, head = settings(values=before), settings(values=after, definition="2")
        assert changes(gate(base), gate(head)) == shown

    def test_setting_that_an_older_report_lacks_is_not_an_edit(self) -> None:
        """Its evaluators took the mean of the turns, which is the default."""
        older = gate(settings(values={"path": "a.py"}))
        values = {"path": "a.py", "turn_score": "mean"}
        newer = settings(turn_score="mean", values=values, definition="2")
        assert changes(older, gate(newer)) == []
        edited = replace(newer, values={**values, "path": "b.py"})
        assert changes(older, gate(edited)) == ["path of tone: a.py → b.py"]

    def test_weight_counts_only_with_thresholds_of_cases(self) -> None:
        base, head = settings(), settings(weight=0.1)
        assert changes(gate(base), gate(head)) == []
        cases = CaseThresholds(threshold=0.5)
        assert changes(gate(base, cases=cases), gate(head, cases=cases)) == [
            "weight of tone: 1 → 0.1"
        ]

    def test_removed_evaluator(self) -> None:
        base = gate(settings(), settings("safety", required=False))
        assert changes(base, gate(settings("safety"))) == ["tone: required, score >= 0.8 → removed"]
        assert changes(base, gate()) == ["safety: advisory → removed"]

    def test_turn_mismatch_of_gate_is_listed_once(self) -> None:
        base = gate(settings(on_turn_mismatch="fail"))
        head = gate(
            settings(on_turn_mismatch="allow"), overall=GateThresholds(on_turn_mismatch="allow")
        )
        assert changes(base, head) == ["gate.on_turn_mismatch: fail → allow"]

    def test_new_evaluator_is_no_change(self) -> None:
        assert changes(gate(), gate(settings(), settings("new", required=False))) == []

    def test_evaluators_of_cases_are_compared_by_case(self) -> None:
        cases = {"a": "1", "b": "2", "c": "3"}
        base = gate(settings(), eval_cases=cases)
        head = gate(settings(cases=("a",)), settings(cases=("b",), threshold=0.5), eval_cases=cases)
        assert changes(base, head) == [
            "threshold of tone: 0.8 → 0.5 (b)",
            "tone: required, score >= 0.8 → removed (c)",
        ]


class TestEvalCases:
    def test_removed_and_edited_cases(self) -> None:
        base = gate(eval_cases={"a": "1", "b": "2", "c": "3"})
        head = gate(eval_cases={"a": "1", "b": "9", "d": "4"})
        assert changes(base, head) == ["1 eval case removed: c", "1 eval case edited: b"]

    @pytest.mark.parametrize(
        ("before", "after", "shown"),
        [
            pytest.param(
                {"a": {"amount": "129.00", "city": "Rome"}},
                {"a": {"amount": "139.00", "city": "Rome"}},
                "; amount 129.00 → 139.00",
                id="value",
            ),
            pytest.param(
                {"a": {"x": "1"}}, {"a": {"y": "2"}}, "; x 1 → not set, y not set → 2", id="keys"
            ),
            pytest.param(
                {"a": dict.fromkeys("uvwx", "1")},
                {"a": dict.fromkeys("uvwx", "2")},
                "; u 1 → 2, v 1 → 2, … and 2 more",
                id="many values",
            ),
            pytest.param(
                {case: {"x": "1"} for case in "abcde"},
                {case: {"x": "2"} for case in "abcde"},
                "; a: x 1 → 2; b: x 1 → 2; c: x 1 → 2; … and 2 more",
                id="many cases",
            ),
            pytest.param({}, {"a": {"x": "1"}}, "", id="report of an older version"),
        ],
    )
    def test_edited_values_are_shown(self, before: Any, after: Any, shown: str) -> None:
        cases = [*after]
        base = gate(eval_cases=dict.fromkeys(cases, "1"), case_values=before)
        head = gate(eval_cases={each: f"edited {each}" for each in cases}, case_values=after)
        edited = "1 eval case" if len(cases) == 1 else f"{len(cases)} eval cases"
        assert changes(base, head) == [f"{edited} edited: {', '.join(cases)}{shown}"]

    def test_renamed_and_added_cases_are_no_change(self) -> None:
        base = gate(eval_cases={"row-1": "1", "row-2": "2"})
        assert changes(base, gate(eval_cases={"row-1": "0", "row-2": "1", "row-3": "2"})) == []

    def test_removed_row_without_id_is_not_taken_for_an_edit(self) -> None:
        base = gate(eval_cases={"row-1": "1", "row-2": "2", "row-3": "3"})
        head = gate(eval_cases={"row-1": "1", "row-2": "3"})
        assert changes(base, head) == ["1 eval case removed: row-2"]

    def test_one_of_two_equal_cases_is_removed(self) -> None:
        base = gate(eval_cases={"a": "1", "b": "1"})
        assert changes(base, gate(eval_cases={"a": "1"})) == ["1 eval case removed: b"]

    def test_names_are_limited(self) -> None:
        base = gate(eval_cases={f"case-{number}": f"{number}" for number in range(1000)})
        [change] = find_policy_changes([base], [gate()])
        assert len(change.names) == policy_changes.MAX_NAMES
        assert describe_change(change).startswith("1,000 eval cases removed: case-0, case-1")

    def test_fewer_recorded_runs(self) -> None:
        base, head = gate(recorded_runs=20), gate(recorded_runs=12)
        assert changes(base, head) == ["recorded runs: 20 → 12"]
        assert changes(head, base) == []
        assert changes(gate(), head) == changes(base, gate()) == []

    def test_runs_of_removed_cases_are_no_second_change(self) -> None:
        cases = {"a": "1", "b": "2", "c": "3"}
        base = gate(eval_cases=cases, recorded_runs=3)
        head = gate(eval_cases={"a": "1"}, recorded_runs=1)
        removed = "2 eval cases removed: b, c"
        assert changes(base, head) == [removed]
        runs = "recorded runs: 3 → 0"
        assert changes(base, replace(head, recorded_runs=0)) == [removed, runs]
        # A case without a run does not explain that one is gone.
        unrecorded = replace(base, uncovered=("c",))
        assert changes(unrecorded, head) == [removed, "recorded runs: 3 → 1"]

    def test_other_eval_case_of_traces(self) -> None:
        base = gate(case_names={"a": "", "b": "x", "c": "y"})
        assert changes(base, base) == []
        assert changes(base, gate(case_names={"a": "z", "b": "", "d": "y"})) == [
            "case of a: found by the question → z",
            "case of b: x → found by the question",
        ]

    def test_edited_program(self) -> None:
        base = gate(settings("tone", code="1"), settings("new"))
        assert changes(base, gate(settings("tone", code="2"), settings("new", code="1"))) == [
            "code of tone edited"
        ]

    def test_other_selection_of_traces(self) -> None:
        every, some = gate(selection={"a": ""}), gate(selection={"a": "x: 1", "c": "x: 1"})
        assert changes(every, some) == ["where of a: all traces → x: 1"]
        assert changes(gate(selection={"a": "x: 1"}), gate(selection={"a": "x: 2"})) == [
            "where of a: x: 1 → x: 2"
        ]
        assert changes(gate(selection={"a": "x: 1"}), every) == []
        assert changes(some, some) == []

    def test_other_paths_of_traces(self) -> None:
        base = gate(selection={"a": "", "b": ""})
        assert changes(base, gate(selection={"b": "", "c": ""})) == ["traces: a, b → b, c"]
        assert changes(base, gate()) == ["traces: a, b → not set"]
        assert changes(base, gate(selection={"b": "", "c": "", "a": ""})) == []
        assert changes(gate(), base) == []

    def test_other_inputs(self) -> None:
        base, head = gate(inputs={"group_by": "trace"}), gate(inputs={"trace_format": "adk"})
        assert changes(base, head) == [
            "group_by: trace → not set",
            "trace_format: not set → adk",
        ]
        assert changes(head, head) == []

    def test_trials(self) -> None:
        assert changes(gate(), gate(trials="pass_at_k of 3")) == ["trials: 1 run → pass_at_k of 3"]


def test_removed_config_is_listed_and_new_one_is_not() -> None:
    found = [*find_policy_changes([gate(), gate(config="b.yaml")], [gate(), gate(config="c.yaml")])]
    assert [describe_change(each) for each in found] == ["config b.yaml removed"]


class TestReasons:
    LOOSENED = PolicyChange(config="a.yaml", kind="loosened", subject="x", before="1", after="0")

    def test_switch_of_base_decides_whether_it_fails(self) -> None:
        base, head = gate(on_loosened="fail", eval_cases={"a": "1"}), gate()
        assert {each.fails for each in find_policy_changes([base], [head])} == {True}
        assert {each.fails for each in find_policy_changes([head], [gate(on_loosened="fail")])} <= {
            False
        }

    def test_changes_are_one_reason(self) -> None:
        both = (self.LOOSENED, replace(self.LOOSENED, subject="y"))
        [reason] = find_policy_reasons(PolicyComparison(base="b", loosened=both))
        assert (reason.kind, reason.text) == (
            "remark",
            "the policy is looser than the base's (2 changes)",
        )

    def test_failing_changes_fail(self) -> None:
        other = replace(self.LOOSENED, config="b.yaml", fails=True)
        first, second = find_policy_reasons(
            PolicyComparison(base="b", loosened=(self.LOOSENED, other))
        )
        assert (first.kind, first.text) == (
            "failed",
            "the policy is looser than the base's: b.yaml: x: 1 → 0",
        )
        assert second.kind == "remark"

    @pytest.mark.parametrize(("required", "kind"), [(True, "failed"), (False, "unknown")])
    def test_unknown_policy_fails_where_it_decides(self, required: bool, kind: str) -> None:
        [reason] = find_policy_reasons(
            PolicyComparison(base="base", unavailable="no git", required=required)
        )
        assert (reason.kind, reason.text) == (kind, "the policy of the base is unknown: no git")

    def test_unmet_requirements_of_the_base_fail(self) -> None:
        missing = ("`tone` is required by the base", "the base requires `on_error: fail`")
        reasons = [*find_policy_reasons(PolicyComparison(base="b", missing=missing))]
        assert [(each.kind, each.text) for each in reasons] == [
            ("failed", each) for each in missing
        ]

    def test_without_comparison_there_are_no_reasons(self) -> None:
        assert [*find_policy_reasons(None)] == []


class TestPolicyOfBase:
    def test_new_evaluators_keep_the_heads_thresholds(self) -> None:
        base = gate(
            overall=GateThresholds(min_pass_rate=0.9),
            evaluators={"tone": GateThresholds(min_score=0.5), "gone": GateThresholds()},
            source="base",
        )
        head = gate(
            settings(),
            settings("new"),
            settings("own"),
            overall=GateThresholds(min_pass_rate=0.1),
            evaluators={"own": GateThresholds(min_pass_rate=0.2)},
        )
        policy = apply_base_policy(base, head)
        assert policy.overall.min_pass_rate == 0.9
        assert policy.source == "base"
        assert {name: each.min_pass_rate for name, each in policy.evaluators.items()} == {
            "tone": 1.0,
            "new": 0.1,
            "own": 0.2,
        }

    def test_removed_required_evaluators_are_unmet(self) -> None:
        base = gate(settings(), settings("note", required=False), source="base")
        assert [*find_unmet_requirements([base], [gate(settings("other"))])] == [
            "the base's policy is not met: tone: required, score >= 0.8 → removed"
        ]
        assert [*find_unmet_requirements([base], [])] == [
            "the base's policy requires config a.yaml, which was removed"
        ]
        assert [*find_unmet_requirements([gate()], [])] == []

    def test_settings_that_could_not_be_applied_are_unmet(self) -> None:
        base = gate(settings(), source="base")
        assert [*find_unmet_requirements([base], [gate(settings(threshold=0.1))])] == [
            "the base's policy is not met: threshold of tone: 0.8 → 0.1"
        ]
        looser = gate(settings(), overall=GateThresholds(min_pass_rate=0.5))
        assert [*find_unmet_requirements([base], [looser])] == [
            "the base's policy is not met: gate.min_pass_rate: 1 → 0.5"
        ]


class TestMergedRuns:
    CHANGE = PolicyChange(config="a.yaml", kind="loosened", subject="x", before="1", after="0")

    def test_equal_parts_of_shards_count_once(self) -> None:
        one = PolicyComparison(base="b", loosened=(self.CHANGE,), notes=("n",))
        assert merge_policies([one, None, one]) == one

    def test_configs_are_joined(self) -> None:
        one = PolicyComparison(base="b", loosened=(self.CHANGE,))
        other = PolicyComparison(base="c", unavailable="no git", required=True)
        assert merge_policies([one, other]) == PolicyComparison(
            base="b, c", loosened=(self.CHANGE,), unavailable="no git", required=True
        )

    def test_without_comparisons_there_is_none(self) -> None:
        assert merge_policies([None, None]) is None


class TestFailOn:
    def gate(self, config: str = "a.yaml", **policy: Any) -> Gate:
        return Gate(config=config, policy=GatePolicy(**policy), evaluators=())

    def compare(self, *gates: Gate, after: FailOn = "never") -> PolicyComparison:
        changes = tuple(compare_fail_on(gates, "error", after))
        return PolicyComparison(base="b", loosened=changes)

    def test_looser_option_is_listed_and_counts(self) -> None:
        found = self.compare(self.gate())
        assert [describe_change(each) for each in found.loosened] == ["fail-on: error → never"]
        assert choose_fail_on(found, "never") == "never"

    @pytest.mark.parametrize("after", ["error", "failed"])
    def test_other_option_is_not_listed(self, after: FailOn) -> None:
        assert self.compare(self.gate(), after=after).loosened == ()
        assert self.compare(after="never").loosened == ()

    def test_option_of_the_base_decides_where_a_config_asks(self) -> None:
        strict = self.gate("b.yaml", on_loosened="fail")
        found = self.compare(self.gate(source="base"), strict)
        assert [each.fails for each in found.loosened] == [True]
        assert choose_fail_on(found, "never") == "error"
        found = self.compare(self.gate(), self.gate("b.yaml", source="base"))
        assert choose_fail_on(found, "never") == "never"
        assert choose_fail_on(replace(found, decided_by_base=("b.yaml",)), "never") == "error"
        assert choose_fail_on(None, "never") == "never"

    def test_option_of_a_merge_is_added_to_the_comparison_of_its_parts(self) -> None:
        merged = self.compare(self.gate())
        other = PolicyChange(config="a.yaml", kind="loosened", subject="x", after="0")
        parts = PolicyComparison(base="b", loosened=(other,))
        assert add_fail_on(None, merged) is merged
        assert add_fail_on(parts, None) is parts
        both = add_fail_on(parts, replace(merged, loosened=(*merged.loosened, other)))
        assert both == replace(parts, loosened=(other, *merged.loosened))


def test_cases_are_matched_by_id_then_by_digest() -> None:
    base = {"a": "1", "b": "2", "c": "2", "d": "3"}
    head = {"a": "9", "x": "2", "y": "2", "z": "4"}
    assert policy_changes.match_cases(base, head) == {"a": "a", "b": "x", "c": "y"}
