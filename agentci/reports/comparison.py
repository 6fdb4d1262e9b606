"""Text for the comparison with a baseline, for all report formats."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import asdict

from agentci._util.text import truncate
from agentci._util.text.format import (
    format_count,
    format_score,
    format_score_pair,
    format_score_triple,
    format_signed,
)
from agentci.gate.comparison import (
    FIXED,
    NEW,
    NEWLY_FAILING,
    NO_LONGER_EVALUATED,
    REMOVED,
    UNCHANGED,
    count_missing,
    describe_outcome,
    find_lost_status,
    label_outcome,
    list_change_notes,
    list_changes,
)
from agentci.model.gate import CheckChange, CheckClasses, Comparison, EvaluatorComparison
from agentci.model.result import SCORED_STATUSES
from agentci.model.values import replace
from agentci.reports.groups_and_totals import MAX_NAMES, format_path

CHANGE: Final = "(change, 95% interval)"
COLUMNS: Final = (
    *("evaluator", "checks in both runs", "baseline", f"now {CHANGE}"),
    *("outcome", "changed checks"),
)
# Smaller changes of a score are not shown.
MIN_CHANGE: Final = 0.005

_CLASS_MEANINGS: Final = {
    "compared": "passed or failed in both runs, by the same evaluator and eval case",
    "changed": "in both runs, but the evaluator or the eval case was edited between them",
    "newly_skipped": "skipped now, but not in the baseline",
    "newly_errored": "an error now, but not in the baseline",
    "newly_evaluated": "passed or failed now, but was skipped or an error in the baseline",
    "not_evaluated": "skipped in both runs, or an error in both",
    "added": "only in this run",
    "removed": "not in this run, whatever their result in the baseline was",
}
_CLASS_WORDS: Final = {
    "newly_skipped": "newly skipped",
    "newly_errored": "newly errored",
    "newly_evaluated": "evaluated only now",
    "not_evaluated": "evaluated in neither run",
    # "Removed" is what passed in the baseline and is gone.
    "removed": "only in the baseline",
}


def format_evaluator(compared: EvaluatorComparison, comparison: Comparison) -> str:
    """Format the evaluator's name, with its config where there are several."""
    several = any(each.config != compared.config for each in comparison.evaluators)
    return (
        f"{compared.evaluator} ({format_path(compared.config)})" if several else compared.evaluator
    )


ADVISORY: Final = " (advisory)"


def _format_cells(
    compared: EvaluatorComparison,
    comparison: Comparison,
    missing: frozenset[str],
    write: Callable[[str], str],
) -> tuple[str, ...]:
    """Format the table cells of an evaluator, in the order of ``COLUMNS``."""
    name = write(format_evaluator(compared, comparison))
    return (
        name if compared.required else f"{name}{ADVISORY}",
        f"{compared.in_both:,}",
        _format_before(compared),
        format_change(compared) or "-",
        label_shown(drop_missing(compared, missing)),
        format_groups(compared) or "none",
    )


def find_compared(
    comparison: Comparison | None, config: str, evaluator: str
) -> EvaluatorComparison | None:
    """Find the comparison of an evaluator; None without one."""
    evaluators = comparison.evaluators if comparison else ()
    return next((e for e in evaluators if (e.config, e.evaluator) == (config, evaluator)), None)


def list_rows(
    comparison: Comparison,
    write: Callable[[str], str] = str,
    missing: frozenset[str] | None = None,
) -> list[tuple[str, ...]]:
    """List the table cells of each evaluator; one row for a config that only one run has.

    Args:
        write: escapes the name of an evaluator.
        missing: as for ``drop_missing``; None for the cases that the comparison knows.
    """
    if missing is None:
        missing = frozenset((*comparison.removed_cases, *comparison.unrecorded_cases))
    whole = dict.fromkeys(find_gone_configs(comparison), REMOVED)
    whole |= dict.fromkeys(find_new_configs(comparison), NEW)
    rows: dict[tuple[str, str], tuple[str, ...]] = {}
    for each in comparison.evaluators:
        if each.config in whole:
            own = [other for other in comparison.evaluators if other.config == each.config]
            name = format_whole_config(own)
            row = (write(name), "0", "-", "-", whole[each.config], format_groups(*own) or "none")
            rows[each.config, ""] = row
        else:
            rows[each.config, each.evaluator] = _format_cells(each, comparison, missing, write)
    return [*rows.values()]


def format_whole_config(evaluators: Sequence[EvaluatorComparison]) -> str:
    """Format ``all 7 evaluators (tests/agentci.yaml)``."""
    several = f"all {len(evaluators):,} evaluators" if len(evaluators) > 1 else ""
    return f"{several or evaluators[0].evaluator} ({format_path(evaluators[0].config)})"


def format_groups(*evaluators: EvaluatorComparison) -> str:
    """Format how many checks changed: ``2 newly failing, 1 fixed``; empty for none."""
    return ", ".join(f"{count:,} {label}" for _, count, label in list_changes(evaluators))


def drop_missing(compared: EvaluatorComparison, missing: frozenset[str]) -> EvaluatorComparison:
    """Drop the changes of cases that are missing as a whole, which are none of the evaluator's own.

    Those of an evaluator that only the baseline has stay, and those that alone explain a drop.

    Args:
        missing: ids of these cases.
    """
    if compared.classes.removed == compared.classes.total or find_lost_status(compared):
        return compared
    if compared.outcome in ("fail", "inconclusive") and _is_same_in_both(compared):
        return compared
    kept = (each for each in compared.no_longer_evaluated if each.case not in missing)
    return replace(compared, no_longer_evaluated=tuple(kept))


def format_score_change(score: float | None, compared: EvaluatorComparison | None) -> str:
    """Format mean scores with their change: ``0.95 \u2192 0.91 (\u22120.04, \u22120.07 to 0)``.

    They are those of the checks that both runs evaluated; without any, ``score`` is the only one.
    An evaluator that evaluates nothing any more has no score: ``skipped``. Empty without a score.
    """
    if compared is None or compared.both_before is None:
        lost = "" if compared is None else find_lost_status(compared)
        return lost or ("" if score is None else format_score(score))
    after = format_change(compared)
    if " " not in after:
        return after
    return f"{_format_before(compared)} \N{RIGHTWARDS ARROW} {after}"


def format_change(compared: EvaluatorComparison) -> str:
    """Format the mean score now of the checks of both runs: ``0.91 (\u22120.04, \u22120.07 to 0)``.

    The interval is that of the tested checks, so it is left out if others were tested. Without a
    change of at least ``MIN_CHANGE``, there is only the score.
    """
    if compared.both_before is None or compared.both_after is None:
        return find_lost_status(compared)
    change = compared.both_after - compared.both_before
    if abs(change) < MIN_CHANGE:
        return format_score(compared.both_after)
    _, shown, difference = format_score_triple(compared.both_before, compared.both_after)
    low, high = compared.change_low, compared.change_high
    interval = ""
    if compared.pairs == compared.in_both and low is not None and high is not None:
        interval = f", {format_signed(low)} to {format_signed(high)}"
    return f"{shown} ({difference}{interval})"


def format_means(before: float | None, compared: EvaluatorComparison) -> str:
    """Format ``0.996 \u2192 0.902``, the mean scores of the checks of both runs; "" without them.

    An evaluator that evaluates nothing any more has no score now: ``1 \u2192 skipped``.
    """
    if before is None:
        return ""
    if compared.both_after is not None:
        return format_score_pair(before, compared.both_after)
    lost = find_lost_status(compared)
    return lost and f"{format_score(before)} \N{RIGHTWARDS ARROW} {lost}"


def _format_before(compared: EvaluatorComparison) -> str:
    """Format the mean score in the baseline, with the decimals of ``format_change``."""
    old, new = compared.both_before, compared.both_after
    if old is None or new is None or abs(new - old) < MIN_CHANGE:
        return "-" if old is None else format_score(old)
    return format_score_triple(old, new)[0]


def format_outcome(compared: EvaluatorComparison, missing: frozenset[str]) -> str:
    """Format what changed: ``2 newly failing, 1 fixed; inconclusive``.

    Args:
        missing: as for ``drop_missing``; the outcome is without these cases.
    """
    label = label_shown(drop_missing(compared, missing))
    return "; ".join(filter(None, (format_groups(compared), label)))


def label_shown(compared: EvaluatorComparison) -> str:
    """Name the outcome for a table; unchanged where only whole cases are missing."""
    is_harmless = compared.outcome in ("pass", "non-comparable", "insufficient-data")
    changed = compared.worse or compared.lower_score or compared.fixed
    if _is_same_in_both(compared) and is_harmless and not changed:
        return UNCHANGED
    return label_outcome(compared)


def _is_same_in_both(compared: EvaluatorComparison) -> bool:
    """Whether the mean score of the checks that both runs evaluated is unchanged."""
    old, new = compared.both_before, compared.both_after
    return old is not None and new is not None and abs(new - old) < MIN_CHANGE


def list_remarks(
    comparison: Comparison,
    *,
    with_outcomes: bool = True,
    with_numbers: bool = True,
    reasons: Sequence[str] = (),
) -> Iterator[str]:
    """Yield remarks that have no column in the table.

    Args:
        with_outcomes: whether to describe what got worse, and each outcome other than a pass, and
            to count the checks by class.
        with_numbers: whether to say how to read the mean scores and the tests, and to count the
            checks by class also for each evaluator.
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
    if with_numbers and (zeros := describe_zeros(comparison.evaluators)):
        yield zeros
    if with_numbers:
        yield from _list_notes_on_numbers(comparison)
    if with_outcomes:
        yield from _list_classes(comparison, by_evaluator=with_numbers)


def _list_other_configs(comparison: Comparison) -> Iterator[str]:
    """Yield which configs have another name now, and which may have one."""
    for old, new in comparison.renamed_configs.items():
        yield (
            f"`{format_path(new)}` moved from `{format_path(old)}`, with the same evaluators and "
            "cases, and was compared with it"
        )
    gone = [*map(format_path, find_gone_configs(comparison))]
    come = [*map(format_path, find_new_configs(comparison))]
    old, new = (
        ", ".join(f"`{name}`" for name in truncate.truncate_list(names, MAX_NAMES))
        for names in (gone, come)
    )
    if gone:
        yield f"only the baseline has checks of {old}"
    if come:
        moved = ": no removed config has the same evaluators and cases" if gone else ""
        yield f"no baseline for {new}{moved}"


def find_gone_configs(comparison: Comparison) -> tuple[str, ...]:
    """Find the configs that have checks only in the baseline."""
    of = _count_by_config(comparison)
    return tuple(name for name, classes in of.items() if classes.removed == classes.total)


def find_new_configs(comparison: Comparison) -> tuple[str, ...]:
    """Find the configs that have checks only in this run."""
    of = _count_by_config(comparison)
    return tuple(name for name, classes in of.items() if classes.added == classes.total)


def _count_by_config(comparison: Comparison) -> Mapping[str, CheckClasses]:
    classes: dict[str, CheckClasses] = {}
    for each in comparison.evaluators:
        classes[each.config] = classes.get(each.config, CheckClasses()) + each.classes
    return classes


def _list_outcomes(comparison: Comparison, reasons: Sequence[str]) -> Iterator[str]:
    """Yield what got worse, and outcomes other than a pass: how many cases a test needs once."""
    needed: dict[str, None] = {}
    # The table says which evaluators only one run has.
    for each in filter(_is_in_both, comparison.evaluators):
        name = format_evaluator(each, comparison)
        if each.outcome == "insufficient-data":
            if label_outcome(each) != UNCHANGED:
                needed[each.reason.rpartition("; ")[2]] = None
        elif each.outcome != "pass":
            own = f"{each.evaluator} {describe_outcome(each)}"
            if own not in reasons and f"{each.config}: {own}" not in reasons:
                yield f"{name} {describe_outcome(each)}"
    worse = [change for each in comparison.evaluators for change in each.worse]
    if notes := [*list_change_notes(worse)]:
        yield f"of the checks that passed in the baseline and do not now, {', '.join(notes)}"
    if needed:
        yield f"of cases in both runs, {' or '.join(needed)} to test for significance"


def _list_notes_on_numbers(comparison: Comparison) -> Iterator[str]:
    """Yield how to read the mean scores, the p-values and the power of the tests."""
    yield from _list_allowed_drops(comparison)
    if any(each.adjusted_for > 1 for each in comparison.evaluators):
        yield (
            "p-values are adjusted for the number of required evaluators of a config (Holm's "
            "method); intervals are not"
        )
    detectable = ", ".join(
        f"{format_score(each.detectable_drop)} ({format_evaluator(each, comparison)})"
        for each in comparison.evaluators
        if each.detectable_drop is not None and each.after is not None
    )
    if detectable:
        yield f"smallest drop that this run would detect with 80% probability: {detectable}"


def _list_allowed_drops(comparison: Comparison) -> Iterator[str]:
    """Yield with what the drops of the mean scores were compared."""
    allowed: dict[float | None, dict[str, None]] = {}
    for each in comparison.evaluators:
        if each.p_value is not None:
            allowed.setdefault(each.max_regression, {})[format_path(each.config)] = None
    for limit, configs in allowed.items():
        of = f" in {', '.join(truncate.truncate_list([*configs], MAX_NAMES))}"
        where = of if len(allowed) > 1 else ""
        if limit is None:
            yield f"drops are tested against 0 and only reported: no max_regression is set{where}"
        else:
            yield f"drops are tested against max_regression {limit:g}{where}"


def describe_zeros(evaluators: Iterable[EvaluatorComparison]) -> str:
    """Say which checks count as 0 in the mean scores that are compared; "" if none do."""
    zeros = [*dict.fromkeys(chain.from_iterable(map(_list_zeros, evaluators)))]
    if not zeros:
        return ""
    return (
        f"in the tested mean scores, {' and '.join(zeros)} that passed in the baseline count as 0"
    )


def _list_zeros(compared: EvaluatorComparison) -> list[str]:
    """Name the checks that are no longer evaluated and count as 0 in the mean score now.

    Removed ones are left out of it.
    """
    classes = compared.classes
    is_mean = compared.before is not None and compared.after is not None
    if not is_mean or compared.pairs <= classes.compared:
        return []
    lost = {each.status for each in compared.no_longer_evaluated}
    found = [f"{status} checks" for status in ("errored", "skipped") if status in lost]
    if "unrecorded" in lost:
        found.append("checks without a recorded run")
    return found


def _is_in_both(compared: EvaluatorComparison) -> bool:
    classes = compared.classes
    return classes.total not in (classes.added, classes.removed)


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


def _list_classes(comparison: Comparison, *, by_evaluator: bool) -> Iterator[str]:
    """Yield the number of checks by class: in total, and of evaluators with other than compared."""
    if not comparison.evaluators:
        return
    whole = (*find_gone_configs(comparison), *find_new_configs(comparison))
    differing = [
        f"{format_evaluator(each, comparison)} {_format_classes(each.classes)}"
        for each in comparison.evaluators
        if each.config not in whole
        and each.classes.total > each.classes.compared + each.classes.not_evaluated
    ]
    shows_own = by_evaluator and len(comparison.evaluators) > 1 and differing
    own = f" ({'; '.join(differing)})" if shows_own else ""
    has_advisory = any(not each.required for each in comparison.evaluators)
    which = "required and advisory checks" if has_advisory else "checks"
    gone = sum(sum(count_missing(each).values()) for each in comparison.evaluators)
    verb = "counts" if gone == 1 else "count"
    listed = f", of which {gone:,} {verb} as {NO_LONGER_EVALUATED}"
    removed = listed if 0 < gone < comparison.classes.removed else ""
    # Removed checks are the last class.
    yield f"{which} of both runs: {_format_classes(comparison.classes)}{removed}{own}"


def _format_classes(classes: CheckClasses) -> str:
    """Format the classes that have checks: ``32 compared, 8 changed``."""
    return ", ".join(f"{count:,} {name}" for name, count in count_by_class(classes).items())


def count_by_class(classes: CheckClasses) -> dict[str, int]:
    """Count the checks of each class that has any, by its name in sentences."""
    return {_CLASS_WORDS.get(name, name): count for name, count in asdict(classes).items() if count}


def list_classes(classes: CheckClasses) -> Iterator[tuple[str, int, str]]:
    """Yield the name, the number of checks and the meaning of each class that has any."""
    for name, count in asdict(classes).items():
        if count:
            yield _CLASS_WORDS.get(name, name), count, _CLASS_MEANINGS[name]


def group_changes(comparison: Comparison) -> list[tuple[str, str, str, list[str]]]:
    """Group the checks that changed.

    Returns:
        Name of the group, evaluator, change of the score, and the ids of the cases.
    """
    cases: dict[tuple[str, str, str], list[str]] = {}
    for name, read in _GROUPS.items():
        for compared in comparison.evaluators:
            evaluator = format_evaluator(compared, comparison)
            for each in read(compared):
                note = format_note(each)
                change = f"{describe_change(each)}{note and f'; {note}'}"
                cases.setdefault((name, evaluator, change), []).append(each.case)
    return [(*key, names) for key, names in cases.items()]


_GROUPS: Final[dict[str, Callable[[EvaluatorComparison], tuple[CheckChange, ...]]]] = {
    NEWLY_FAILING: lambda each: each.newly_failing,
    NO_LONGER_EVALUATED: lambda each: each.no_longer_evaluated,
    "lower score": lambda each: each.lower_score,
    FIXED: lambda each: each.fixed,
}


def describe_change(change: CheckChange) -> str:
    """Describe the change of a check: ``1 → 0.5``, ``1 → skipped``, ``new → 0.5``.

    Where there is no score, it is the status.
    """
    is_scored = change.status in SCORED_STATUSES
    if is_scored and change.before is not None and change.after is not None:
        return format_score_pair(change.before, change.after)
    before = change.status_before or "new"
    status = "no recorded run" if change.status == "unrecorded" else change.status
    shown = before if change.before is None else format_score(change.before)
    after = change.after if is_scored else None
    return f"{shown} \N{RIGHTWARDS ARROW} {status if after is None else format_score(after)}"


def format_note(change: CheckChange) -> str:
    """Format what else to know about a change; empty for nothing."""
    if change.fails_before:
        return "the baseline also fails with the current evaluators"
    return "its evaluator or eval case changed" if change.check_class == "changed" else ""
