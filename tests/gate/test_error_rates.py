"""Error rates of the gate and coverage of its intervals, measured by simulation with fixed seeds.

The table in docs/statistics.md has their ranges: ``--update-golden`` writes it.
"""

import random
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Final

import pytest

from agentci.gate.comparison import compare_runs
from agentci.gate.statistics import mean_confidence_interval
from agentci.model.case import CaseSummary
from agentci.model.gate import Gate, GatePolicy, RegressionThresholds
from agentci.model.requests import EvaluatorIdentity, Judgement
from agentci.model.result import CheckResult
from agentci.model.values import Place, replace
from tests.helpers.support import ROOT

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs" / "statistics.md"
RUNS: Final = 1000
# Four standard errors of a simulated rate around 5 %.
NOISE: Final = 0.028
CONFIG = "e.yaml"
PLACE = Place(file=CONFIG, line=1)


@cache  # all simulated runs have the same few results
def _result(
    evaluator: int, group: int, number: int, score: float, *, edited: bool = False
) -> CheckResult:
    name = f"e{evaluator}"
    return CheckResult(
        id=f"{name} {group} {number}",
        config=CONFIG,
        case=CaseSummary(id=f"{group} {number}", group=f"{group}", trace_id="t", recording=PLACE),
        evaluator=EvaluatorIdentity(
            name=name, type="code", criterion="", threshold=0.5, required=True, place=PLACE
        ),
        status="passed" if score >= 0.5 else "failed",
        judgement=Judgement(score=score, passed=score >= 0.5),
        fingerprint="new" if edited else "f",
    )


def _add_errors(
    results: list[CheckResult], share: float, source: random.Random
) -> list[CheckResult]:
    return [
        replace(each, status="errored", judgement=None) if source.random() < share else each
        for each in results
    ]


# The pass rates of a case in both runs: independent of each other, with a mean drop.
Rates = Callable[[random.Random, float], tuple[float, float]]


def _flaky(source: random.Random, drop: float) -> tuple[float, float]:
    """Each case passes with a probability of its own."""
    rate = source.choice((0.7, 0.9, 1.0))
    return rate, rate - drop


def _steady(source: random.Random, drop: float) -> tuple[float, float]:
    """All cases pass in the baseline; some break for good."""
    return 1.0, float(source.random() >= drop)


def _failing_share(
    rates: Rates,
    drop: float,
    thresholds: RegressionThresholds,
    *,
    groups: int,
    size: int,
    evaluators: int,
    edited: float = 0.0,
    errors: float = 0.0,
) -> float:
    """The share of runs in which any evaluator has the outcome ``fail``.

    Args:
        edited: share of the groups whose evaluation changes without an effect.
        errors: share of the checks that error in each run.
    """
    gate = Gate(config=CONFIG, policy=GatePolicy(regression=thresholds), evaluators=())
    source = random.Random(f"{rates} {drop} {groups} {size} {evaluators}".partition(" at ")[0])
    failed = 0
    for _ in range(RUNS):
        before: list[CheckResult] = []
        after: list[CheckResult] = []
        for evaluator in range(evaluators):
            for group in range(groups):
                earlier, later = rates(source, drop)
                for number in range(size):
                    score = float(source.random() < earlier)
                    before.append(_result(evaluator, group, number, score))
                    score = float(source.random() < later)
                    is_edited = group < edited * groups
                    after.append(_result(evaluator, group, number, score, edited=is_edited))
        if errors:
            before, after = (_add_errors(each, errors, source) for each in (before, after))
        comparison = compare_runs(before, after, [gate], baseline="base")
        failed += any(each.outcome == "fail" for each in comparison.evaluators)
    return failed / RUNS


FALSE_ALARMS: Final[Sequence[tuple[str, Rates, float, int, int, int]]] = (
    ("nothing changed, 20 cases", _flaky, 0.0, 20, 1, 1),
    ("nothing changed, 100 cases", _flaky, 0.0, 100, 1, 1),
    ("nothing changed, 5 evaluators with 40 cases", _flaky, 0.0, 40, 1, 5),
    ("nothing changed, 20 cases with 5 runs each", _flaky, 0.0, 20, 5, 1),
    ("allowed drop of 0.05, 100 cases", _flaky, 0.05, 100, 1, 1),
    ("allowed drop of 0.05, 300 cases", _flaky, 0.05, 300, 1, 1),
    ("allowed drop of 0.05, 100 cases that break", _steady, 0.05, 100, 1, 1),
    ("allowed drop of 0.05, 20 cases with 5 runs each", _flaky, 0.05, 20, 5, 1),
)

# Likewise, with the shares of edited groups and of errored checks.
NOT_COMPARABLE: Final[Sequence[tuple[str, float, int, float, float]]] = (
    ("nothing changed, 40 cases, half of them edited", 0.0, 40, 0.5, 0.0),
    ("nothing changed, 40 cases, all of them edited", 0.0, 40, 1.0, 0.0),
    ("nothing changed, 40 cases, 10 % errors in each run", 0.0, 40, 0.0, 0.1),
    ("allowed drop of 0.05, 100 cases, half edited, 10 % errors", 0.05, 100, 0.5, 0.1),
)


def _covering_share(
    draw: Callable[[random.Random], list[float]], mean: float, groups: int, low: float
) -> float:
    source = random.Random(f"{mean} {groups}")
    covered = 0
    for _ in range(RUNS):
        found = mean_confidence_interval([draw(source) for _ in range(groups)], low=low)
        assert found is not None
        covered += found.low <= mean + 1e-9 and found.high >= mean - 1e-9
    return covered / RUNS


def _passes(rate: float, size: int = 1, correlation: float = 0.0) -> Callable[..., list[float]]:
    """Passes of one group, whose rates follow a beta distribution."""

    def draw(source: random.Random) -> list[float]:
        own = rate
        if correlation:
            spread = (1 - correlation) / correlation
            own = source.betavariate(rate * spread, (1 - rate) * spread)
        count = size if size > 0 else source.randint(1, -size)
        return [float(source.random() < own) for _ in range(count)]

    return draw


def _skewed(source: random.Random) -> list[float]:
    """Nine of ten scores are 1."""
    return [1.0 if source.random() < 0.9 else source.random()]


def _changes(source: random.Random) -> list[float]:
    """One of twenty cases breaks, the others hardly change."""
    return [-1.0 if source.random() < 0.05 else source.uniform(-0.02, 0.02)]


Draw = Callable[[random.Random], list[float]]
COVERAGE: Final[Sequence[tuple[str, Draw, float, int, float]]] = (
    ("pass rate 0.5, 20 cases", _passes(0.5), 0.5, 20, 0.0),
    ("pass rate 0.9, 20 cases", _passes(0.9), 0.9, 20, 0.0),
    ("pass rate 0.99, 20 cases", _passes(0.99), 0.99, 20, 0.0),
    ("pass rate 0.95, 200 cases", _passes(0.95), 0.95, 200, 0.0),
    ("pass rate 0.95, 20 groups of 5", _passes(0.95, 5, 0.3), 0.95, 20, 0.0),
    ("pass rate 0.8, 20 groups of 1 to 15", _passes(0.8, -15, 0.3), 0.8, 20, 0.0),
    ("pass rate 0.95, 50 groups of 1 to 15", _passes(0.95, -15, 0.3), 0.95, 50, 0.0),
    ("mean of skewed scores, 10 cases", _skewed, 0.95, 10, 0.0),
    ("mean of skewed scores, 50 cases", _skewed, 0.95, 50, 0.0),
    ("change where 5% of cases break, 20 cases", _changes, -0.05, 20, -1.0),
    ("change where 5% of cases break, 100 cases", _changes, -0.05, 100, -1.0),
)


def test_docs_state_measured_error_rates(pytestconfig: pytest.Config) -> None:
    alarms = {
        name: _failing_share(
            rates,
            drop,
            RegressionThresholds(max_drop=drop),
            groups=groups,
            size=size,
            evaluators=evaluators,
        )
        for name, rates, drop, groups, size, evaluators in FALSE_ALARMS
    }
    alarms |= {
        name: _failing_share(
            _flaky,
            drop,
            RegressionThresholds(max_drop=drop),
            groups=groups,
            size=1,
            evaluators=1,
            edited=edited,
            errors=errors,
        )
        for name, drop, groups, edited, errors in NOT_COMPARABLE
    }
    covered = {
        name: _covering_share(draw, mean, groups, low) for name, draw, mean, groups, low in COVERAGE
    }
    assert {name: rate for name, rate in alarms.items() if rate > 0.05 + NOISE} == {}
    assert {name: rate for name, rate in covered.items() if rate < 0.93} == {}
    unchanged = [rate for name, rate in alarms.items() if name.startswith("nothing changed")]
    dropped = [rate for name, rate in alarms.items() if name.startswith("allowed drop")]
    table = [
        "| | stated | measured |",
        "|---|--:|--:|",
        _format_range("false alarms, nothing changed", "at most 5%", unchanged),
        _format_range("false alarms, allowed drop of 0.05", "at most 5%", dropped),
        _format_range("coverage of intervals", "95%", covered.values()),
    ]
    text = DOCS.read_text(encoding="utf-8")
    before, start, rest = text.partition("<!-- error rates: written by a test -->\n")
    _, end, after = rest.partition("<!-- end of error rates -->")
    written = before + start + "\n".join(table) + "\n" + end + after
    if pytestconfig.getoption("--update-golden"):
        DOCS.write_text(written, encoding="utf-8")
    assert text == written, "run this test with --update-golden"


def _format_range(name: str, stated: str, rates: Collection[float]) -> str:
    return f"| {name} | {stated} | {100 * min(rates):.1f} to {100 * max(rates):.1f}% |"


def test_passing_a_broken_agent_is_rare_in_prove_mode() -> None:
    """A true drop of twice the allowed one passes in at most 5 % of runs."""
    source = random.Random(1)
    thresholds = RegressionThresholds(max_drop=0.05, mode="prove")
    gate = Gate(config=CONFIG, policy=GatePolicy(regression=thresholds), evaluators=())
    passed = 0
    for _ in range(RUNS):
        before = [_result(0, number, 0, 1.0) for number in range(60)]
        after = [_result(0, number, 0, float(source.random() < 0.95)) for number in range(60)]
        comparison = compare_runs(before, after, [gate], baseline="base")
        passed += comparison.evaluators[0].outcome == "pass"
    assert passed / RUNS <= 0.05 + NOISE
