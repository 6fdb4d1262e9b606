"""Limits of checks in the policy: a looser one is listed, and the base's one can decide."""

from pathlib import Path

import pytest

from agentci.config.overrides import Overrides
from agentci.config.suite import Suite
from agentci.evaluators.checks.check import CheckEvaluator
from agentci.gate.policy_changes import describe_change, find_policy_changes
from agentci.runner.gate_snapshot import apply_base_settings, make_gate
from agentci.runner.load_configs import load_suite
from tests.helpers.support import make_services


def load(folder: Path, checks: str) -> Suite:
    (folder / "agentci.yaml").write_text(f"checks: [{checks}]\n")
    services = make_services(folder, {})
    return load_suite(folder / "agentci.yaml", Overrides(), services).suite


def changes(folder: Path, before: str, after: str) -> list[str]:
    workspace = make_services(folder, {}).workspace
    gates = [make_gate(load(folder, checks), workspace) for checks in (before, after)]
    return [describe_change(each) for each in find_policy_changes(gates[:1], gates[1:])]


@pytest.mark.parametrize(
    ("before", "after", "listed"),
    [
        ("max_latency: 5s", "max_latency: 6s", ["max of max_latency: 5 s → 6 s"]),
        ("max_latency: 2s", "max_latency: 2h", ["max of max_latency: 2 s → 2 h"]),
        (
            "max_duration: 90s",
            "contains: a",
            ["max_duration: required, time of the run <= 1 min 30 s → removed"],
        ),
        ("max_latency: 5s", "max_latency: 4s", []),
        ("max_latency: 5s", "max_latency: 5000ms", []),
        ("max_tokens: {total: 5}", "max_tokens: 5", []),
        (
            "max_tokens: {total: 5, input: 4}",
            "max_tokens: 5",
            ["max input of max_tokens: 4 → not set"],
        ),
        ("max_cost: 0.05", "max_cost: $0.06", ["max of max_cost: $0.05 → $0.06"]),
        ("max_tool_calls: 30", "max_tool_calls: 40", ["max of max_tool_calls: 30 → 40"]),
        (
            "max_tool_calls: {find: 3}",
            "max_tool_calls: {find: 4}",
            ["max find of max_tool_calls: 3 → 4"],
        ),
        ("max_words: {min: 5}", "max_words: {min: 4}", ["min of max_words: 5 → 4"]),
        ("max_words: {min: 5}", "max_words: {min: 6}", []),
        (
            "required_tools: [a, b]",
            "required_tools: [a]",
            ["min b of required_tools: 1 → not set"],
        ),
        (
            "check: required_tools, value: [a]".join("{}"),
            "{check: required_tools, value: [a], threshold: 0.5}",
            ["threshold of required_tools: 1 → 0.5"],
        ),
        ("contains: a", "contains: b", ["value of contains: a → b"]),
        ("contains: a", "max_words: 1", ["contains: required, score >= 1 → removed"]),
        (
            "max_words: 1",
            "{check: max_words, value: 1, cases: [a]}",
            ['cases of max_words: not set → ["a"]'],
        ),
        (
            "max_words: 1",
            "{check: max_words, value: 1, required: false}",
            ["max_words: required → advisory"],
        ),
    ],
)
def test_looser_limit_is_listed(tmp_path: Path, before: str, after: str, listed: list[str]) -> None:
    assert changes(tmp_path, before, after) == listed


def test_limit_of_the_base_decides(tmp_path: Path) -> None:
    workspace = make_services(tmp_path, {}).workspace
    base = make_gate(load(tmp_path, "max_latency: 5s"), workspace)
    suite = load(tmp_path, "max_latency: 9s")
    [changed] = apply_base_settings(suite, base, make_gate(suite, workspace)).evaluators
    assert isinstance(changed, CheckEvaluator)
    assert changed.limits == {"max_ms": 5000.0}
    assert changed.identity.criterion == "time <= 5 s"
