"""Text for the comparison with a baseline, for all report formats."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import asdict

from agentci._util.text import truncate
from agentci._util.text.format import (
    format_count,
    format_number,
    format_score,
    format_score_pair,
    format_signed,
)
from agentci.gate.comparison import UNCHANGED, describe_outcome, describe_worse, label_outcome
from agentci.model.gate import CheckChange, CheckClasses, Comparison, EvaluatorComparison
from agentci.model.result import SCORED_STATUSES
from agentci.reports.report_format import MAX_NAMES, format_path

COLUMNS: Final = ("evaluator", "checks", "baseline", "now", "worse", "better", "outcome")
# Smaller changes of a score are not shown.
MIN_CHANGE: Final = 0.005

_CLASS_WORDS: Final = {
    "newly_skipped": "newly skipped",
    "newly_errored": "newly errored",
    "newly_evaluated": "evaluated only now",
    "not_evaluated": "evaluated in neither run",
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
        format_score_change(compared.after, compared),
        f"{len(compared.worse):,}",
        f"{len(compared.better):,}",
        label_outcome(compared),
    )


def format_score_change(score: float | None, compared: EvaluatorComparison | None) -> str:
    """Format a mean score with its change: ``0.91 (\u22120.04, 95 %: \u22120.07 to \u22120.01)``.

    The change and its 95 % interval are those of the checks of both runs. Without a change of at
    least ``MIN_CHANGE``, both are left out.
    """
    shown = "-" if score is None else format_score(score)
    if compared is None or compared.before is None or compared.after is None:
        return shown
    change = compared.after - compared.before
    if abs(change) < MIN_CHANGE:
        return shown
    low, high = compared.change_low, compared.change_high
    if low is None or high is None:
        return f"{shown} ({format_signed(change)})"
    interval = f"{format_signed(low)} to {format_signed(high)}"
    return f"{shown} ({format_signed(change)}, 95 %: {interval})"


def format_outcome(compared: EvaluatorComparison) -> str:
    """Format what changed: ``2 worse, 1 better; inconclusive``."""
    counts = {"worse": len(compared.worse), "better": len(compared.better)}
    changed = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return "; ".join(filter(None, (changed, label_outcome(compared))))


def list_remarks(
    comparison: Comparison, *, with_outcomes: bool = True, reasons: Sequence[str] = ()
) -> Iterator[str]:
    """Yield remarks that have no column in the table.

    Args:
        with_outcomes: whether to describe what got worse, and each outcome other than a pass, and
            to count the checks by class.
        reasons: of the decision, which are not repeated.
    """
    if comparison.no_baseline:
        yield comparison.no_baseline
    if comparison.stale:
        yield comparison.stale
    yield from _list_other_configs(comparison)
    if comparison.same_run:
        yield (
            f"warning: both results are of {comparison.same_run}, so that a run was compared with "
            "itself; export the other run again (evalite exports the first of two runs that began "
            "in the same second)"
        )
    if with_outcomes:
        yield from _list_outcomes(comparison, reasons)
    yield from _list_rescored(comparison)
    if any(each.adjusted_for > 1 for each in comparison.evaluators):
        yield (
            "p-values are adjusted for the number of required evaluators of a config (Holm's "
            "method); intervals are not"
        )
    detectable = ", ".join(
        f"{format_number(each.detectable_drop, 2)} ({format_evaluator(each, comparison)})"
        for each in comparison.evaluators
        if each.detectable_drop is not None
    )
    if detectable:
        yield f"smallest drop that this run would detect with 80% probability: {detectable}"
    if with_outcomes:
        yield from _list_classes(comparison)


def _list_other_configs(comparison: Comparison) -> Iterator[str]:
    """Yield which configs have another name now, and which may have one."""
    for old, new in comparison.renamed_configs.items():
        yield (
            f"the config `{format_path(old)}` of the baseline has the same evaluators and cases as "
            f"`{format_path(new)}`, and was compared with it"
        )
    classes: dict[str, CheckClasses] = {}
    for each in comparison.evaluators:
        classes[each.config] = classes.get(each.config, CheckClasses()) + each.classes
    gone = [format_path(name) for name, of in classes.items() if of.removed == of.total]
    come = [format_path(name) for name, of in classes.items() if of.added == of.total]
    if gone and come:
        old, new = (
            ", ".join(f"`{name}`" for name in truncate.truncate_list(names, MAX_NAMES))
            for names in (gone, come)
        )
        yield (
            f"only the baseline has checks of {old}, and only this run of {new}: was the config "
            "renamed? A renamed one is compared while its evaluators and cases stay the same"
        )


def _list_outcomes(comparison: Comparison, reasons: Sequence[str]) -> Iterator[str]:
    """Yield what got worse, and outcomes other than a pass: each reason of too few cases once."""
    few: dict[str, list[str]] = {}
    for each in comparison.evaluators:
        name = format_evaluator(each, comparison)
        if each.outcome == "insufficient-data":
            if label_outcome(each) != UNCHANGED:
                needed = each.reason.rpartition("; ")[2]
                few.setdefault(needed, []).append(f"{name} ({format_count(each.groups, 'case')})")
        elif each.outcome != "pass":
            own = f"{each.evaluator} {describe_outcome(each)}"
            if own not in reasons and f"{each.config}: {own}" not in reasons:
                yield f"{name} {describe_outcome(each)}"
    worse = [each for each in comparison.evaluators if each.worse]
    if worse:
        counts = [f"{format_evaluator(each, comparison)} {len(each.worse):,}" for each in worse]
        shares = f": {', '.join(truncate.truncate_list(counts, MAX_NAMES))}"
        changes = [change for each in worse for change in each.worse]
        yield f"{describe_worse(changes)}{shares if len(worse) > 1 else ''}"
    for reason, names in few.items():
        shown = ", ".join(truncate.truncate_list(names, MAX_NAMES))
        yield f"too few cases in both runs to test for significance, {reason}: {shown}"


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
    differing = [
        f"{format_evaluator(each, comparison)} {_format_classes(each.classes)}"
        for each in comparison.evaluators
        if each.classes.total > each.classes.compared + each.classes.not_evaluated
    ]
    own = f" ({'; '.join(differing)})" if len(comparison.evaluators) > 1 and differing else ""
    yield f"checks of both runs: {_format_classes(comparison.classes)}{own}"


def _format_classes(classes: CheckClasses) -> str:
    """Format the classes that have checks: ``32 compared, 8 changed``."""
    return ", ".join(f"{count:,} {name}" for name, count in count_by_class(classes).items())


def count_by_class(classes: CheckClasses) -> dict[str, int]:
    """Count the checks of each class that has any, by its name in sentences."""
    return {_CLASS_WORDS.get(name, name): count for name, count in asdict(classes).items() if count}


def group_worse(comparison: Comparison) -> list[tuple[str, str, list[str]]]:
    """Group the checks that passed and no longer do.

    Returns:
        Evaluator, change of the score, and the ids of the cases.
    """
    cases: dict[tuple[str, str], list[str]] = {}
    for compared in comparison.evaluators:
        for each in compared.worse:
            note = format_note(each)
            change = f"{describe_change(each)}{note and f'; {note}'}"
            cases.setdefault((format_evaluator(compared, comparison), change), []).append(each.case)
    return [(evaluator, change, names) for (evaluator, change), names in cases.items()]


def count_gone(comparison: Comparison) -> list[str]:
    """Count the checks that passed and are not evaluated now, by what became of them."""
    gone = Counter(change.status for each in comparison.evaluators for change in each.worse)
    return [
        f"{format_count(gone[status], f'{status} check')} that passed before"
        for status in ("skipped", "removed")
        if gone[status]
    ]


def describe_change(change: CheckChange) -> str:
    """Describe the change of a check: ``1 → 0.5``, ``1 → skipped``."""
    if change.status not in SCORED_STATUSES:
        return f"{_format_score(change.before)} \N{RIGHTWARDS ARROW} {change.status}"
    if change.before is None or change.after is None:
        arrow = "\N{RIGHTWARDS ARROW}"
        return f"{_format_score(change.before)} {arrow} {_format_score(change.after)}"
    return format_score_pair(change.before, change.after)


def format_note(change: CheckChange) -> str:
    """Format what else to know about a change; empty for nothing."""
    if change.fails_before:
        return "the baseline also fails with the current evaluators"
    return "its evaluator or eval case changed" if change.check_class == "changed" else ""


def _format_score(score: float | None) -> str:
    return "-" if score is None else format_score(score)
