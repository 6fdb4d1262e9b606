"""``tool_trajectory``, in addition to the conformance cases."""

from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.model.requests import Judgement
from agentci.model.trace import ToolUse
from tests.evaluators.agentv.agentv_cases import evaluate, run_with_tools


def _judge(*tools: Any, key: str = "tests", **entry: Any) -> Judgement:
    if "expected" in entry:
        entry["expected"] = [{"tool": t} if isinstance(t, str) else t for t in entry["expected"]]
    return evaluate({"type": "tool_trajectory", **entry}, run_with_tools(*tools), key=key)


@pytest.mark.parametrize(
    ("mode", "fields"),
    [
        ("any_order", {"minimums": {f"t{n}": 1 for n in range(1_001)}}),
        *((mode, {"expected": ["a"] * 1_001}) for mode in ("in_order", "superset", "subset")),
    ],
)
def test_comparison_that_takes_hours_is_an_error(mode: str, fields: Any) -> None:
    with pytest.raises(EvaluatorError, match="1,000 recorded tool calls cannot be compared with"):
        _judge(*["b"] * 1_000, mode=mode, **fields)


def test_exact_comparison_may_be_long() -> None:
    assert _judge(*["a"] * 1_001, mode="exact", expected=["a"] * 1_001).score == 1.0


@pytest.mark.parametrize("index", ["\u00b2", "9" * 5_000])
def test_unusual_index_in_path_names_no_value(index: str) -> None:
    judgement = _judge(
        ("a", {"n": [1]}),
        mode="exact",
        expected=[{"tool": "a", "args": {"n": [1]}}],
        args_match=[f"n[{index}]"],
    )
    assert judgement.score == 1.0


class TestStrict:
    def test_extra_call_fails_strict_exact_match(self) -> None:
        loose = _judge("a", "b", mode="exact", expected=["a"])
        strict = _judge("a", "b", mode="exact", expected=["a"], strict=True)
        assert (loose.score, strict.score) == (1.0, 0.5)
        assert strict.misses == ("Expected 1 tool calls, got 2",)

    def test_any_call_fails_strict_empty_expectation(self) -> None:
        assert _judge("a", mode="exact", expected=[]).score == 1.0
        assert _judge("a", mode="exact", expected=[], strict=True).score == 0.0
        assert _judge(mode="exact", expected=[], strict=True).score == 1.0

    def test_strict_order_skips_call_with_other_arguments(self) -> None:
        calls = ("a", {"n": 1}), ("a", {"n": 2})
        wanted = [{"tool": "a", "args": {"n": 2}}]
        assert _judge(*calls, mode="in_order", expected=wanted).score == 0.0
        strict = _judge(*calls, mode="in_order", expected=wanted, strict=True)
        assert (strict.score, strict.hits) == (1.0, ("Found a at position 1",))

    def test_strict_order_skips_missing_tool(self) -> None:
        assert _judge("b", mode="in_order", expected=["a", "b"]).score == 0.0
        assert _judge("b", mode="in_order", expected=["a", "b"], strict=True).score == 0.5

    def test_strict_order_keeps_position_after_mismatch(self) -> None:
        wanted = [{"tool": "a", "args": {"n": 2}}, {"tool": "a", "args": {"n": 1}}]
        assert _judge(("a", {"n": 1}), mode="in_order", expected=wanted, strict=True).score == 0.5


def test_mismatched_tool_is_named() -> None:
    assert _judge("b", mode="exact", expected=["a"]).misses == ("Position 0: expected a, got b",)


class TestDuration:
    def _timed(self, duration: float | None, **entry: Any) -> Judgement:
        use = ToolUse(tool="a", duration_ms=duration)
        wanted = [{"tool": "a", "max_duration_ms": 50}]
        return _judge(use, **{"mode": "exact", "expected": wanted, **entry})

    @pytest.mark.parametrize("mode", ["exact", "in_order", "superset"])
    def test_exceeded_duration_halves_score(self, mode: str) -> None:
        assert self._timed(80, mode=mode).score == 0.5
        assert self._timed(80, mode=mode).misses == ("a took 80ms (max: 50ms)",)
        assert self._timed(50, mode=mode).hits[-1] == "a completed in 50ms (max: 50ms)"

    def test_missing_duration_is_not_checked(self) -> None:
        assert self._timed(None).score == 1.0

    def test_older_files_check_duration_only_if_strict(self) -> None:
        assert self._timed(80, key="cases").score == 1.0
        assert self._timed(80, key="cases", strict=True).score == 0.5


class TestArguments:
    def test_any_arguments_match_without_expected_arguments(self) -> None:
        for args in ({}, {"args": "any"}):
            wanted = [{"tool": "a", **args}]
            assert _judge(("a", {"n": 1}), mode="exact", expected=wanted).score == 1.0

    def test_missing_arguments_do_not_match_empty_object(self) -> None:
        wanted = [{"tool": "a", "args": {}}]
        missed = _judge("a", mode="exact", expected=wanted).misses
        assert missed == ("Position 0: a args mismatch",)
        assert _judge("a", mode="exact", expected=wanted, args_match="superset").score == 0.0
        assert _judge(("a", {}), mode="exact", expected=wanted).score == 1.0

    def test_unexpected_argument_paths_are_not_compared(self) -> None:
        wanted = [{"tool": "a", "args": {"n": [{"k": True}]}}]
        by_path: dict[str, Any] = {
            "mode": "exact",
            "expected": wanted,
            "args_match": ["n[0].k", "gone"],
        }
        assert _judge(("a", {"n": [{"k": True}]}), **by_path).score == 1.0
        assert _judge(("a", {"n": [{"k": 1}]}), **by_path).score == 0.0
        assert _judge(("a", {"n": []}), **by_path).score == 0.0

    def test_arguments_match_by_value_and_type(self) -> None:
        def fits(wanted: Any, given: Any) -> bool:
            expected = [{"tool": "a", "args": {"n": wanted}}]
            return _judge(("a", {"n": given}), mode="exact", expected=expected).score == 1.0

        assert fits(1, 1.0)
        assert fits([1, {"k": None}], [1, {"k": None}])
        others: list[tuple[Any, Any]] = [
            (1, True), (1, "1"), ([1], [1, 1]), ({"k": 1}, {"j": 1}), ({}, 1), ([], 1),
        ]  # fmt: skip
        assert not any(fits(*each) for each in others)


class TestSubset:
    def test_run_without_calls_is_a_subset(self) -> None:
        assert _judge(mode="subset", expected=["a"]).score == 1.0

    def test_any_call_fails_empty_subset(self) -> None:
        assert _judge("a", mode="subset", expected=[]).score == 0.0


def test_empty_superset_always_passes() -> None:
    assert _judge("a", mode="superset", expected=[]).hits == ("No tool sequence specified",)


def test_negate_inverts_score_and_swaps_lines() -> None:
    turned = _judge("a", mode="exact", expected=["a"], negate=True)
    assert (turned.score, turned.passed, turned.misses) == (0.0, False, ("Position 0: a",))
