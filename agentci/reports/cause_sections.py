"""Sections of the summary and the comment about failures by cause, changed runs and lost checks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from textwrap import wrap
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.escape import markdown_code, markdown_fence, markdown_prose
from agentci._util.text.format import format_count
from agentci.gate.comparison import NO_LONGER_EVALUATED
from agentci.model.result import Report
from agentci.model.values import replace
from agentci.reports.case_counts import list_missing_cases
from agentci.reports.case_states import UNRECORDED
from agentci.reports.changed_checks import LOST_TITLE, LostChecks, format_lost, join_lost
from agentci.reports.changed_runs import MAX_SHOWN, list_changed_runs
from agentci.reports.check_text import MAX_REASON, format_requirement
from agentci.reports.comparison import ADVISORY
from agentci.reports.differences import RunDifference
from agentci.reports.failures import Cause, FailedCheck, list_causes
from agentci.reports.groups_and_totals import has_several_configs, list_first_names
from agentci.reports.outcomes import CaseOutcome
from agentci.reports.page_height import estimate_height, fit_item, is_one_line
from agentci.reports.sections import (
    Section,
    fold_section,
    format_case_link,
    format_evaluator_names,
    make_case_url,
)
from agentci.reports.short_facts import measure_code
from agentci.reports.tool_calls import WIDTH

MAX_CASES: Final = 20
# Lines of causes for which there is always room.
MIN_CAUSE_LINES: Final = 3
MAX_CAUSE_LINES: Final = 15
# Letters of a line about a cause, and of these, those about what happened if names are long.
MAX_LINE: Final = 110
MIN_FACT: Final = 40
# Letters of the name of an evaluator, which is cut if the line would be two.
MIN_NAME: Final = 12
SEPARATOR: Final = " \N{MIDDLE DOT} "
# Causes that share a line.
MAX_JOINED: Final = 4
# Characters of a text that changed, where there is little room, and where that saves a line.
MAX_SHORT: Final = 40
MIN_SHORT: Final = 24
# Evaluators of each case.
MAX_CHECKS: Final = 3


class Layout(Struct, frozen=True, kw_only=True):
    """How much of the new failures is not folded.

    Attributes:
        causes: number of causes.
        whole: of these, the first that are not short: a short one has only one check, one part of
            its difference, each call and answer in one line, and no numbers of other cases.
        further: number of lines about other causes.
    """

    causes: int
    whole: int = MAX_CASES
    further: int = MAX_CAUSE_LINES


def list_layouts(report: Report, *, causes: int) -> Sequence[Layout]:
    """List the layouts for a report, from the tightest one: one line for each of a few causes.

    Args:
        causes: the most of them.
    """
    others = min(max(len(list_causes(report).new) - 1, 0), MAX_CAUSE_LINES)
    steps = [(0, 0, lines) for lines in range(min(MIN_CAUSE_LINES, others + 1), others + 2)]
    steps += [(1, 0, others), (1, 1, others)]
    for n in range(2, min(causes, others + 1) + 1):
        steps += [(n, n - 1, others), (n, n, others)]
    return [Layout(causes=shown, whole=whole, further=further) for shown, whole, further in steps]


def make_cause_sections(
    report: Report,
    layout: Layout,
    *,
    report_url: str,
    render_details: Callable[[Cause], str] = lambda _: "",
) -> Iterator[Section]:
    """Yield the new failures by cause.

    Args:
        report_url: of ``report.html``, to link cases; empty if it is not known.
        render_details: renders what else to show of a cause.
    """
    causes = list_causes(report)

    def render(group: Sequence[CaseOutcome], *, is_short: bool = False) -> str:
        cause = causes.describe(group)
        shown = _render_cause(cause, report, report_url, is_short=is_short)
        return f"{shown}{render_details(cause)}"

    def render_line(group: Sequence[CaseOutcome]) -> str:
        return _render_line(causes.describe(group), len(group), report_url)

    title = f"### {causes.title}\n\n"
    first, more = causes.new[: layout.causes], causes.new[layout.causes :]
    shown = (render(each, is_short=number >= layout.whole) for number, each in enumerate(first))
    yield _make_cases(shown, len(first), title, share=0.25)
    further = layout.further + (len(more) == layout.further + 1)
    lines, unnamed = more[:further], more[further:]
    # Without a code block between them, the list would continue that of the case above.
    joins = bool(first) and causes.describe(first[-1]).difference is None
    lead = ("Other causes:\n\n" if joins else "") if first else title
    rest = [_render_rest([*map(causes.describe, unnamed)], sum(map(len, unnamed)))] * bool(unnamed)
    blocks = chain(map(render_line, lines), rest)
    yield _make_cases(blocks, len(lines) + len(rest), lead, share=0.05)
    if more:
        section = _make_cases(map(render, more), len(more), "", share=0.15)
        # The title says how many cases all are.
        cases = format_count(sum(map(len, more)), "more case")
        causes_left = format_count(len(unnamed), "more cause")
        others = f"{causes_left} in {format_count(sum(map(len, unnamed)), 'case')}"
        what = f"{cases} with failures" if first else "Checks and differences"
        summary = f"{what}{f', {others}' if unnamed else ''}"
        yield replace(fold_section(section, summary), stays=True)


def make_known_section(
    report: Report, *, report_url: str, render_details: Callable[[Cause], str] = lambda _: ""
) -> Section:
    """Make the folded section of what fails as in the baseline: see ``make_cause_sections``."""
    causes = list_causes(report)
    found = map(causes.describe, causes.known)
    blocks = (f"{_render_cause(each, report, report_url)}{render_details(each)}" for each in found)
    section = _make_cases(blocks, len(causes.known), "", share=0.1)
    count = format_count(sum(map(len, causes.known)), "case")
    brief = f"{sum(map(len, causes.known)):,} still failing"
    return fold_section(section, f"Still failing, as in the baseline: {count}", brief)


def _make_cases(blocks: Iterable[str], total: int, title: str, *, share: float) -> Section:
    return Section(
        name="failures",
        title=title,
        noun="failure cause",
        blocks=iter(blocks),
        total=total,
        max_items=MAX_CASES,
        share=share,
    )


def make_lost_sections(
    report: Report, most: int, *, report_url: str, is_tight: bool = False
) -> Iterator[Section]:
    """Yield the eval cases without a recorded run, and the checks that are no longer evaluated.

    Args:
        most: groups of them that are not folded.
        report_url: as for ``make_cause_sections``.
        is_tight: whether a word at each line takes the place of the heading, and beside failures
            no changed answer is shown.
    """
    causes = list_causes(report)
    present = {each.case.id for each in report.results}
    with_answers = not (is_tight and causes.new)

    def write(case: str) -> str:
        return format_case_link(case, report_url if case in present else "")

    if names := list_missing_cases(report)["unrecorded"]:
        line = f"- **{UNRECORDED}:** {list_first_names(names, markdown_code)}\n"
        yield Section(name="failures", title="", noun="line", blocks=[line], total=1)
    lost = join_lost(causes.lost)
    first, more = lost[:most], lost[most:]
    word = f"**{NO_LONGER_EVALUATED}:** " if is_tight else ""
    section = Section(
        name="failures",
        title="" if word else f"### {LOST_TITLE}\n\n",
        noun="lost check group",
        blocks=(_render_lost(each, write, word, with_answers=with_answers) for each in first),
        total=len(first),
        max_items=MAX_CASES,
    )
    yield section
    blocks = (_render_lost(each, write) for each in more)
    others = replace(section, title="", blocks=blocks, total=len(more))
    checks = sum(each.checks for group in more for each in group)
    noun = "more check" if first else "check"
    yield fold_section(others, f"{format_count(checks, noun)} {NO_LONGER_EVALUATED}")


def make_changed_runs_section(report: Report, report_url: str, most: int) -> Section:
    """Make the section of the cases whose answers or tool results changed: see its list.

    Args:
        most: number of cases that are shown of each kind; 0 for one with short texts, and without
            the names of others.
    """

    def write_case(case: str) -> str:
        return format_case_link(case, report_url)

    def list_lines(length: int, *, is_short: bool = False) -> list[str]:
        def write(text: str) -> str:
            return markdown_code(truncate.short(text, length))

        found = list_changed_runs(report, max(most, 1), write_case, write, names=most > 0)
        return [
            f"- **{each.label}:** {each.head}{': ' if each.items else ''}"
            f"{'; '.join(each.items if is_short else each.lines)}\n"
            for each in found
        ]

    lines = list_lines(MAX_SHOWN if most else MAX_SHORT)
    if not most:
        # Where that saves a line, texts are shorter, and how many others there are is only counted
        # at the start.
        pairs = zip(lines, list_lines(MIN_SHORT, is_short=True), strict=True)
        lines = [min(pair, key=estimate_height) for pair in pairs]
    return Section(
        name="failures", title="", noun="kind of changed runs", blocks=lines, total=len(lines)
    )


def _render_line(cause: Cause, cases: int, report_url: str) -> str:
    """Render ``- 16 cases, e.g. `a`: `pay amount 9 → 90` · tone, 1 more``: one line of the page.

    If there is only room for the rest, none of several cases is named.
    """
    names = [
        f"{each.result.evaluator.name}{'' if each.result.evaluator.required else ADVISORY}"
        for each in cause.checks
    ]
    more = f", {len(names) - 1:,} more" if len(names) > 1 else ""
    which = f"{cases:,} cases, e.g. " if cases > 1 else ""
    summary = cause.case.summary.id
    link = format_case_link(summary, report_url)
    whole = replace(cause.fact, reason="").write(MAX_LINE, markdown_prose, markdown_code)
    end = f": {whole}{SEPARATOR}{markdown_prose(names[0] + more)}\n"
    if cases > 1 and not is_one_line(f"- {which}{link}{end}"):
        count, url = f"{cases:,} cases", make_case_url(report_url, summary)
        line = f"- {f'[{count}]({url})' if url else count}{end}"
        if is_one_line(line):
            return line
    width = MAX_LINE - len(f"{which}: {SEPARATOR}{names[0]}{more}") - measure_code(summary)
    fact = cause.fact.write(max(width, MIN_FACT), markdown_prose, markdown_code)
    start = f"- {which}{link}: {fact}{SEPARATOR}"

    def make(length: int) -> str:
        return f"{start}{markdown_prose(truncate.short(names[0], length) + more)}\n"

    return fit_item(make, max(min(len(names[0]), MAX_LINE), MIN_NAME), MIN_NAME)


def _render_rest(causes: Sequence[Cause], cases: int) -> str:
    """Render ``- 45 more cases: `a` failed; `30 days → 14 days` ``: one line of the page."""
    left = len(causes) - MAX_JOINED

    def make(length: int) -> str:
        facts = [replace(each.fact, reason="") for each in causes[:MAX_JOINED]]
        shown = [each.write(length, markdown_prose, markdown_code) for each in facts]
        more = [truncate.format_omitted(left)] if left > 0 else []
        return f"- {format_count(cases, 'more case')}: {'; '.join([*shown, *more])}\n"

    return fit_item(make, MAX_LINE, MIN_NAME)


def _render_cause(cause: Cause, report: Report, report_url: str, *, is_short: bool = False) -> str:
    """Render a case with its failed checks, its first difference and the cases like it.

    Args:
        is_short: see ``Layout``.
    """
    several = has_several_configs(report.results)
    heading = f"**{format_case_link(cause.case.summary.id, report_url)}**"
    if cause.question:
        heading += f" \u201c{markdown_prose(cause.question)}\u201d"
    most = 1 if is_short else MAX_CHECKS
    lines = [_render_check(each, several=several) for each in cause.checks[:most]]
    if more := len(cause.checks) - len(lines):
        names = [each.result.evaluator.name for each in cause.checks[most:]]
        shown = list_first_names(names, markdown_code)
        lines.append(f"- and {format_count(more, 'more check')}: {shown}\n")

    def write(case: str) -> str:
        return format_case_link(case, report_url)

    if others := cause.format_others(write, None if is_short else markdown_code):
        lines.append(f"- {others}\n")
    if similar := cause.format_similar(write, markdown_code):
        lines.append(f"- {similar}\n")
    shown = _render_difference(cause.difference, is_short=is_short)
    return f"{heading}\n\n{''.join(lines)}\n{shown}"


def _render_difference(difference: RunDifference | None, *, is_short: bool = False) -> str:
    """Render a difference.

    Args:
        is_short: see ``Layout``.
    """
    if difference is None:
        return ""
    shown = "\n".join(_list_difference(difference, is_short=is_short))
    return f"{markdown_fence(shown, language='diff')}\n"


def _render_check(check: FailedCheck, *, several: bool) -> str:
    """Render a check as ``- `tone` 1 → **0.2**: the reason``."""
    evaluator = check.result.evaluator
    before = f" {check.before} \N{RIGHTWARDS ARROW}" if check.before else ""
    note = f"; {check.note}" if check.note else ""
    name = format_evaluator_names(check.result.config, [evaluator.name], several=several)
    name += "" if evaluator.required else ADVISORY
    reason = check.reason or ("no score" if check.result.score is None else "")
    why = f": {markdown_prose(reason)}" if reason else ""
    requirement = "" if why else f", {markdown_prose(format_requirement(check.result))}"
    return f"- {name}{before} **{check.after}**{requirement}{note}{why}\n"


def _list_difference(difference: RunDifference, *, is_short: bool) -> Iterator[str]:
    """Yield the lines of a code block: each part under a line that GitHub shows as a label."""
    if head := difference.format_head():
        yield f"@@ {head} @@"
    parts = [*difference.list_parts(is_short=is_short)]
    shown = parts[: 1 if is_short else None]
    for label, lines in shown:
        yield f"@@ {label} @@"
        yield from lines
    for label, _ in parts[len(shown) :]:
        yield f"  the {label.partition(' (')[0]} also differs"
    yield from (f"  {line}" for line in wrap(difference.format_more(), WIDTH))


def _render_lost(
    group: Sequence[LostChecks],
    write: Callable[[str], str],
    word: str = "",
    *,
    with_answers: bool = True,
) -> str:
    why = group[0].reason
    reason = f" ({markdown_prose(truncate.short(why, MAX_REASON))})" if why else ""
    line = f"- {word}{format_lost(group, markdown_code, write)}{reason}"
    if not with_answers:
        answers = (f"; {each.format_changed(write)}" for each in group if each.changed)
        return f"{line}{''.join(answers)}\n"
    changed = (
        f"- {each.format_changed(write)}\n\n{_render_difference(each.difference)}"
        for each in group
        if each.changed
    )
    return f"{line}\n{''.join(changed)}"
