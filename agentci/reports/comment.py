"""Pull request comment: a short report with a link to the run."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.escape import markdown_code, markdown_prose, markdown_row
from agentci._util.text.format import format_number
from agentci.model.gate import Comparison, EvaluatorComparison
from agentci.model.result import CheckResult, Report
from agentci.reports import check_text, github_limits, report_format, sections
from agentci.reports import comparison as baseline_text

# A character takes at least one byte. The rest is room for the marker that the poster adds.
MAX_BYTES = github_limits.COMMENT_CHARACTERS - 4 * 1024

MAX_CASES = 20
MAX_MISSES = 3
SHORT_COMMIT = 12


class CommentReport(Struct, frozen=True, kw_only=True):
    """Decision, evaluators, regressions, failed and errored checks; shorter than the job summary.

    It omits details of how the result was produced, such as cached checks, because the next run may
    differ in them. A comment that is too long loses whole lines; no line is cut.

    Attributes:
        run_url: URL of the run's page; "" if there is none.
        commit: the commit that was evaluated; "" if unknown.
    """

    run_url: str = ""
    commit: str = ""
    name: str = "comment"
    file_name: str = "comment.md"

    def render(self, report: Report) -> Iterator[str]:
        """Yield Markdown; the last lines count what is omitted and link to the run."""
        head = sections.render_heading(report)
        if report.results:
            head += f"{report_format.format_totals(report.totals)}\n\n"
        text = head + sections.render_sections(_sections(report), MAX_BYTES)
        yield f"{text.rstrip()}\n{self._render_footer()}"

    def _render_footer(self) -> str:
        parts = [f"[Workflow run]({self.run_url})"] if self.run_url else []
        if self.commit:
            parts.append(f"commit {self.commit[:SHORT_COMMIT]}")
        return f"\n{', '.join(parts)}\n" if parts else ""


def _sections(report: Report) -> Iterator[sections.Section]:
    several = report_format.has_several_configs(report.results)
    yield sections.make_reasons_section(report)
    yield _evaluators(report, several=several)
    if report.comparison is not None:
        yield _comparison_section(report.comparison)
    yield _failed(report_format.filter_by_status(report.results, "failed"))
    yield _errored(report_format.filter_by_status(report.results, "errored"), several=several)
    problems = [each for each in report.problems if each.severity != "note"]
    yield sections.make_problems_section(problems, report)


def _evaluators(report: Report, *, several: bool) -> sections.Section:
    found = report_format.group_by_evaluator(report.results)
    compared = report.comparison.evaluators if report.comparison else ()
    by_name = {(each.config, each.evaluator): each for each in compared}
    columns = [*(["Config"] if several else []), "Evaluator", "Passed", "Mean score", "Threshold"]
    ruler = [*(["---"] if several else []), "---", "--:", "--:", "---"]
    if by_name:
        columns, ruler = [*columns, "Baseline"], [*ruler, "---"]
    return sections.Section(
        title=markdown_row(columns) + markdown_row(ruler),
        noun="evaluator",
        blocks=(_render_row(each, by_name, report, several=several) for each in found),
        total=len(found),
        share=0.3,
    )


def _render_row(
    checks: report_format.EvaluatorChecks,
    by_name: Mapping[tuple[str, str], EvaluatorComparison],
    report: Report,
    *,
    several: bool,
) -> str:
    totals, result = checks.totals, checks.representative
    advisory = "" if result.evaluator.required else " (advisory)"
    icon = sections.choose_icon(checks, gate_failed=report.decision.is_failure)
    cells = [
        *([markdown_code(report_format.format_path(result.config))] if several else []),
        f"{icon} {markdown_code(result.evaluator.name)}{advisory}",
        f"{totals.passed:,} of {totals.checks:,}",
        "" if totals.score is None else format_number(totals.score),
        markdown_prose(result.evaluator.criterion),
    ]
    if by_name:
        each = by_name.get((result.config, result.evaluator.name))
        cells.append("" if each is None else markdown_prose(baseline_text.format_change(each)))
    return markdown_row(cells)


def _comparison_section(comparison: Comparison) -> sections.Section:
    blocks = [
        *(f"- {markdown_prose(remark)}\n" for remark in baseline_text.list_remarks(comparison)),
        *(
            f"- {markdown_code(case)}, {markdown_code(evaluator)}: {markdown_prose(scores)}\n"
            for case, evaluator, scores in baseline_text.list_worse(comparison)
        ),
    ]
    regressed = any(each.worse for each in comparison.evaluators)
    return sections.Section(
        title="### Worse than the baseline\n\n" if regressed else "### Baseline\n\n",
        noun="line of the comparison",
        blocks=iter(blocks),
        total=len(blocks),
        max_items=MAX_CASES,
        share=0.15,
    )


def _failed(failed: Sequence[CheckResult]) -> sections.Section:
    return sections.Section(
        title="### Failed checks\n\n",
        noun="failed check",
        blocks=map(_render_failure, report_format.sort_worst_first(failed)),
        total=len(failed),
        max_items=MAX_CASES,
        share=0.25,
    )


def _render_failure(result: CheckResult) -> str:
    """Render a failed check with its first misses."""
    lines = check_text.split_lines(check_text.format_headline(result))
    headline = truncate.join_first_and_last(lines)
    name = f"{markdown_code(result.case.id)}, {markdown_code(result.evaluator.name)}"
    misses = () if result.judgement is None else result.judgement.misses
    details = "".join(
        f"  - {markdown_prose(miss)}\n" for miss in truncate.truncate_list(misses, MAX_MISSES)
    )
    return f"- {name}: {markdown_prose(headline)}\n{details}"


def _errored(errored: Sequence[CheckResult], *, several: bool) -> sections.Section:
    groups = report_format.group_by_reason(errored)
    return sections.Section(
        title="### Errored checks\n\n",
        noun="error",
        blocks=(
            f"- {sections.format_evaluator_name(config, evaluator, several=several)}: "
            f"{markdown_prose(truncate.join_first_and_last(check_text.split_lines(reason)))}"
            f" ({report_format.format_case_names(cases, markdown_code)})\n"
            for (config, evaluator, reason), cases in groups.items()
        ),
        total=len(groups),
        max_items=MAX_CASES,
        share=0.1,
    )
