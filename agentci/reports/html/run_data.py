"""JSON for the page's script about the whole run: its verdict, evaluators and comparison.

Also what the policy loosens, and the messages. What concerns one case is in ``data``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict

from agentci._util.text.change import ARROW
from agentci.gate.comparison import (
    MISSING,
    UNCHANGED,
    count_missing,
    find_lost_status,
    format_p_value,
)
from agentci.model.case import CaseSummary
from agentci.model.gate import Comparison, EvaluatorComparison
from agentci.model.requests import EvaluatorIdentity
from agentci.model.result import SCORED_STATUSES, Report
from agentci.model.values import JsonObject
from agentci.reports import comparison as baseline_text
from agentci.reports.case_counts import find_missing, list_missing_cases
from agentci.reports.case_states import CASE_CLASSES
from agentci.reports.changed_checks import LostChecks
from agentci.reports.check_text import format_cause
from agentci.reports.groups_and_totals import (
    EvaluatorChecks,
    choose_mean,
    filter_by_status,
    format_counts,
    format_mean_score,
    format_pass_rate,
    format_path,
    format_problem_text,
    format_spending,
    get_verdict,
    group_warnings,
    is_invalid_input,
)
from agentci.reports.outcomes import ReportMetrics, summarize_repeats
from agentci.reports.policy import choose_title, format_cells, list_columns, list_policy_remarks
from agentci.reports.policy_effects import explain_policy
from agentci.reports.sections import choose_status
from agentci.reports.verdict import (
    format_conclusion,
    list_further_reasons,
    list_reasons,
    list_verdict_warnings,
)

MAX_CHANGES: Final = 50
MAX_POLICY_NOTES: Final = 2
MAX_CASE_NAMES: Final = 20


class Block(NamedTuple):
    """Where the content of a case is: the number of the block, and the position in it."""

    number: int
    position: int


_STATUSES: Final = {
    "passed": "passed", "partial": "passed", "failed": "failed",
    "error": "errored", "invalid": "errored",
}  # fmt: skip


def describe_verdict(report: Report) -> JsonObject:
    """Describe the decision with its reasons, and where the run comes from."""
    policies = [each.policy for each in report.gates]
    overall = {each.overall.min_pass_rate for each in policies}
    has_parts = any(
        own.min_pass_rate is not None for each in policies for own in each.evaluators.values()
    )
    return {
        "verdict": {
            # With warnings it looks like a case with lost checks.
            "status": "passed lost"
            if list_verdict_warnings(report)
            else _STATUSES[get_verdict(report.decision)],
            "title": format_conclusion(report),
            "reasons": [*list_reasons(report)[:1], *list_further_reasons(report)],
            "notes": report.decision.unlisted_notes,
            "counts": format_counts(report),
            "is_invalid": is_invalid_input(report),
            "incomplete": not report.complete,
            "required": next(iter(overall)) if len(overall) == 1 and not has_parts else None,
            "spending": format_spending(report.spending),
        },
        "run": {**drop_empty(asdict(report.run)), "commit": report.commit},
    }


def describe_time(now: int = 0, before: int = 0) -> JsonObject:
    """Return when the run was recorded, and how much earlier the baseline, from a minute on."""
    minutes = round(abs(now - before) / 60_000) if now and before else 0
    units = {"min": (1, 120), "h": (60, 2880), "days": (1440, inf)}
    unit = next(name for name, (_, limit) in units.items() if minutes < limit)
    word = "older" if now > before else "newer"
    age = f", {round(minutes / units[unit][0]):,} {unit} {word}" if minutes else ""
    return drop_empty({"now": now or None, "age": age})


def name_models(metrics: ReportMetrics) -> str:
    """Format ``model small → large``, without the first if the baseline has the same."""
    names = [", ".join(each[:3]) for each in (metrics.models_before, metrics.models) if each]
    return f"model {f' {ARROW} '.join(names)}" if names else ""


def describe_evaluator(config: str, evaluator: EvaluatorIdentity) -> JsonObject:
    """Describe what an entry of a config sets."""
    return {
        "config": format_path(config),
        "name": evaluator.name,
        "type": evaluator.type,
        "criterion": evaluator.criterion,
        "threshold": evaluator.threshold,
        "required": evaluator.required,
        "weight": evaluator.weight,
        "place": str(evaluator.place),
    }


def describe_column(checks: EvaluatorChecks, report: Report) -> JsonObject:
    """Describe one evaluator of one config over all its cases."""
    result = checks.representative
    comparison = report.comparison
    compared = next(
        (
            each
            for each in (comparison.evaluators if comparison else ())
            if (each.config, each.evaluator) == (result.config, result.evaluator.name)
        ),
        None,
    )
    return {
        "config": format_path(result.config),
        "name": result.evaluator.name,
        "mean": format_mean_score(choose_mean(checks.totals), checks.stats),
        "pass_rate": format_pass_rate(checks.stats),
        **asdict(checks.totals),
        "status": choose_status(checks, report, compared),
        "both": _count_passed_in_both(checks, report),
        **({} if compared is None else {"baseline": _describe_change(compared, report)}),
    }


def _count_passed_in_both(checks: EvaluatorChecks, report: Report) -> tuple[int, int, int]:
    """Count the checks that both runs evaluated: passed in the baseline, passed now, and all."""
    known = ((report.baseline.get(each.id), each.status) for each in checks.results)
    both = [
        (before.status == "passed", status == "passed")
        for before, status in known
        if before is not None and {before.status, status} <= {*SCORED_STATUSES}
    ]
    return sum(old for old, _ in both), sum(new for _, new in both), len(both)


_NO_TEST: Final = "evaluators with too few cases have neither a test nor an interval"


def describe_baseline(
    report: Report,
    removed: Mapping[tuple[str, str], list[list[Any]]],
    blocks: Mapping[str, Block],
) -> JsonObject:
    """Describe the comparison.

    Args:
        removed: checks of cases that only the baseline has, by config and case.
        blocks: where the contents of these cases are.
    """
    comparison = report.comparison
    if comparison is None:
        return {}
    outcomes = {each.outcome for each in comparison.evaluators}
    missing = _list_missing_cases(report, removed, blocks)
    return {
        "baseline": {
            "name": comparison.baseline,
            "commit": comparison.commit,
            "branch": comparison.branch,
            "missing": comparison.no_baseline,
            "classes": list(baseline_text.list_classes(comparison.classes)),
            "outcomes": _count_outcomes(report, comparison),
            "outcome_head": _head_outcomes(comparison),
            "removed": [
                {
                    "config": format_path(each.config),
                    "name": each.evaluator,
                    "isRemoved": True,
                    "baseline": _describe_change(each, report),
                }
                for each in comparison.evaluators
                if each.classes.removed == each.classes.total
            ],
            **drop_empty(
                {
                    "removed_cases": missing[:MAX_CHANGES],
                    "more_removed_cases": max(0, len(missing) - MAX_CHANGES) or None,
                    "rescored": comparison.rescored or None,
                }
            ),
            "remarks": [
                *([_NO_TEST] if "insufficient-data" in outcomes else []),
                *baseline_text.list_remarks(comparison, with_outcomes=False),
            ],
        }
    }


def _describe_change(compared: EvaluatorComparison, report: Report) -> JsonObject:
    """Describe a comparison; missing cases are among the changed checks, but no other outcome."""
    own = baseline_text.drop_missing(compared, find_missing(report))
    is_gone = compared.classes.removed == compared.classes.total
    is_tested = compared.pairs == compared.in_both
    before = compared.before if is_gone else compared.both_before
    return {
        "before": before,
        "means": baseline_text.format_means(before, compared),
        "low": compared.change_low if is_tested else None,
        "high": compared.change_high if is_tested else None,
        "required": compared.required,
        "checks": compared.classes.total,
        "both": compared.in_both,
        "allowed": compared.max_regression,
        "lost": find_lost_status(compared),
        "changed": baseline_text.format_groups(compared),
        "p": _format_p_value(own),
        "label": baseline_text.label_shown(own),
        "reason": _shorten_outcome(own),
    }


def _format_p_value(compared: EvaluatorComparison) -> str | None:
    """Format the p-value; None without one, or if the reason of the outcome has it."""
    shown = None if compared.p_value is None else format_p_value(compared.p_value)
    return None if shown is None or shown in _shorten_outcome(compared) else shown


def _shorten_outcome(compared: EvaluatorComparison) -> str:
    """Return the reason of an outcome without the means and numbers that have columns."""
    if compared.outcome in ("pass", "fail") or baseline_text.label_shown(compared) == UNCHANGED:
        return ""
    if compared.outcome == "insufficient-data":
        return compared.reason.rpartition("; ")[2]
    return compared.reason.rpartition("), ")[2].removeprefix("but ")


def _count_outcomes(report: Report, comparison: Comparison) -> str:
    """Format ``5 regressed · 1 regressed (advisory) · 2 unchanged``."""
    missing = find_missing(report)
    labels = Counter(
        baseline_text.label_shown(baseline_text.drop_missing(each, missing))
        + baseline_text.ADVISORY * (each.outcome == "fail" and not each.required)
        for each in comparison.evaluators
    )
    return " · ".join(f"{count:,} {label}" for label, count in labels.most_common())


def _head_outcomes(comparison: Comparison) -> str:
    """Head the column of outcomes with what all have in common."""
    limits = {each.max_regression for each in comparison.evaluators}
    limit = next(iter(limits)) if len(limits) == 1 else None
    is_tested = any(_format_p_value(each) for each in comparison.evaluators)
    notes = [
        "" if limit is None else f"max_regression {round(limit, 3):g}",
        "adjusted p" * is_tested,
    ]
    shown = ", ".join(filter(None, notes))
    return f"Outcome ({shown})" if shown else "Outcome"


def group_removed(comparison: Comparison | None) -> dict[tuple[str, str], list[list[Any]]]:
    """Group the checks that only the baseline has, as name and score, by config and case."""
    groups: dict[tuple[str, str], list[list[Any]]] = {}
    for compared in comparison.evaluators if comparison else ():
        for each in compared.no_longer_evaluated:
            if each.status in MISSING:
                found = groups.setdefault((compared.config, each.case), [])
                found.append([compared.evaluator, each.before])
    return groups


def find_missing_contents(report: Report) -> dict[str, int]:
    """Find the contents of the cases that only the baseline has, by their ids."""
    if report.content_limit == "none":
        return {}
    missing = {case for cases in list_missing_cases(report).values() for case in cases}
    found = {
        each.case: each.content
        for each in report.baseline.values()
        if each.case in missing and each.content is not None
    }
    return dict(islice(found.items(), MAX_CHANGES))


def _list_missing_cases(
    report: Report,
    removed: Mapping[tuple[str, str], list[list[Any]]],
    blocks: Mapping[str, Block],
) -> list[tuple[str, list[list[Any]], str, Block | None]]:
    """List the cases that only the baseline has: id, checks that passed, class, and content."""
    words = {
        case: CASE_CLASSES[state].words
        for state, cases in list_missing_cases(report).items()
        for case in cases
    }
    checks: dict[str, list[list[Any]]] = {case: [] for case in words}
    for (_, case), found in removed.items():
        checks.setdefault(case, []).extend(found)
    other = CASE_CLASSES["removed"].words
    return [
        (case, found, words.get(case, other), blocks.get(case)) for case, found in checks.items()
    ]


def describe_lost(lost: Sequence[LostChecks], comparison: Comparison | None) -> JsonObject:
    """Describe the checks that are no longer evaluated: by evaluator, without removed cases."""
    others = [each for each in lost if not each.is_without_cases]
    return {
        # Of required evaluators.
        "missing": sum(
            sum(count_missing(each).values())
            for each in (comparison.evaluators if comparison else ())
            if each.required
        ),
        "checks": [
            {
                "evaluator": each.evaluator,
                "change": each.change,
                "reason": each.reason,
                "checks": each.amount,
                "changed": len(each.changed),
            }
            for each in others[:MAX_CHANGES]
        ],
        "more": len(others[MAX_CHANGES:]),
    }


def describe_policy(report: Report) -> JsonObject:
    """Describe what is looser than in the baseline, and its effect; empty if nothing is."""
    policy = explain_policy(report)
    if policy is None:
        return {}
    remarks = list(list_policy_remarks(policy))
    if not (policy.loosened or remarks):
        return {}
    return {
        "title": choose_title(policy),
        "columns": list_columns(policy),
        "changes": [format_cells(each, policy) for each in policy.loosened[:MAX_CHANGES]],
        # Of a program, only that it differs is known.
        "notes": [
            (
                "Policy loosened" if each.before else each.after[:1].upper() + each.after[1:],
                format_cells(each, policy)[-3],
                each.before,
                each.after,
                each.effect,
            )
            for each in policy.loosened[:MAX_POLICY_NOTES]
        ],
        "omitted": max(0, len(policy.loosened) - MAX_CHANGES),
        "remarks": remarks,
    }


def list_messages(report: Report) -> Iterator[JsonObject]:
    """Yield errors, warnings and notes: of checks, of the input, of runs, and of the decision."""
    for (name, text), found in _group_errors(report).items():
        yield {"level": "error", "place": name, "text": text, **_name_cases(found)}
    for problem in report.problems:
        place = "" if problem.place is None else str(problem.place)
        yield {
            "level": problem.severity,
            "place": place,
            "text": format_problem_text(problem),
        }
    for text, found in group_warnings(report).items():
        yield {"level": "warning", "text": text, **_name_cases(found)}
    for text in report.decision.unlisted_notes:
        yield {"level": "note", "text": text}
    for repeated in summarize_repeats(report.results):
        yield {"level": "note", "place": "Repeats", "text": repeated.line}
    for each in report.provenance:
        where = f"{each.source}: {each.repository} {each.ref}".strip()
        text = f"{each.evaluator} is from {where} at {each.commit or each.digest}"
        yield {"level": "note", "place": "Remote evaluators", "text": text}


def _group_errors(report: Report) -> dict[tuple[str, str], list[CaseSummary]]:
    """Group the cases of errored checks by evaluator and reason."""
    found: dict[tuple[str, str], list[CaseSummary]] = {}
    for each in filter_by_status(report.results, "errored"):
        name = each.evaluator.name + baseline_text.ADVISORY * (not each.evaluator.required)
        found.setdefault((name, format_cause(each)), []).append(each.case)
    return found


def _name_cases(cases: Sequence[CaseSummary]) -> JsonObject:
    return {
        "cases": [each.id for each in cases[:MAX_CASE_NAMES]],
        "more": max(0, len(cases) - MAX_CASE_NAMES),
    }


def drop_empty(members: Mapping[str, Any]) -> dict[str, Any]:
    """Keep 0, but not None, empty texts and lists, and False."""
    return {
        name: value
        for name, value in members.items()
        if value or (value == 0 and value is not False)
    }
