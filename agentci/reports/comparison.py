"""Text for the comparison with a baseline, for all report formats."""

from collections.abc import Iterator
from typing import Final

from agentci._util.text.format import format_count, format_number
from agentci.model.gate import ChangedCheck, Comparison, EvaluatorComparison
from agentci.reports.report_format import format_path

COLUMNS: Final = ("evaluator", "checks", "was", "is", "worse", "better", "outcome")


def format_evaluator(trend: EvaluatorComparison, comparison: Comparison) -> str:
    """Format the evaluator's name, with its config where there are several."""
    several = any(each.config != trend.config for each in comparison.evaluators)
    return f"{trend.evaluator} ({format_path(trend.config)})" if several else trend.evaluator


def format_cells(trend: EvaluatorComparison, comparison: Comparison) -> tuple[str, ...]:
    """Format the table cells of an evaluator, in the order of ``COLUMNS``."""
    return (
        format_evaluator(trend, comparison),
        f"{trend.pairs:,}",
        _score(trend.before),
        _score(trend.after),
        f"{len(trend.regressions):,}",
        f"{len(trend.improvements):,}",
        trend.outcome,
    )


def format_trend(trend: EvaluatorComparison) -> str:
    """Format the change of an evaluator: baseline score, changed checks, outcome."""
    changed = f"{len(trend.regressions):,} worse, {len(trend.improvements):,} better"
    return f"was {_score(trend.before)}; {changed}: {trend.outcome}"


def list_remarks(comparison: Comparison) -> Iterator[str]:
    """Yield remarks that have no column in the table."""
    if comparison.not_comparable:
        yield comparison.not_comparable
    if comparison.stale:
        yield comparison.stale
    for trend in comparison.evaluators:
        if trend.outcome != "pass":
            yield f"{format_evaluator(trend, comparison)}: {trend.reason}"
    if comparison.added:
        yield f"{format_count(comparison.added, 'check')} of this run alone"
    if comparison.removed:
        yield f"{format_count(comparison.removed, 'check')} of the baseline alone"


def list_regressions(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    """Yield checks that passed and now fail: case, evaluator, formatted scores."""
    for trend in comparison.evaluators:
        for each in trend.regressions:
            yield each.case, format_evaluator(trend, comparison), format_scores(each)


def format_scores(change: ChangedCheck) -> str:
    """Format the scores of a check in both runs."""
    return f"score {_score(change.after)}, was {_score(change.before)}"


def _score(score: float | None) -> str:
    return "-" if score is None else format_number(score)
