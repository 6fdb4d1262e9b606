"""Pull request comment: a short report with a link to the run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.escape import (
    markdown_code,
    markdown_prose,
    markdown_row,
)
from agentci._util.text.format import format_count
from agentci.model.gate import Comparison, EvaluatorComparison
from agentci.model.result import CheckResult, Report
from agentci.model.trace import INCOMPLETE_RUN, concerns_reviewers
from agentci.model.values import replace
from agentci.reports import check_text, groups_and_totals, sections, workflow_commands
from agentci.reports import comparison as baseline_text
from agentci.reports.policy import make_policy_sections

# A character takes at least one byte. The rest is room for the marker that the poster adds.
MAX_BYTES = workflow_commands.COMMENT_CHARACTERS - 4 * 1024

MAX_CASES = 20
# One screen, in pixels.
MAX_HEIGHT: Final = 875
# From roomy to tight; the first of these is taken in which the comment is one screen.
LAYOUTS: Final = (
    sections.Layout(causes=3, names=3, lost=3, errors=5),
    *(
        sections.Layout(
            causes=causes,
            further=further,
            names=3,
            regressed=3,
            policy=policy,
            lost=2,
            errors=errors,
            is_tight=True,
            is_joined=is_joined,
        )
        for causes, further, policy, errors, is_joined in (
            (3, 3, 5, 3, False),
            (2, 3, 5, 2, False),
            (1, 4, 4, 2, False),
            (1, 3, 4, 1, True),
            (1, 2, 3, 1, True),
        )
    ),
    *(
        sections.Layout(
            causes=1,
            further=further,
            names=1,
            checks=checks,
            parts=parts,
            regressed=regressed,
            policy=policy,
            lost=lost,
            errors=errors,
            is_tight=True,
            is_joined=True,
        )
        for further, checks, parts, regressed, policy, lost, errors in (
            (3, 3, None, 2, 3, 1, 1),
            (3, 3, None, 0, 3, 1, 1),
            (3, 3, 1, 0, 3, 1, 0),
            (3, 2, 1, 0, 3, 0, 0),
            (3, 1, 1, 0, 3, 0, 0),
            (2, 1, 1, 0, 3, 0, 0),
            (1, 1, 1, 0, 3, 0, 0),
            (0, 1, 1, 0, 3, 0, 0),
            (0, 1, 1, 0, 1, 0, 0),
        )
    ),
)
MAX_REASONS: Final = 3
# Characters of an error's reason, where there is little room.
MAX_ERROR: Final = 75
# Cases with changed answers or tool results, likewise.
MIN_CHANGED_RUNS: Final = 1
SHORT_COMMIT = 12
SEPARATOR: Final = " \N{MIDDLE DOT} "


class CommentReport(Struct, frozen=True, kw_only=True):
    """Decision, what got worse and why, evaluators; shorter than the job summary.

    One screen is unfolded. It omits details of how the result was produced, such as cached checks,
    because the next run may differ in them. A comment that is too long loses whole lines; no line
    is cut.

    Attributes:
        run_url: URL of the run's page; "" if there is none.
        commit: the commit that was evaluated; "" if unknown.
        report_url: URL of ``report.html``, to link cases; "" if it is not known.
        arrange: makes the page from its blocks.
    """

    run_url: str = ""
    commit: str = ""
    report_url: str = ""
    arrange: sections.Arrange = sections.join_blocks
    name: str = "comment"
    file_name: str = "comment.md"

    def render(self, report: Report) -> Iterator[str]:
        """Yield Markdown; the last lines count what is omitted and link to the run."""
        head = _LONG_HEADING.sub(r"\1\3\n\n\2<br>\n", sections.render_heading(report))
        if report.results:
            head += sections.render_counts(
                report, groups_and_totals.format_totals(report.totals), self.run_url
            )
        footer = self._render_footer(report)
        blocks: dict[sections.BlockName, str] = {}
        for layout in LAYOUTS:
            shown = _choose_sections(report, self.report_url, layout)
            blocks = sections.render_page(head, shown, footer, MAX_BYTES)
            if estimate_height("".join(blocks.values())) <= MAX_HEIGHT:
                break
        yield f"{self.arrange(self.name, blocks, report).rstrip()}\n"

    def _render_footer(self, report: Report) -> str:
        links = {"Report": self.report_url, "Workflow run": self.run_url}
        if self.run_url and not self.report_url:
            links["Artifacts"] = f"{self.run_url}#artifacts"
        parts = [f"[{name}]({url})" for name, url in links.items() if url]
        if self.commit:
            parts.append(f"commit {self.commit[:SHORT_COMMIT]}")
        if amounts := sections.render_further_amounts(report):
            parts.append(amounts)
        return f"{SEPARATOR.join(parts)}\n\n" if parts else ""


_MARKUP: Final = re.compile(r"\]\([^)\n]*\)|[`*\[\\]|<br>")
# Pixels: a line of text, code and a table, what a heading and a block add, what is always there.
_LINE: Final = 21
_CODE_LINE: Final = 15
_ROW: Final = 34
_HEADING: Final = 18
_BLOCK: Final = 16
_FRAME: Final = 54
# Characters of a line, and of a line of the verdict.
_WIDTH: Final = 100
_HEADING_WIDTH: Final = 68


# A verdict of more than one line, with what it says in brackets before its last warnings.
_LONG_HEADING: Final = re.compile(
    rf"(?<=\A## )(?=.{{{_HEADING_WIDTH}}})(.+?) \((.+)\)((?:, [^()\n]+)?)\n+\Z"
)


def estimate_height(markdown: str) -> int:
    """Estimate the height of a comment on GitHub, in pixels, with everything folded that can be."""
    height = _FRAME
    is_code = False
    for line in list_unfolded(markdown):
        if line.startswith("```"):
            is_code = not is_code
            height += 12
        elif is_code:
            height += _CODE_LINE
        elif not line:
            height += _BLOCK
        elif line.startswith("|"):
            height += _ROW * (not line.startswith("| ---"))
        elif line.startswith("## "):
            height += _HEADING + 32 * _count_lines(line, _HEADING_WIDTH)
        elif line != "</details>":
            height += _HEADING * line.startswith("### ") + _LINE * _count_lines(line, _WIDTH)
    return height


def list_unfolded(markdown: str) -> Iterator[str]:
    """Yield the lines that are not folded, and those of summaries."""
    folds = 0
    for line in markdown.split("\n"):
        folds += (line == "<details>") - (line == "</details>")
        if not folds or (folds == 1 and line.startswith("<summary>")):
            yield line


def _count_lines(line: str, width: int) -> int:
    return -(-(len(_MARKUP.sub("", line)) + line.count("`")) // width)


def _choose_sections(
    report: Report, report_url: str, layout: sections.Layout
) -> Iterator[sections.Section]:
    """Yield the sections of a layout; what it joins comes last."""
    folded: list[sections.Section] = []
    for each in _sections(report, report_url, layout):
        if layout.is_joined and each.summary and each.name not in ("failures", "policy"):
            folded.append(each)
        else:
            yield each
    yield sections.join_folded(folded, MAX_BYTES)


def _sections(
    report: Report, report_url: str, layout: sections.Layout
) -> Iterator[sections.Section]:
    several = groups_and_totals.has_several_configs(report.results)
    reasons = sections.make_reasons_section(report)
    regressed, evaluators = _list_evaluators(report, layout.regressed, several=several)
    if reasons.total > MAX_REASONS:
        yield _fold_reasons(reasons)
    else:
        yield reasons if layout.regressed else sections.make_reasons_section(report, joined=True)
    # Below many failures they would not be on the first screen.
    if layout.is_tight:
        yield replace(regressed, name="reasons")
    if report.policy is not None:
        most = layout.policy if layout.is_tight else None
        yield from make_policy_sections(report.policy, unfolded=most, joined=layout.is_joined)
    yield from sections.make_failure_sections(report, layout, report_url=report_url)
    most = MIN_CHANGED_RUNS if layout.is_tight else sections.MAX_UNFOLDED
    yield sections.make_changed_runs_section(report, report_url, most)
    errored = groups_and_totals.filter_by_status(report.results, "errored")
    unfolded = 0 if layout.is_tight else sections.MAX_UNFOLDED
    yield from _list_errored(errored, report_url, layout, several=several)
    yield sections.make_lower_scores_section(report, report_url)
    yield sections.make_fixed_section(report, report_url)
    if not layout.is_tight:
        yield regressed
    yield evaluators
    if report.comparison is not None:
        yield _comparison_section(report.comparison, report.decision.reasons)
    yield sections.make_skips_section(report)
    yield sections.make_notes_section(report, unfolded=unfolded)
    yield _make_warnings(report, unfolded)
    problems = [each for each in report.problems if each.severity != "note"]
    yield sections.make_problems_section(problems, report, unfolded=unfolded)


def _make_warnings(report: Report, unfolded: int) -> sections.Section:
    found = {
        text: cases
        for text, cases in groups_and_totals.group_warnings(report).items()
        if concerns_reviewers(text)
    }
    section = sections.make_warnings_section(found)
    if len(found) <= unfolded:
        return section
    return sections.fold_section(replace(section, title=""), format_count(len(found), "warning"))


def _fold_reasons(reasons: sections.Section) -> sections.Section:
    return sections.fold_section(reasons, format_count(reasons.total, "more reason"))


def _list_evaluators(
    report: Report, most: int, *, several: bool
) -> tuple[sections.Section, sections.Section]:
    """List the evaluators that regressed most, one line each, and the folded table of all.

    Args:
        most: of those that are not folded.
    """
    found = groups_and_totals.group_by_evaluator(report.results)
    compared = report.comparison.evaluators if report.comparison else ()
    by_name = {(each.config, each.evaluator): each for each in compared}
    names = {(each.representative.config, each.representative.evaluator.name) for each in found}
    removed: dict[tuple[str, str], list[EvaluatorComparison]] = {}
    gone = baseline_text.find_gone_configs(report.comparison) if report.comparison else ()
    for name, each in by_name.items():
        if name not in names:
            removed.setdefault((each.config, "") if each.config in gone else name, []).append(each)
    mean = f"Mean score {baseline_text.CHANGE}" if by_name else "Mean score"
    columns = [*(["Config"] if several else []), "Evaluator", "Passed", mean, "Threshold"]
    ruler = [*(["---"] if several else []), "---", "--:", "--:", "---"]
    if by_name:
        columns, ruler = [*columns, "Against the baseline"], [*ruler, "---"]
    regressed = _list_regressed(found, by_name)
    of = f" ({most:,} of {len(regressed):,})" if most < len(regressed) else ""
    short_rows = sections.Section(
        name="evaluators",
        title=markdown_row([f"Regressed{of}", "Passed", "Mean score (change)"])
        + markdown_row(["---", "--:", "--:"]),
        noun="regressed evaluator",
        blocks=(
            _render_regressed(each, by_name, report, several=several) for each in regressed[:most]
        ),
        end=_note_zeros(_find_compared(regressed[:most], by_name)),
        total=len(regressed[:most]),
        share=0.1,
    )
    all_rows = replace(
        short_rows,
        title=markdown_row(columns) + markdown_row(ruler),
        noun="evaluator",
        blocks=chain(
            (_render_row(each, by_name, report, several=several) for each in found),
            (_render_removed(each, report, several=several) for each in removed.values()),
        ),
        end="" if _note_zeros(compared) == short_rows.end else _note_zeros(compared),
        total=len(found) + len(removed),
        share=0.3,
    )
    more = len(regressed[most:])
    other = "more " if most else ""
    title = f"Evaluators, of which {more:,} {other}regressed" if more else "Evaluators"
    return short_rows, sections.fold_section(all_rows, title)


def _find_compared(
    found: Sequence[groups_and_totals.EvaluatorChecks],
    by_name: Mapping[tuple[str, str], EvaluatorComparison],
) -> list[EvaluatorComparison]:
    names = ((each.representative.config, each.representative.evaluator.name) for each in found)
    return [by_name[name] for name in names]


def _note_zeros(compared: Sequence[EvaluatorComparison]) -> str:
    zeros = baseline_text.describe_zeros(compared)
    return f"{zeros[0].upper()}{zeros[1:]}.\n\n" if zeros else ""


def _render_regressed(
    checks: groups_and_totals.EvaluatorChecks,
    by_name: Mapping[tuple[str, str], EvaluatorComparison],
    report: Report,
    *,
    several: bool,
) -> str:
    """Render a row that is one line: without intervals, and without other checks."""
    totals, result = checks.totals, checks.representative
    compared = by_name[result.config, result.evaluator.name]
    name = sections.format_evaluator_names(result.config, [result.evaluator.name], several=several)
    advisory = "" if result.evaluator.required else baseline_text.ADVISORY
    score = groups_and_totals.choose_mean(totals)
    change = baseline_text.format_score_change(
        score, None if score is None else replace(compared, change_low=None)
    )
    cells = [
        f"{sections.choose_icon(checks, report, compared)} {name}{advisory}",
        _format_passed(totals.passed, totals.passed + totals.failed, ()),
        change or groups_and_totals.name_no_score(totals),
    ]
    return markdown_row(cells)


def _list_regressed(
    found: Sequence[groups_and_totals.EvaluatorChecks],
    by_name: Mapping[tuple[str, str], EvaluatorComparison],
) -> list[groups_and_totals.EvaluatorChecks]:
    """List the evaluators that regressed: required ones first, then by their drop."""
    ranked: list[tuple[bool, float, groups_and_totals.EvaluatorChecks]] = []
    for each in found:
        evaluator = each.representative.evaluator
        compared = by_name.get((each.representative.config, evaluator.name))
        if compared is not None and compared.outcome == "fail":
            drop = (compared.before or 0.0) - (compared.after or 0.0)
            ranked.append((not evaluator.required, -drop, each))
    return [each for *_, each in sorted(ranked, key=lambda entry: entry[:2])]


def _render_row(
    checks: groups_and_totals.EvaluatorChecks,
    by_name: Mapping[tuple[str, str], EvaluatorComparison],
    report: Report,
    *,
    several: bool,
) -> str:
    totals, result = checks.totals, checks.representative
    advisory = "" if result.evaluator.required else baseline_text.ADVISORY
    compared = by_name.get((result.config, result.evaluator.name))
    icon = sections.choose_icon(checks, report, compared)
    others = [
        *([format_count(totals.errored, "error")] if totals.errored else []),
        *([f"{totals.skipped:,} skipped"] if totals.skipped else []),
    ]
    score = groups_and_totals.choose_mean(totals)
    shown = None if score is None and totals.failed else compared
    cells = [
        *([markdown_code(groups_and_totals.format_path(result.config))] if several else []),
        f"{icon} {markdown_code(result.evaluator.name)}{advisory}",
        _format_passed(totals.passed, totals.passed + totals.failed, others),
        baseline_text.format_score_change(score, shown) or groups_and_totals.name_no_score(totals),
        markdown_prose(result.evaluator.criterion),
    ]
    if by_name:
        change = (
            "not in the baseline" if compared is None else baseline_text.format_outcome(compared)
        )
        cells.append(markdown_prose(change))
    return markdown_row(cells)


def _render_removed(
    removed: Sequence[EvaluatorComparison], report: Report, *, several: bool
) -> str:
    """Render an evaluator that only the baseline has, or all those of a config."""
    icons = {sections.choose_removed_icon(each, report) for each in removed}
    icon = sections.CROSS if sections.CROSS in icons else sections.WARNING
    all_of = f"all {len(removed):,} evaluators" if len(removed) > 1 else ""
    name = markdown_code(removed[0].evaluator)
    own = name if removed[0].required else f"{name}{baseline_text.ADVISORY}"
    cells = [
        *([markdown_code(groups_and_totals.format_path(removed[0].config))] if several else []),
        f"{icon} {all_of or own}",
        "removed",
        *("", ""),
        markdown_prose(baseline_text.format_groups(*removed)),
    ]
    return markdown_row(cells)


def _format_passed(passed: int, evaluated: int, others: Sequence[str]) -> str:
    if not evaluated:
        return f"none evaluated: {', '.join(others)}" if others else "none evaluated"
    return f"{passed:,} of {evaluated:,}" + (f" ({', '.join(others)})" if others else "")


def _comparison_section(comparison: Comparison, reasons: Sequence[str]) -> sections.Section:
    # The table of the evaluators says which checks count as 0.
    remarks = baseline_text.list_remarks(comparison, with_zeros=False, reasons=reasons)
    blocks = [f"- {markdown_prose(each)}\n" for each in remarks]
    section = sections.Section(
        name="comparison",
        title="",
        noun="comparison line",
        blocks=iter(blocks),
        total=len(blocks),
        max_items=MAX_CASES,
        share=0.15,
    )
    if comparison.no_baseline:
        return section
    return sections.fold_section(section, "Comparison with the baseline")


def _list_errored(
    errored: Sequence[CheckResult], report_url: str, layout: sections.Layout, *, several: bool
) -> Iterator[sections.Section]:
    def write(case: str) -> str:
        return sections.format_case_link(case, report_url)

    def render(group: groups_and_totals.ReasonGroup, *, is_tight: bool) -> str:
        name = sections.format_group_name(group, write, several=several)
        reason = check_text.join_error_lines(group.reason)
        if is_tight:
            reason = reason.removeprefix(f"Evaluator `{group.evaluators[0]}` ")
            reason = reason.removeprefix(INCOMPLETE_RUN)
            name, reason = f"**errored:** {name}", truncate.short(reason, MAX_ERROR)
        checks = group.format_checks(markdown_code, write, names=not is_tight)
        return f"- {name}: {markdown_prose(reason)} ({checks})\n"

    groups = groups_and_totals.group_by_cases(errored)
    blocks = [render(each, is_tight=layout.is_tight) for each in groups[: layout.errors]]
    first = sections.Section(
        name="errors",
        title="" if layout.is_tight else "### Errored checks\n\n",
        noun="error",
        blocks=iter(blocks),
        total=len(blocks),
        share=0.1,
    )
    yield first
    if more := groups[layout.errors :]:
        lines = (render(each, is_tight=False) for each in more)
        others = replace(first, title="", blocks=lines, total=len(more), max_items=MAX_CASES)
        noun = "more error" if blocks else "error"
        yield sections.fold_section(others, format_count(len(more), noun))
