"""The verdict in the words that all reports show, and the warnings that a passed gate leaves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.gate.comparison import (
    NEWLY_FAILING,
    NO_LONGER_EVALUATED,
    list_changes,
    list_worse,
)
from agentci.gate.policy_changes import count_changes, describe_unknown_base
from agentci.gate.rules import (
    describe_missing,
    find_coverage,
    list_changed_facts,
    list_changed_words,
    list_possible_errors,
)
from agentci.model.result import Report
from agentci.model.trace import PRINTED_KEY, concerns_reviewers
from agentci.model.values import IdentityKey
from agentci.reports.case_counts import has_uncounted_errors, list_missing_cases
from agentci.reports.case_states import find_changes, make_check_key
from agentci.reports.changed_checks import count_tool_changes
from agentci.reports.changed_runs import list_unseen
from agentci.reports.groups_and_totals import (
    case_key,
    filter_by_status,
    group_warnings,
    is_invalid_input,
)
from agentci.reports.outcomes import (
    list_case_outcomes,
    list_large_increases,
    summarize_metrics,
)

# Warnings that the verdict names besides those of its main reason.
MAX_NAMED: Final = 2


def list_verdict_warnings(report: Report) -> tuple[str, ...]:
    """List what a reviewer must look at although the gate passed, the most serious kind first.

    Empty for a gate that failed, which a reviewer looks at anyway.
    """
    return _list_verdict_warnings(IdentityKey(report))


# Each report format shows them, some in several places.
@lru_cache(maxsize=1)
def _list_verdict_warnings(report: IdentityKey[Report]) -> tuple[str, ...]:
    if report.value.decision.is_failure:
        return ()
    return tuple(each for find in _FINDERS for each in find(report.value))


def format_conclusion(report: Report) -> str:
    """Format the decision as a short headline that names the shard, if any.

    A gate with warnings ``passed with 3 warnings``.
    """
    decision = report.decision
    shard = "" if report.shard_info is None else str(report.shard_info.shard)
    warnings = list_verdict_warnings(report)
    warned = f" with {format_count(len(warnings), 'warning')}" if warnings else ""
    if not (decision.passed or decision.is_failure):
        return f"{shard or 'gate'} passed{warned}".capitalize()
    where = f" in {shard}" if shard else ""
    if is_invalid_input(report):
        return f"Invalid input{where}"
    return f"Quality gate {'passed' if decision.passed else 'failed'}{where}{warned}"


def list_reasons(report: Report) -> tuple[str, ...]:
    """List the reasons to show; the first one is left out where the problems already tell it.

    The main reason of a passed gate names its most serious warnings.
    """
    if is_invalid_input(report):
        return report.decision.reasons[1:]
    main = _make_main_reason(report)
    first = _join([main, *_name_warnings(report, main)])
    return tuple(filter(None, (first, *report.decision.reasons[1:])))


def _make_main_reason(report: Report) -> str:
    """Return the main reason, after the number of the cases that newly fail, if that decides."""
    decision = report.decision
    main = next(iter(decision.reasons), "")
    if not (decision.is_failure and decision.fail_on == "failed" and report.complete):
        return main
    cases = [each for each in list_case_outcomes(report) if each.state == "new_failure"]
    required = {each.id for each in report.results if each.evaluator.required}
    if NEWLY_FAILING in main or all(required.isdisjoint(each.new) for each in cases):
        return main
    return _join([f"{format_count(len(cases), 'case')} {NEWLY_FAILING}", main])


def list_further_reasons(report: Report) -> tuple[str, ...]:
    """List the reasons but the main one, and but those that the numbers of cases say."""
    unrecorded = list_missing_cases(report)["unrecorded"]
    coverage = find_coverage(report.gates)
    counted = [
        describe_missing(cases)
        for cases in (coverage.missing, coverage.allowed)
        if {*cases} <= {*unrecorded}
    ]
    has_errors = has_uncounted_errors(report)
    return tuple(
        each
        for each in list_reasons(report)[1:]
        if each not in counted and (has_errors or each not in report.decision.errored)
    )


def format_title(report: Report) -> str:
    """Format the decision and its main reason: "Quality gate passed: 21 checks passed"."""
    reasons = list_reasons(report)
    return f"{format_conclusion(report)}{f': {reasons[0]}' if reasons else ''}"


def split_title(report: Report, width: int) -> tuple[str, str]:
    """Split the title if it is longer than ``width``, so that its warnings are in the first part.

    Returns:
        The title, and the rest of the main reason: what it has in brackets, or, if the title would
        still be longer than two lines, all but its first clause. Empty if nothing is left out.
    """
    title = format_title(report)
    main = "" if is_invalid_input(report) else _make_main_reason(report)
    if len(title) <= width:
        return title, ""
    clauses = _split_clauses(main)
    split = [_split_brackets(each) for each in clauses]
    bracketed = [(whole, inner) for whole, (_, inner) in zip(clauses, split, strict=True) if inner]
    start, named = f"{format_conclusion(report)}: ", _name_warnings(report, main)
    short = start + _join([*(first for first, _ in split), *named])
    if len(short) > 2 * width and len(clauses) > 1:
        return start + _join([split[0][0], *named]), _join([split[0][1], *clauses[1:]])
    if not bracketed:
        return title, ""
    [(_, inner), *others] = bracketed
    return short, _join(whole for whole, _ in bracketed) if others else inner


def _split_clauses(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    first, *others = text.split(", ")
    clauses = [first]
    for part in others:
        if clauses[-1].count("(") > clauses[-1].count(")"):
            clauses[-1] += f", {part}"
        else:
            clauses.append(part)
    return clauses


def _split_brackets(clause: str) -> tuple[str, str]:
    """Split a clause before the brackets at its end, which ``; reported only`` may follow.

    One word in them, such as "removed", stays, as it would say nothing elsewhere.
    """
    first, _, inner = clause.partition(" (")
    depth = 1
    for at, character in enumerate(inner):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            end = inner[at + 1 :]
            text = f"{inner[:at]}{end}"
            return (first, text) if " " in text and end[:1] in ("", ";") else (clause, "")
    return clause, ""


def _name_warnings(report: Report, main: str) -> Sequence[str]:
    """Name the most serious warnings that the main reason does not name."""
    unnamed = [each for each in list_verdict_warnings(report) if each not in main]
    return truncate.truncate_list(unnamed, MAX_NAMED)


def _join(clauses: Iterable[str]) -> str:
    return ", ".join(filter(None, clauses))


def _find_ignored(report: Report) -> Iterator[str]:
    """Failures that ``fail-on`` only reports."""
    yield from report.decision.reported_only


def _find_worse(report: Report) -> Iterator[str]:
    """Required checks that do not pass any more, and evaluators that regressed otherwise."""
    if report.comparison is None:
        return
    yield from list_worse(report.comparison)
    regressed = sum(
        each.required and each.outcome == "fail" and not each.worse
        for each in report.comparison.evaluators
    )
    if regressed:
        yield f"{format_count(regressed, 'evaluator')} regressed"


def _find_policy_changes(report: Report) -> Iterator[str]:
    if report.policy is None:
        return
    if report.policy.unavailable:
        yield describe_unknown_base(report.policy)
    yield from count_changes(report.policy.loosened)


def _find_advisory(report: Report) -> Iterator[str]:
    """Advisory checks that do not pass any more."""
    compared = report.comparison.evaluators if report.comparison else ()
    for name, count, _ in list_changes([each for each in compared if not each.required]):
        if name in (NEWLY_FAILING, NO_LONGER_EVALUATED):
            yield f"{format_count(count, 'advisory check')} {name}"


def _find_errors(report: Report) -> Iterator[str]:
    """Errors that the policy allows, without those that passed in the baseline."""
    worse = find_changes(report)
    errored = filter_by_status(report.results, "errored")
    if count := sum(make_check_key(each) not in worse for each in errored):
        yield format_count(count, "errored check")


def _find_changed_tools(report: Report) -> Iterator[str]:
    for what, count, _ in count_tool_changes(report):
        yield f"{format_count(count, 'case')} {what}"


def _find_large_increases(report: Report) -> Iterator[str]:
    yield from list_large_increases(summarize_metrics(report))


def _find_other_tools(report: Report) -> Iterator[str]:
    """Tools that a case newly calls, or no longer, if no other list of what got worse has it."""
    if report.comparison is None or report.comparison.no_baseline:
        return
    kinds = [{call.kind for call in each.changed_calls} for each in list_unseen(report)]
    if count := sum("new_tool" in each for each in kinds):
        yield f"{format_count(count, 'case')} with a newly called tool"
    if count := sum("lost_tool" in each and "new_tool" not in each for each in kinds):
        yield f"{format_count(count, 'case')} in which a tool is no longer called"


def _find_possible_errors(report: Report) -> Iterator[str]:
    """Results of tools that look like errors and pass, of cases that no baseline shows."""
    cases = {
        case_key(each.case)
        for each in report.results
        if each.evaluator.required and each.case.changes is None and list_possible_errors(each)
    }
    if cases:
        yield f"{format_count(len(cases), 'case')} with a possible tool error"


def _find_other_facts(report: Report) -> Iterator[str]:
    """Answers that pass although they have other facts than expected, or than in the baseline.

    Those that are as in the baseline are left out. Without one, other words than expected are no
    warning, as answers to the same question vary.
    """
    expected, before = 0, 0
    for each in list_case_outcomes(report):
        changes = each.summary.changes
        required = [result for result in each.results if result.evaluator.required]
        facts = any(map(list_changed_facts, required))
        words = facts or any(map(list_changed_words, required))
        if facts if each.answer_changed is None else words and each.answer_changed:
            expected += 1
        elif changes is not None and changes.facts:
            before += 1
    if expected:
        yield f"{format_count(expected, 'case')} with other facts than expected"
    if before:
        yield f"{format_count(before, 'case')} with other facts than in the baseline"


def _find_printed_keys(report: Report) -> Iterator[str]:
    if count := _count_warned_cases(report, lambda text: text.startswith(PRINTED_KEY)):
        yield f"{format_count(count, 'case')} with a printed key"


def _find_run_warnings(report: Report) -> Iterator[str]:
    """Other warnings about recorded runs."""
    if count := _count_warned_cases(report, lambda text: not text.startswith(PRINTED_KEY)):
        yield f"{format_count(count, 'case')} with a warning"


def _count_warned_cases(report: Report, matches: Callable[[str], bool]) -> int:
    return len(
        {
            case_key(case)
            for text, cases in group_warnings(report).items()
            if concerns_reviewers(text) and matches(text)
            for case in cases
        }
    )


def _find_problems(report: Report) -> Iterator[str]:
    if count := sum(each.severity == "warning" for each in report.problems):
        yield format_count(count, "problem")


_FINDERS: Final[tuple[Callable[[Report], Iterator[str]], ...]] = (
    _find_ignored,
    _find_worse,
    _find_printed_keys,
    _find_policy_changes,
    _find_advisory,
    _find_errors,
    _find_changed_tools,
    _find_other_tools,
    _find_possible_errors,
    _find_other_facts,
    _find_large_increases,
    _find_run_warnings,
    _find_problems,
)
