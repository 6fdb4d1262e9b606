"""The failed cases of the comment and the summary, one per cause, with the first difference."""

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.escape import markdown_code, markdown_fence, markdown_prose
from agentci._util.text.format import format_count, format_score, format_score_pair
from agentci.model.result import CheckResult, Report
from agentci.reports import check_text, report_format, sections
from agentci.reports.case_outcomes import CaseOutcome, list_case_outcomes, rank_problem
from agentci.reports.comparison import MIN_CHANGE, count_gone
from agentci.reports.contents import show_case
from agentci.reports.first_difference import format_first_difference
from agentci.reports.tool_calls import find_unmatched_turns

MAX_CASES: Final = 20
# Evaluators of each case.
MAX_REASONS: Final = 3
MAX_LOWER_SCORES: Final = 5

# What metrics with an expected answer or expected calls write about a turn.
_QUOTED_SIDES: Final = re.compile(r"^(turn \d+): expected .*$", re.DOTALL)

_STATES: Final = (
    ("new_failure", "new failure", "new failures"),
    ("error", "error", "errors"),
    ("still_failing", "still failing", "still failing"),
    ("fixed", "fixed", "fixed"),
)


def list_failed_cases(report: Report) -> tuple[list[CaseOutcome], list[CaseOutcome]]:
    """List the cases with failed checks: those that are new, and those that failed before."""
    outcomes = list_case_outcomes(report)
    failed = [each for each in outcomes if any(r.status == "failed" for r in each.results)]
    known = [each for each in failed if each.state == "still_failing"]
    return [each for each in failed if each.state != "still_failing"], known


def format_before(result: CheckResult, report: Report) -> str:
    """Format the score of a check in the baseline, else its status; empty if it has none."""
    before = report.baseline.get(result.id)
    if before is None:
        return ""
    return before.status if before.score is None else format_score(before.score)


def group_by_cause(outcomes: Sequence[CaseOutcome]) -> list[list[CaseOutcome]]:
    """Group cases that fail for the same reasons.

    Groups with the most cases come first, then those with the most failures, then the worst.
    """
    groups: dict[int | None, list[CaseOutcome]] = {}
    for each in outcomes:
        groups.setdefault(each.cluster, []).append(each)
    for group in groups.values():
        group.sort(key=lambda case: rank_problem(case.problems[0]))
    return sorted(
        groups.values(),
        key=lambda group: (
            -len(group),
            -len(group[0].problems),
            rank_problem(group[0].problems[0]),
        ),
    )


class LowerScore(Struct, frozen=True):
    """A check that passes as in the baseline, with a lower score."""

    result: CheckResult
    before: float
    after: float


def list_lower_scores(report: Report) -> list[LowerScore]:
    """List the checks whose score fell although they still pass: largest drop first."""
    found: list[LowerScore] = []
    for result in report.results if report.baseline else ():
        before, after = report.baseline.get(result.id), result.score
        if before is None or {result.status, before.status} != {"passed"}:
            continue
        if before.score is None or after is None or result.evaluator.better == "lower":
            continue
        if before.score - after >= MIN_CHANGE:
            found.append(LowerScore(result, before.score, after))
    return sorted(found, key=lambda each: each.after - each.before)


def make_lower_scores_section(report: Report, report_url: str) -> sections.Section:
    """Make the folded section of the checks whose score fell although they still pass."""
    found = list_lower_scores(report)
    section = sections.Section(
        name="comparison",
        title="",
        noun="lower score",
        blocks=(
            f"- {format_case_link(each.result.case.id, report_url)}, "
            f"{markdown_code(each.result.evaluator.name)}: "
            f"{format_score_pair(each.before, each.after)}\n"
            for each in found[:MAX_LOWER_SCORES]
        ),
        total=min(len(found), MAX_LOWER_SCORES),
        share=0.05,
    )
    checks = format_count(len(found), "check")
    shown = ", the largest drops" if len(found) > MAX_LOWER_SCORES else ""
    return sections.fold_section(section, f"Score fell, still passing: {checks}{shown}")


def format_changes(report: Report) -> str:
    """Format how many cases changed: ``**2 new failures**, 1 fixed, 3 changed answers``.

    Checks that passed and are skipped or removed now are counted beside the cases.
    """
    if not report.baseline:
        return ""
    outcomes = list_case_outcomes(report)
    counts = [
        (sum(each.state == state for each in outcomes), one, many) for state, one, many in _STATES
    ]
    counts.append(
        (sum(each.answer_changed is True for each in outcomes), "changed answer", "changed answers")
    )
    texts = [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]
    if report.comparison is not None:
        texts += count_gone(report.comparison)
    if not texts:
        return "No case changed against the baseline."
    if counts[0][0]:
        texts[0] = f"**{texts[0]}**"
    return f"Against the baseline: {', '.join(texts)}."


def render_counts(report: Report, counts: str) -> str:
    """Render on one line how many cases changed, and how the checks ended."""
    return f"{' '.join(filter(None, (format_changes(report), counts)))}\n\n"


def make_case_url(report_url: str, case: str) -> str:
    """Return the URL of a case in ``report.html``; empty if the page's URL is not known."""
    return f"{report_url}#/case/{quote(case, safe='')}" if report_url else ""


def make_failure_sections(
    report: Report, *, unfolded: int, report_url: str
) -> Iterator[sections.Section]:
    """Yield the failed cases, one per cause: those that are new, then those that failed before.

    Args:
        unfolded: number of causes that are not folded.
        report_url: of ``report.html``, to link cases; empty if it is not known.
    """
    new, known = list_failed_cases(report)
    causes = group_by_cause(new)
    title = "### New failures\n\n" if report.baseline else "### Failures\n\n"
    yield _make_cases(causes[:unfolded], report, report_url, title, share=0.25)
    more = causes[unfolded:]
    if more:
        section = _make_cases(more, report, report_url, "", share=0.15)
        noun = "more new failure" if report.baseline else "more failed case"
        yield sections.fold_section(section, format_count(sum(map(len, more)), noun))
    if known:
        section = _make_cases(group_by_cause(known), report, report_url, "", share=0.1)
        count = format_count(len(known), "case")
        yield sections.fold_section(section, f"Still failing, as in the baseline: {count}")


def make_fixed_section(report: Report, report_url: str) -> sections.Section:
    """Make the folded section of the cases that failed in the baseline and pass now."""
    fixed = [each.summary.id for each in list_case_outcomes(report) if each.state == "fixed"]
    names = report_format.list_case_names(fixed, lambda case: format_case_link(case, report_url))
    section = sections.Section(
        name="comparison",
        title="",
        noun="line",
        blocks=iter([f"{names}\n"] if fixed else []),
        total=min(len(fixed), 1),
        share=0.05,
    )
    return sections.fold_section(section, f"Fixed: {format_count(len(fixed), 'case')}")


def _make_cases(
    causes: Sequence[Sequence[CaseOutcome]],
    report: Report,
    report_url: str,
    title: str,
    *,
    share: float,
) -> sections.Section:
    return sections.Section(
        name="failures",
        title=title,
        noun="failure cause",
        blocks=(_render_case(group, report, report_url) for group in causes),
        total=len(causes),
        max_items=MAX_CASES,
        share=share,
    )


def format_case_link(case: str, report_url: str) -> str:
    """Format the id of a case, linked to its page in ``report.html`` if the URL is known."""
    url = make_case_url(report_url, case)
    return f"[{markdown_code(case)}]({url})" if url else markdown_code(case)


def _render_case(group: Sequence[CaseOutcome], report: Report, report_url: str) -> str:
    """Render a case with its failed checks, its first difference and the cases like it."""
    first, *others = group
    question = next((turn.question for turn in first.summary.dialogue if turn.question), "")
    heading = f"**{format_case_link(first.summary.id, report_url)}**"
    if question and question != first.summary.id:
        heading += f" \u201c{markdown_prose(question)}\u201d"
    problems = first.problems
    content = show_case(report, first.results).content
    difference = format_first_difference(content, names_sides=True)
    lines = [
        _render_problem(each, report, has_difference=bool(difference))
        for each in problems[:MAX_REASONS]
    ]
    if len(problems) > MAX_REASONS:
        lines.append(f"- and {format_count(len(problems) - MAX_REASONS, 'more check')}\n")
    if others:
        names = report_format.list_case_names(
            [each.summary.id for each in others], lambda case: format_case_link(case, report_url)
        )
        more = format_count(len(others), "more case")
        verb = "fails" if len(others) == 1 else "fail"
        lines.append(f"- {more} {verb} in the same way: {names}\n")
    fence = markdown_fence("\n".join(difference), language="diff") + "\n" if difference else ""
    return f"{heading}\n\n{''.join(lines)}\n{fence}"


def _render_problem(result: CheckResult, report: Report, *, has_difference: bool) -> str:
    """Render a check as ``- `tone` 1 → **0.2**: the reason``.

    Args:
        has_difference: whether the first difference is shown, too: a metric's reason that quotes
            both sides only repeats it.
    """
    was = format_before(result, report)
    now = (
        format_score(result.score, result.evaluator.threshold)
        if result.status == "failed" and result.score is not None
        else result.status
    )
    change = f"{was} \N{RIGHTWARDS ARROW} **{now}**" if was else f"**{now}**"
    advisory = "" if result.evaluator.required else " (advisory)"
    lines = check_text.split_lines(
        check_text.format_reason(result) or check_text.format_headline(result)
    )
    reason = truncate.join_first_and_last(lines)
    if has_difference and result.evaluator.type == "builtin":
        judgement = result.judgement
        calls = judgement is not None and find_unmatched_turns(judgement.details)
        what = "the tool calls differ" if calls else "the answer differs"
        reason = _QUOTED_SIDES.sub(rf"\1: {what}", reason)
    reason = markdown_prose(reason)
    return f"- {markdown_code(result.evaluator.name)}{advisory} {change}: {reason}\n"
