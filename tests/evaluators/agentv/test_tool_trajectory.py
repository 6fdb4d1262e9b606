"""``tool_trajectory``, beyond the conformance cases."""

from typing import Any

import pytest

from agentci.model.judgement import Judgement
from agentci.model.trace import ToolUse
from tests.evaluators.agentv.agentv_cases import judged, used


def _judge(*tools: Any, key: str = "tests", **entry: Any) -> Judgement:
    if "expected" in entry:
        entry["expected"] = [{"tool": t} if isinstance(t, str) else t for t in entry["expected"]]
    return judged({"type": "tool_trajectory", **entry}, used(*tools), key=key)


class TestStrict:
    def test_a_call_too_many_is_not_exact(self) -> None:
        loose = _judge("a", "b", mode="exact", expected=["a"])
        strict = _judge("a", "b", mode="exact", expected=["a"], strict=True)
        assert (loose.score, strict.score) == (1.0, 0.5)
        assert strict.misses == ("Expected 1 tool calls, got 2",)

    def test_any_call_is_too_many_where_none_is_expected(self) -> None:
        assert _judge("a", mode="exact", expected=[]).score == 1.0
        assert _judge("a", mode="exact", expected=[], strict=True).score == 0.0
        assert _judge(mode="exact", expected=[], strict=True).score == 1.0

    def test_order_looks_past_a_call_with_other_arguments(self) -> None:
        calls = ("a", {"n": 1}), ("a", {"n": 2})
        wanted = [{"tool": "a", "args": {"n": 2}}]
        assert _judge(*calls, mode="in_order", expected=wanted).score == 0.0
        strict = _judge(*calls, mode="in_order", expected=wanted, strict=True)
        assert (strict.score, strict.hits) == (1.0, ("Found a at position 1",))

    def test_order_looks_past_a_tool_that_is_not_there(self) -> None:
        assert _judge("b", mode="in_order", expected=["a", "b"]).score == 0.0
        assert _judge("b", mode="in_order", expected=["a", "b"], strict=True).score == 0.5

    def test_order_stays_where_it_is_after_a_call_that_does_not_fit(self) -> None:
        wanted = [{"tool": "a", "args": {"n": 2}}, {"tool": "a", "args": {"n": 1}}]
        assert _judge(("a", {"n": 1}), mode="in_order", expected=wanted, strict=True).score == 0.5


def test_another_tool_in_its_place_is_named() -> None:
    assert _judge("b", mode="exact", expected=["a"]).misses == ("Position 0: expected a, got b",)


class TestTime:
    def _timed(self, duration: float | None, **entry: Any) -> Judgement:
        use = ToolUse(tool="a", duration_ms=duration)
        wanted = [{"tool": "a", "max_duration_ms": 50}]
        return _judge(use, **{"mode": "exact", "expected": wanted, **entry})

    @pytest.mark.parametrize("mode", ["exact", "in_order", "superset"])
    def test_counts_as_much_as_the_call(self, mode: str) -> None:
        assert self._timed(80, mode=mode).score == 0.5
        assert self._timed(80, mode=mode).misses == ("a took 80ms (max: 50ms)",)
        assert self._timed(50, mode=mode).hits[-1] == "a completed in 50ms (max: 50ms)"

    def test_that_was_not_recorded_does_not_count(self) -> None:
        assert self._timed(None).score == 1.0

    def test_is_looked_at_in_older_files_where_they_are_strict(self) -> None:
        assert self._timed(80, key="cases").score == 1.0
        assert self._timed(80, key="cases", strict=True).score == 0.5


class TestArguments:
    def test_may_be_anything_where_none_or_any_are_expected(self) -> None:
        for args in ({}, {"args": "any"}):
            wanted = [{"tool": "a", **args}]
            assert _judge(("a", {"n": 1}), mode="exact", expected=wanted).score == 1.0

    def test_have_to_be_there(self) -> None:
        wanted = [{"tool": "a", "args": {}}]
        missed = _judge("a", mode="exact", expected=wanted).misses
        assert missed == ("Position 0: a args mismatch",)
        assert _judge("a", mode="exact", expected=wanted, args_match="superset").score == 0.0
        assert _judge(("a", {}), mode="exact", expected=wanted).score == 1.0

    def test_of_paths_need_not_be_expected(self) -> None:
        wanted = [{"tool": "a", "args": {"n": [{"k": True}]}}]
        by_path: dict[str, Any] = {
            "mode": "exact",
            "expected": wanted,
            "args_match": ["n[0].k", "gone"],
        }
        assert _judge(("a", {"n": [{"k": True}]}), **by_path).score == 1.0
        assert _judge(("a", {"n": [{"k": 1}]}), **by_path).score == 0.0
        assert _judge(("a", {"n": []}), **by_path).score == 0.0

    def test_are_the_same_by_value_and_kind(self) -> None:
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
    def test_is_reached_without_any_call(self) -> None:
        assert _judge(mode="subset", expected=["a"]).score == 1.0

    def test_of_nothing_is_not_reached_by_a_call(self) -> None:
        assert _judge("a", mode="subset", expected=[]).score == 0.0


def test_a_superset_of_nothing_is_always_reached() -> None:
    assert _judge("a", mode="superset", expected=[]).hits == ("No tool sequence specified",)


def test_negate_turns_score_and_lines() -> None:
    turned = _judge("a", mode="exact", expected=["a"], negate=True)
    assert (turned.score, turned.passed, turned.misses) == (0.0, False, ("Position 0: a",))
