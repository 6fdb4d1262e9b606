"""The page: verdict first, then evaluators, the worst cases, and what else is to be known."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.markdown import MAX_FENCE, code, fence, prose, row
from agentci.model.result import Report, Result
from agentci.reports import github_limits
from agentci.reports.evaluator_stats import rate_in_words, score_in_words
from agentci.reports.locations import file_name
from agentci.reports.report_format import (
    Tally,
    by_reason,
    case_names,
    counts,
    of_status,
    several_configs,
    tallies,
    warnings,
    worst_first,
)
from agentci.reports.spending import spending_line
from agentci.reports.stability import stabilities
from agentci.reports.summary.baseline_table import against
from agentci.reports.summary.chart import chart
from agentci.reports.summary.failed_check import block
from agentci.reports.summary.fragments import evaluator_name, headline, icon, problems, reasons
from agentci.reports.summary.section import Section, sections_text

# Below GitHub's limit, with room for what else the step may write there.
MAX_BYTES = github_limits.SUMMARY_BYTES - 124 * 1024

MAX_CASES = 50
UNFOLDED_CASES = 3
MAX_EVALUATORS = 200


class Summary(Struct, frozen=True, kw_only=True):
    """Verdict, evaluators, worst cases, errors, skips, warnings, problems.

    Attributes:
        max_bytes: of the whole text in UTF-8. Whole blocks are left out, none is cut: GitHub loses
            a summary over its limit, and shows half a table as text.
    """

    max_bytes: int = MAX_BYTES
    name: str = "summary"
    file_name: str = "summary.md"

    def render(self, report: Report) -> Iterator[str]:
        """Markdown; its last line says what was left out."""
        lines = (counts(report), prose(spending_line(report.spending)))
        head = headline(report) + "".join(f"{line}\n\n" for line in lines if line)
        text = head + sections_text(_sections(report), self.max_bytes)
        yield f"{text.rstrip()}\n"


def _sections(report: Report) -> Iterator[Section]:
    """All that stands under the verdict, in the order of the page."""
    yield reasons(report)
    yield _evaluators(report)
    # No word where it is left out: the table says it all.
    yield Section(title="", noun="chart", blocks=iter((chart(report),)), total=0, share=0.01)
    if report.comparison is not None:
        yield against(report.comparison)
    yield _repeats(report.results)
    yield _worst(of_status(report.results, "failed"))
    several = several_configs(report.results)
    yield _errors(of_status(report.results, "errored"), several=several)
    yield _skips(of_status(report.results, "skipped"), several=several)
    yield _warnings(report.results)
    yield problems(report.problems)


def _evaluators(report: Report) -> Section:
    found, several = tallies(report.results), several_configs(report.results)
    columns = ["Evaluator", "Checks", "Passed", "Failed", "Errored", "Skipped"]
    columns += ["Pass rate (95 %)", "Mean score (95 %)", "Bar"]
    ruler = ["---", *["--:"] * 7, "---"]
    if several:
        columns, ruler = ["Config", *columns], ["---", *ruler]
    return Section(
        title=row(columns) + row(ruler),
        noun="evaluator",
        blocks=(_evaluator(tally, several=several, shut=report.decision.shuts) for tally in found),
        total=len(found),
        at_most=MAX_EVALUATORS,
        share=0.2,
    )


def _evaluator(tally: Tally, *, several: bool, shut: bool) -> str:
    totals, result, standing = tally.totals, tally.any, tally.standing
    counts = (totals.checks, totals.passed, totals.failed, totals.errored, totals.skipped)
    name = f"{code(result.evaluator.name)}{'' if result.evaluator.required else ' (advisory)'}"
    cells = [
        f"{icon(tally, shut=shut)} {name}",
        *(f"{each:,}" for each in counts),
        rate_in_words(standing),
        score_in_words(totals.score, standing),
        prose(result.evaluator.bar),
    ]
    return row([code(file_name(result.config)), *cells] if several else cells)


def _repeats(results: tuple[Result, ...]) -> Section:
    found = tuple(stabilities(results))
    return Section(
        title="### Repeats\n\n",
        noun="repeated evaluator",
        blocks=(f"- {prose(each.line)}\n" for each in found),
        total=len(found),
    )


def _worst(failed: Sequence[Result]) -> Section:
    ordered = worst_first(failed)
    return Section(
        title="### Worst cases\n\n",
        noun="failed check",
        blocks=(block(result, unfolded=i < UNFOLDED_CASES) for i, result in enumerate(ordered)),
        total=len(failed),
        at_most=MAX_CASES,
        share=0.49,
    )


def _errors(errored: Sequence[Result], *, several: bool) -> Section:
    groups = by_reason(errored)
    return Section(
        title="### Could not be judged\n\n",
        noun="error",
        blocks=(
            f"{evaluator_name(config, evaluator, several=several)}: {case_names(cases, code)}\n\n"
            f"{fence(truncate.middle(reason, MAX_FENCE))}\n"
            for (config, evaluator, reason), cases in groups.items()
        ),
        total=len(groups),
    )


def _skips(skipped: Sequence[Result], *, several: bool) -> Section:
    groups = by_reason(skipped)
    return Section(
        title="### Nothing to judge\n\n",
        noun="skip reason",
        blocks=(
            f"- {evaluator_name(config, evaluator, several=several)}: "
            f"{prose(reason)} ({case_names(cases, code)})\n"
            for (config, evaluator, reason), cases in groups.items()
        ),
        total=len(groups),
    )


def _warnings(results: Sequence[Result]) -> Section:
    found = warnings(results)
    return Section(
        title="### Warnings\n\n",
        noun="warning",
        blocks=(f"- {prose(text)} ({case_names(cases, code)})\n" for text, cases in found.items()),
        total=len(found),
    )
