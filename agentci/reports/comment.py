"""The report as a comment on a pull request: what a reviewer has to know, and where the rest is."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import number
from agentci._util.text.markdown import code, prose, row
from agentci.model.comparison import Comparison, Trend
from agentci.model.result import Report, Result
from agentci.reports import check_text, github_limits
from agentci.reports import comparison as trends
from agentci.reports.locations import file_name
from agentci.reports.report_format import (
    Tally,
    by_reason,
    case_names,
    of_status,
    several_configs,
    tallies,
    tally_line,
    worst_first,
)
from agentci.reports.summary.fragments import evaluator_name, headline, icon, problems, reasons
from agentci.reports.summary.section import Section, sections_text

# No character takes less than a byte; with room for the mark of whoever posts it.
MAX_BYTES = github_limits.COMMENT_CHARACTERS - 4 * 1024

MAX_CASES = 20
MAX_MISSES = 3
SHORT_COMMIT = 12


class Comment(Struct, frozen=True, kw_only=True):
    """Verdict, evaluators, what got worse, the worst failures and errors; shorter than the summary.

    It does not say how the result was come by, of which the next run may need less. Whole lines are
    left out where it would be too long, none is cut.

    Attributes:
        run_url: of the page of the run; empty where there is none.
        commit: that was judged; empty where nobody knows.
    """

    run_url: str = ""
    commit: str = ""
    name: str = "comment"
    file_name: str = "comment.md"

    def render(self, report: Report) -> Iterator[str]:
        """Markdown; its last lines say what was left out, and where all of it is."""
        head = f"{headline(report)}{tally_line(report.totals)}\n\n"
        text = head + sections_text(_sections(report), MAX_BYTES)
        yield f"{text.rstrip()}\n{self._foot()}"

    def _foot(self) -> str:
        said = [f"[All of this run]({self.run_url})"] if self.run_url else []
        if self.commit:
            said.append(f"commit {self.commit[:SHORT_COMMIT]}")
        return f"\n{', '.join(said)}\n" if said else ""


def _sections(report: Report) -> Iterator[Section]:
    several = several_configs(report.results)
    yield reasons(report)
    yield _evaluators(report, several=several)
    if report.comparison is not None:
        yield _worse(report.comparison)
    yield _failed(of_status(report.results, "failed"))
    yield _errored(of_status(report.results, "errored"), several=several)
    yield problems([each for each in report.problems if each.severity != "notice"])


def _evaluators(report: Report, *, several: bool) -> Section:
    found = tallies(report.results)
    compared = report.comparison.trends if report.comparison else ()
    by_name = {(trend.config, trend.evaluator): trend for trend in compared}
    columns = [*(["Config"] if several else []), "Evaluator", "Passed", "Mean score", "Wanted"]
    ruler = [*(["---"] if several else []), "---", "--:", "--:", "---"]
    if by_name:
        columns, ruler = [*columns, "Baseline"], [*ruler, "---"]
    return Section(
        title=row(columns) + row(ruler),
        noun="evaluator",
        blocks=(_evaluator(tally, by_name, report, several=several) for tally in found),
        total=len(found),
        share=0.3,
    )


def _evaluator(
    tally: Tally, by_name: Mapping[tuple[str, str], Trend], report: Report, *, several: bool
) -> str:
    totals, result = tally.totals, tally.any
    advice = "" if result.evaluator.required else " (advisory)"
    mark = icon(tally, shut=report.decision.shuts)
    cells = [
        *([code(file_name(result.config))] if several else []),
        f"{mark} {code(result.evaluator.name)}{advice}",
        f"{totals.passed:,} of {totals.checks:,}",
        "" if totals.score is None else number(totals.score),
        prose(result.evaluator.bar),
    ]
    if by_name:
        trend = by_name.get((result.config, result.evaluator.name))
        cells.append("" if trend is None else prose(trends.in_words(trend)))
    return row(cells)


def _worse(comparison: Comparison) -> Section:
    blocks = [
        *(f"- {prose(remark)}\n" for remark in trends.remarks(comparison)),
        *(
            f"- {code(case)}, {code(evaluator)}: {prose(scores)}\n"
            for case, evaluator, scores in trends.regressions(comparison)
        ),
    ]
    return Section(
        title="### Worse than the baseline\n\n" if _regressed(comparison) else "### Baseline\n\n",
        noun="line of the comparison",
        blocks=iter(blocks),
        total=len(blocks),
        at_most=MAX_CASES,
        share=0.15,
    )


def _regressed(comparison: Comparison) -> bool:
    return any(trend.regressions for trend in comparison.trends)


def _failed(failed: Sequence[Result]) -> Section:
    return Section(
        title="### Failed\n\n",
        noun="failed check",
        blocks=map(_failure, worst_first(failed)),
        total=len(failed),
        at_most=MAX_CASES,
        share=0.25,
    )


def _failure(result: Result) -> str:
    """A check, and the first of what it missed."""
    said = truncate.outline(check_text.lines(check_text.headline(result)))
    name = f"{code(result.case.id)}, {code(result.evaluator.name)}"
    misses = () if result.judgement is None else result.judgement.misses
    found = "".join(f"  - {prose(miss)}\n" for miss in truncate.listed(misses, MAX_MISSES))
    return f"- {name}: {prose(said)}\n{found}"


def _errored(errored: Sequence[Result], *, several: bool) -> Section:
    groups = by_reason(errored)
    return Section(
        title="### Could not be judged\n\n",
        noun="error",
        blocks=(
            f"- {evaluator_name(config, evaluator, several=several)}: "
            f"{prose(truncate.outline(check_text.lines(reason)))} ({case_names(cases, code)})\n"
            for (config, evaluator, reason), cases in groups.items()
        ),
        total=len(groups),
        at_most=MAX_CASES,
        share=0.1,
    )
