"""Text for the comparison with a baseline, for all report formats."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import asdict

from agentci._util.text.format import format_count, format_number
from agentci.gate.comparison import describe_outcome, label_outcome
from agentci.gate.groups import SCORED_STATUSES
from agentci.model.gate import CheckChange, CheckClasses, Comparison, EvaluatorComparison
from agentci.reports.report_format import format_path

COLUMNS: Final = ("evaluator", "checks", "baseline", "now", "change", "worse", "better", "outcome")

_CLASS_WORDS: Final = {
    "newly_skipped": "skipped only now",
    "newly_errored": "with an error only now",
    "newly_scored": "with a score only now",
    "unscored": "without a score in both runs",
}


def format_evaluator(compared: EvaluatorComparison, comparison: Comparison) -> str:
    """Format the evaluator's name, with its config where there are several."""
    several = any(each.config != compared.config for each in comparison.evaluators)
    return (
        f"{compared.evaluator} ({format_path(compared.config)})" if several else compared.evaluator
    )


def format_cells(compared: EvaluatorComparison, comparison: Comparison) -> tuple[str, ...]:
    """Format the table cells of an evaluator, in the order of ``COLUMNS``."""
    return (
        format_evaluator(compared, comparison),
        f"{compared.pairs:,}",
        _format_score(compared.before),
        _format_score(compared.after),
        _format_mean_change(compared),
        f"{len(compared.worse):,}",
        f"{len(compared.better):,}",
        label_outcome(compared),
    )


def format_change(compared: EvaluatorComparison) -> str:
    """Format the change of an evaluator: ``0.9 (1 worse, 0 better; inconclusive)``."""
    changed = f"{len(compared.worse):,} worse, {len(compared.better):,} better"
    return f"{_format_score(compared.before)} ({changed}; {label_outcome(compared)})"


def list_remarks(comparison: Comparison, *, with_outcomes: bool = True) -> Iterator[str]:
    """Yield remarks that have no column in the table.

    Args:
        with_outcomes: whether to describe the outcome of each evaluator that did not pass.
    """
    if comparison.no_baseline:
        yield comparison.no_baseline
    if comparison.stale:
        yield comparison.stale
    if comparison.same_run:
        yield (
            f"warning: both results are of {comparison.same_run}, so that a run was compared with "
            "itself; export the other run again (evalite exports the first of two runs that began "
            "in the same second)"
        )
    for each in comparison.evaluators if with_outcomes else ():
        if each.outcome != "pass":
            yield f"{format_evaluator(each, comparison)} {describe_outcome(each)}"
    yield from _list_rescored(comparison)
    detectable = ", ".join(
        f"{format_number(each.detectable_drop, 2)} ({format_evaluator(each, comparison)})"
        for each in comparison.evaluators
        if each.detectable_drop is not None
    )
    if detectable:
        yield f"smallest drops that would be detected with 80% probability: {detectable}"
    yield from _list_classes(comparison)


def _list_rescored(comparison: Comparison) -> Iterator[str]:
    """Yield what was evaluated again for the baseline, and why other checks were not."""
    if comparison.rescored:
        verb = "was" if comparison.rescored == 1 else "were"
        checks = format_count(comparison.rescored, "check")
        yield (
            f"{checks} of the baseline {verb} evaluated again with this commit's evaluators"
            f"{_format_kept_runs(comparison)}"
        )
    if comparison.not_rescored:
        yield comparison.not_rescored


def _format_kept_runs(comparison: Comparison) -> str:
    """Format how many of these checks used runs from the baseline's results; empty for none."""
    kept = comparison.rescored_from_results
    if not kept:
        return ""
    count = "" if kept == comparison.rescored else f"{kept:,} of them "
    return f", {count}on the runs that its results keep"


def _list_classes(comparison: Comparison) -> Iterator[str]:
    """Yield the number of checks by class: in total, and of evaluators with other than compared."""
    if not comparison.evaluators:
        return
    yield f"checks of both runs: {_format_classes(comparison.classes)}"
    for each in comparison.evaluators if len(comparison.evaluators) > 1 else ():
        if each.classes.total > each.classes.compared:
            yield f"checks of {format_evaluator(each, comparison)}: {_format_classes(each.classes)}"


def _format_classes(classes: CheckClasses) -> str:
    """Format the classes that have checks: ``32 compared, 8 changed``."""
    counts = asdict(classes).items()
    return ", ".join(f"{count:,} {_CLASS_WORDS.get(name, name)}" for name, count in counts if count)


def list_worse(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    """Yield checks that passed and no longer do: case, evaluator, formatted scores."""
    for compared in comparison.evaluators:
        for each in compared.worse:
            yield each.case, format_evaluator(compared, comparison), format_scores(each)


def format_scores(change: CheckChange) -> str:
    """Format the scores of a check in both runs: ``score 1 -> 0.5``, ``score 1 -> skipped``."""
    scored = change.status in SCORED_STATUSES
    after = _format_score(change.after) if scored else change.status
    changed = "; its evaluator or eval case changed" if change.check_class == "changed" else ""
    if change.fails_before:
        changed = "; the baseline also fails with the current evaluators"
    return f"score {_format_score(change.before)} -> {after}{changed}"


def _format_mean_change(compared: EvaluatorComparison) -> str:
    """Format the mean change with its 95% interval: ``-0.05 (-0.12 to 0.02)``."""
    if compared.before is None or compared.after is None:
        return "-"
    change = format_number(compared.after - compared.before, 2)
    if compared.change_low is None or compared.change_high is None:
        return change
    low, high = (format_number(each, 2) for each in (compared.change_low, compared.change_high))
    return f"{change} ({low} to {high})"


def _format_score(score: float | None) -> str:
    return "-" if score is None else format_number(score)
