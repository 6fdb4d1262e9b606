"""Pull request comment: a short report with a link to the run."""

from collections.abc import Iterator, Sequence
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
from agentci.model.result import Report
from agentci.model.trace import INCOMPLETE_RUN, concerns_reviewers
from agentci.model.values import replace
from agentci.reports import (
    cause_sections,
    check_text,
    groups_and_totals,
    sections,
    workflow_commands,
)
from agentci.reports import comparison as baseline_text
from agentci.reports.case_counts import find_missing
from agentci.reports.changed_checks import join_lost
from agentci.reports.failures import list_causes
from agentci.reports.page_height import (
    FRAME,
    Part,
    estimate_height,
    fit_item,
    fit_parts,
    is_one_line,
    list_whole,
    measure,
)
from agentci.reports.policy import list_policy_lines, make_policy_sections
from agentci.reports.policy_effects import explain_policy

# A character takes at least one byte. The rest is room for the marker that the poster adds.
MAX_BYTES = workflow_commands.COMMENT_CHARACTERS - 4 * 1024

MAX_CASES = 20
# One screen, in pixels.
MAX_HEIGHT: Final = 870
# Of these are not folded, where there is room.
MAX_CAUSES: Final = 3
MAX_ROWS: Final = 5
MAX_REASONS: Final = 3
# Characters of an error's reason, where there is little room, and the fewest if names are long.
MAX_ERROR: Final = 75
MIN_ERROR: Final = 20
SHORT_COMMIT = 12


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
        head = sections.render_head(report, self.run_url, HEADING_WIDTH)
        footer = self._render_footer(report)
        around = f"{head}{footer}".rstrip()
        room = MAX_HEIGHT - FRAME - estimate_height(f"{around}\n")
        shown = list_whole(_list_parts(report, self.report_url, is_tight=False))
        if measure(shown) > room:
            parts = [*_list_parts(report, self.report_url, is_tight=True)]
            shown = fit_parts(parts, room, MAX_BYTES)
        blocks = sections.render_page(head, shown, footer, MAX_BYTES)
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
        return f"{sections.SEPARATOR.join(parts)}\n\n" if parts else ""


# Characters of a line of the verdict.
HEADING_WIDTH: Final = 68


def _list_parts(report: Report, report_url: str, *, is_tight: bool) -> Iterator[Part]:
    """Yield the parts below the verdict, the most important first.

    Args:
        is_tight: whether a word at each line takes the place of headings, reasons are one line, and
            all notes and problems are folded.
    """
    several = groups_and_totals.has_several_configs(report.results)
    unfolded = 0 if is_tight else sections.MAX_UNFOLDED
    lost = len(join_lost(list_causes(report).lost))
    layouts = cause_sections.list_layouts(report, causes=MAX_CAUSES)
    errors = groups_and_totals.group_by_cases(
        groups_and_totals.filter_by_status(report.results, "errored")
    )
    evaluators = _EvaluatorTables(report)

    yield Part(
        make=lambda _: sections.make_short_reasons_sections(report, MAX_REASONS, joined=is_tight)
    )
    yield Part(
        make=lambda level: cause_sections.make_cause_sections(
            report, layouts[level], report_url=report_url
        ),
        most=len(layouts) - 1,
        first=sum(not each.causes for each in layouts) - 1,
        weight=2,
    )
    yield Part(
        make=lambda level: _list_errored(
            errors, level, report_url, is_tight=is_tight, several=several
        ),
        most=min(len(errors), MAX_ROWS),
    )
    yield Part(
        make=lambda level: cause_sections.make_lost_sections(
            report, level, report_url=report_url, is_tight=is_tight
        ),
        most=min(lost, MAX_ROWS),
    )
    yield Part(
        make=lambda level: [cause_sections.make_changed_runs_section(report, report_url, level)],
        most=sections.MAX_UNFOLDED,
    )
    if (policy := explain_policy(report)) is not None:
        lines = len([*list_policy_lines(policy)])
        yield Part(
            make=lambda level: make_policy_sections(policy, unfolded=level if is_tight else None),
            most=min(lines, MAX_ROWS),
        )
    # Reasons name those that regressed, too.
    yield Part(make=evaluators.make, most=min(len(evaluators.regressed), MAX_ROWS), weight=0)
    yield Part(make=lambda _: _list_others(report, report_url, unfolded))


def _list_others(report: Report, report_url: str, unfolded: int) -> Iterator[sections.Section]:
    """Yield what has the same size in each layout.

    Args:
        unfolded: notes, warnings and problems that are not folded.
    """
    yield cause_sections.make_known_section(report, report_url=report_url)
    yield sections.make_lower_scores_section(report, report_url)
    yield sections.make_fixed_section(report, report_url)
    if report.comparison is not None:
        # Other reasons do not say how regressions were tested.
        yield _comparison_section(report.comparison, report.decision.reasons[:1])
    yield sections.make_skips_section(report)
    yield sections.make_other_words_section(report, report_url)
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
    count = format_count(len(found), "warning")
    return sections.fold_section(replace(section, title=""), count, f"{count} about runs")


class _EvaluatorTables:
    """The evaluators that regressed, one line each, and the folded table of all.

    Attributes:
        regressed: required ones first, then by their drop.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._several = groups_and_totals.has_several_configs(report.results)
        self._found = groups_and_totals.group_by_evaluator(report.results)
        self._compared = report.comparison.evaluators if report.comparison else ()
        self._by_name = {(each.config, each.evaluator): each for each in self._compared}
        self.regressed = sorted(filter(self._has_regressed, self._found), key=self._rank)

    def _has_regressed(self, checks: groups_and_totals.EvaluatorChecks) -> bool:
        compared = self._by_name.get(_key(checks))
        return compared is not None and compared.outcome == "fail"

    def _rank(self, checks: groups_and_totals.EvaluatorChecks) -> tuple[bool, float]:
        compared = self._by_name[_key(checks)]
        return not compared.required, (compared.after or 0.0) - (compared.before or 0.0)

    def make(self, most: int) -> Iterator[sections.Section]:
        """Yield both tables.

        Args:
            most: of the first.
        """
        shown = self.regressed[:most]
        of = f" ({most:,} of {len(self.regressed):,})" if most < len(self.regressed) else ""
        yield sections.Section(
            name="evaluators",
            title=_write_head([f"Regressed{of}", "Passed", "Mean score (change)"], ["---"]),
            noun="regressed evaluator",
            blocks=(self._render_row(each, is_short=True) for each in shown),
            total=len(shown),
            share=0.1,
        )
        more = self.regressed[most:]
        required = sum(self._by_name[_key(each)].required for each in more)
        numbers = [
            f"{number:,} {'more ' * bool(shown)}{kind}regressed"
            for number, kind in ((required, ""), (len(more) - required, "advisory "))
            if number
        ]
        regressed = ", ".join(numbers)
        title = f"Evaluators, of which {regressed}" if more else "Evaluators"
        count = format_count(len(self._found) + len(self._group_removed()), "evaluator")
        brief = f"{count} ({regressed})" if more else count
        yield sections.fold_section(self._make_whole(), title, brief)

    def _make_whole(self) -> sections.Section:
        removed = self._group_removed()
        config = ["Config"] if self._several else []
        mean = f"Mean score {baseline_text.CHANGE}" if self._by_name else "Mean score"
        baseline = ["Against the baseline"] if self._by_name else []
        names = [*config, "Evaluator", "Passed", mean, "Threshold", *baseline]
        return sections.Section(
            name="evaluators",
            title=_write_head(names, ["---"] * (len(config) + 1)),
            noun="evaluator",
            blocks=chain(
                map(self._render_row, self._found),
                (_render_removed(each, self._report, several=self._several) for each in removed),
            ),
            end=_describe_populations(self._compared),
            total=len(self._found) + len(removed),
            share=0.3,
        )

    def _group_removed(self) -> Sequence[Sequence[EvaluatorComparison]]:
        """Group the evaluators that only the baseline has: all those of a config."""
        known = {*map(_key, self._found)}
        comparison = self._report.comparison
        gone = baseline_text.find_gone_configs(comparison) if comparison else ()
        removed: dict[tuple[str, str], list[EvaluatorComparison]] = {}
        for name, each in self._by_name.items():
            if name not in known:
                key = (each.config, "") if each.config in gone else name
                removed.setdefault(key, []).append(each)
        return [*removed.values()]

    def _render_row(
        self, checks: groups_and_totals.EvaluatorChecks, *, is_short: bool = False
    ) -> str:
        """Render a row.

        Args:
            is_short: whether it is one line: without intervals, other checks and requirements.
        """
        totals, result = checks.totals, checks.representative
        compared = self._by_name.get(_key(checks))
        score = groups_and_totals.choose_mean(totals)
        shown = None if score is None and totals.failed else compared
        if is_short and shown is not None:
            shown = replace(shown, change_low=None)
        missing = find_missing(self._report)
        errored = [each for each in checks.results if each.status == "errored"]
        own = (
            errored
            if not totals.passed + totals.failed
            else [each for each in errored if each.case.id not in missing]
        )
        others = [
            *([format_count(len(own), "error")] if own else []),
            *([f"{totals.skipped:,} skipped"] if totals.skipped else []),
        ]
        name = sections.format_evaluator_names(
            result.config, [result.evaluator.name], several=self._several and is_short
        )
        advisory = "" if result.evaluator.required else baseline_text.ADVISORY
        cells = [
            f"{sections.choose_icon(checks, self._report, compared)} {name}{advisory}",
            groups_and_totals.format_passed(
                totals.passed, totals.passed + totals.failed, [] if is_short else others
            ),
            baseline_text.format_score_change(score, shown)
            or groups_and_totals.name_no_score(totals),
        ]
        if is_short:
            return markdown_row(cells)
        if self._several:
            cells.insert(0, markdown_code(groups_and_totals.format_path(result.config)))
        cells.append(markdown_prose(groups_and_totals.format_thresholds(result, self._report)))
        if self._by_name:
            change = "not in the baseline"
            if compared is not None:
                change = baseline_text.format_outcome(compared, missing)
            cells.append(markdown_prose(change))
        return markdown_row(cells)


def _write_head(names: Sequence[str], left: Sequence[str]) -> str:
    """Write the head of a table, of which two columns after the left ones are numbers."""
    ruler = [*left, "--:", "--:", *["---"] * (len(names) - len(left) - 2)]
    return markdown_row(names) + markdown_row(ruler)


def _describe_populations(compared: Sequence[EvaluatorComparison]) -> str:
    """Say which checks the numbers are of."""
    counts = sorted(each.in_both for each in compared if each.in_both)
    if not counts:
        return ""
    few, many = f"{counts[0]:,}", format_count(counts[-1], "check")
    both = many if counts[0] == counts[-1] else f"{few} to {many}"
    has_advisory = any(not each.required for each in compared)
    title = " The title counts required checks only." if has_advisory else ""
    return (
        "Passed: of the checks that this run evaluated. Mean scores: of those that both runs "
        f"evaluated ({both} of an evaluator).{title}\n\n"
    )


def _key(checks: groups_and_totals.EvaluatorChecks) -> tuple[str, str]:
    return checks.representative.config, checks.representative.evaluator.name


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


def _comparison_section(comparison: Comparison, reasons: Sequence[str]) -> sections.Section:
    remarks = baseline_text.list_remarks(comparison, reasons=reasons)
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
    return sections.fold_section(section, "Comparison with the baseline", "comparison")


def _list_errored(
    groups: Sequence[groups_and_totals.ReasonGroup],
    most: int,
    report_url: str,
    *,
    is_tight: bool,
    several: bool,
) -> Iterator[sections.Section]:
    """Yield the groups of errored checks that are not folded, and the others.

    Args:
        most: number of the former; 0 for one of which the reason is cut at the end of the line.
        is_tight: as of ``_list_parts``.
    """

    def write(case: str) -> str:
        return sections.format_case_link(case, report_url)

    def render(group: groups_and_totals.ReasonGroup, *, is_tight: bool = False) -> str:
        name = sections.format_group_name(group, write, several=several)
        reason = check_text.join_error_lines(group.reason)
        if is_tight:
            reason = reason.removeprefix(f"Evaluator `{group.evaluators[0]}` ")
            reason = reason.removeprefix(INCOMPLETE_RUN)
            name = f"**errored:** {name}"
        checks = group.format_checks(markdown_code, write, names=not is_tight)

        def make(length: int) -> str:
            shown = truncate.short(reason, length) if is_tight else reason
            return f"- {name}: {markdown_prose(shown)} ({checks})\n"

        if not is_tight or most:
            return make(MAX_ERROR)
        if not is_one_line(make(MIN_ERROR)):
            checks = format_count(len(group.cases), "case")
        return fit_item(make, MAX_ERROR, MIN_ERROR)

    # The summary of a single other one would be as long as it.
    shown = len(groups) if len(groups) == max(most, 1) + 1 else max(most, 1)
    first, more = groups[:shown], groups[shown:]
    section = sections.Section(
        name="errors",
        title="" if is_tight else "### Errored checks\n\n",
        noun="error",
        blocks=(render(each, is_tight=is_tight) for each in first),
        total=len(first),
        share=0.1,
    )
    yield section
    others = replace(
        section, title="", blocks=map(render, more), total=len(more), max_items=MAX_CASES
    )
    folded = sections.fold_section(others, format_count(len(more), "more error"))
    yield replace(folded, stays=True)
