"""Job summary in Markdown for the page of a GitHub workflow run."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.escape import (
    MAX_FENCE,
    markdown_code,
    markdown_details,
    markdown_fence,
    markdown_html,
    markdown_prose,
    markdown_row,
)
from agentci._util.text.format import format_count, format_number
from agentci.gate.comparison import find_lost_status, find_means
from agentci.model.gate import Comparison, EvaluatorComparison
from agentci.model.result import CheckResult, Report
from agentci.reports import cause_sections, groups_and_totals, sections, workflow_commands
from agentci.reports import comparison as baseline_text
from agentci.reports.case_counts import find_missing
from agentci.reports.check_text import format_outcome, low_scoring_turns
from agentci.reports.comparison import find_compared
from agentci.reports.failures import Cause
from agentci.reports.groups_and_totals import format_mean_score, format_pass_rate
from agentci.reports.outcomes import summarize_repeats
from agentci.reports.policy import make_policy_sections
from agentci.reports.policy_effects import explain_policy
from agentci.reports.tool_calls import TurnCalls, find_unmatched_turns

# A single bar adds nothing to its number; more than 30 are too thin to tell apart.
MIN_BARS: Final = 2
MAX_BARS: Final = 30
MAX_NAME_CHARACTERS: Final = 40

_EDGES, _BAR = 100, 32
# Blue and amber: distinguishable with colour blindness, on light and dark backgrounds.
_PALETTE: Final = "#4c8dff, #d9930d"
# Other characters may have a meaning in Mermaid even inside quotes: directives, entities, tags.
_UNSAFE: Final = re.compile(r"[^\w .,:/+()-]+")


class _ChartBar(Struct, frozen=True):
    config: str
    evaluator: str
    score: float | None
    before: float | None = None


def render_chart(report: Report) -> str:
    """Render a Mermaid chart of mean scores; "" if there are too few or too many bars.

    With a baseline, both scores are means over the checks that both runs have.
    """
    several = groups_and_totals.has_several_configs(report.results)
    comparisons = report.comparison.evaluators if report.comparison else ()
    paired = [bar for bar in map(_make_paired_bar, comparisons) if _is_drawn(bar.before)]
    paired = [bar for bar in paired if _is_drawn(bar.score)]
    if MIN_BARS <= len(paired) <= MAX_BARS:
        title = "Mean score of the checks in both runs (line: baseline)"
        return _render_mermaid(title, paired, several=several)
    bars = [
        _ChartBar(one.representative.config, one.representative.evaluator.name, score)
        for one in groups_and_totals.group_by_evaluator(report.results)
        if _is_drawn(score := groups_and_totals.choose_mean(one.totals))
    ]
    return (
        _render_mermaid("Mean score", bars, several=several)
        if MIN_BARS <= len(bars) <= MAX_BARS
        else ""
    )


def _make_paired_bar(compared: EvaluatorComparison) -> _ChartBar:
    """Make the bar of an evaluator; one that evaluates nothing any more has 0, and says why."""
    lost = find_lost_status(compared)
    name = f"{compared.evaluator} ({lost})" if lost else compared.evaluator
    before, after = find_means(compared)
    return _ChartBar(compared.config, name, 0.0 if lost else after, before)


def _is_drawn(score: float | None) -> bool:
    return score is not None and math.isfinite(score)


def _render_mermaid(title: str, bars: Sequence[_ChartBar], *, several: bool) -> str:
    init = {
        "xyChart": {"width": 800, "height": _EDGES + _BAR * len(bars)},
        "themeVariables": {"xyChart": {"plotColorPalette": _PALETTE}},
    }
    lines = [
        f"%%{{init: {json.dumps(init)}}}%%",
        "xychart-beta horizontal",
        f'title "{title}"',
        f"x-axis [{', '.join(_names(bars, several=several))}]",
        "y-axis 0 --> 1",
        f"bar [{_numbers(bar.score for bar in bars)}]",
    ]
    if any(bar.before is not None for bar in bars):
        lines.append(f"line [{_numbers(bar.before for bar in bars)}]")
    return "\n".join(["```mermaid", *lines, "```\n"])


def _numbers(scores: Iterable[float | None]) -> str:
    return ", ".join(format_number(score) for score in scores if score is not None)


def _names(bars: Iterable[_ChartBar], *, several: bool) -> Iterable[str]:
    """Yield a unique name per bar: Mermaid draws bars with the same name over each other."""
    seen = Counter[str]()
    texts: list[str] = []
    for bar in bars:
        config = f" ({groups_and_totals.format_path(bar.config)})" if several else ""
        texts.append(" ".join(_UNSAFE.sub(" ", f"{bar.evaluator}{config}").split()))
    for name in truncate.distinct(texts, MAX_NAME_CHARACTERS):
        seen[name] += 1
        yield f'"{name} ({seen[name]})"' if seen[name] > 1 or not name else f'"{name}"'


_RULER = ["---", "--:", "--:", "--:", "---", "---"]


def make_baseline_section(
    comparison: Comparison, reasons: Sequence[str], missing: frozenset[str]
) -> sections.Section:
    """Make the section that compares the run with its baseline.

    Args:
        reasons: as in ``list_remarks``.
        missing: as for ``drop_missing``.
    """
    blocks = list(_render_remarks(comparison, reasons))
    return sections.Section(
        name="comparison",
        title=(
            f"### Comparison with the baseline {markdown_code(comparison.baseline)}\n\n"
            f"{_table(comparison, missing)}"
        ),
        noun="comparison line",
        blocks=iter(blocks),
        total=len(blocks),
        share=0.15,
    )


def _table(comparison: Comparison, missing: frozenset[str]) -> str:
    if not comparison.evaluators:
        return ""
    rows = baseline_text.list_rows(comparison, markdown_code, missing)
    body = "".join(markdown_row([name, *map(markdown_prose, others)]) for name, *others in rows)
    head = markdown_row([each.capitalize() for each in baseline_text.COLUMNS])
    return f"{head}{markdown_row(_RULER)}{body}\n"


def _render_remarks(comparison: Comparison, reasons: Sequence[str]) -> Iterator[str]:
    for remark in baseline_text.list_remarks(comparison, reasons=reasons):
        yield f"- {markdown_prose(remark)}\n"
    if not comparison.no_baseline:
        yield "\n"


MAX_MISSES = 20
MAX_TURNS = 5
MAX_CHECK_BYTES = 64 * 1024


def render_failed_check(result: CheckResult) -> str:
    """Render all that is known of a failed check, as a folded block of ``MAX_CHECK_BYTES``."""
    title = f"<code>{markdown_html(result.evaluator.name)}</code>: "
    title += markdown_html(format_outcome(result))
    whole = markdown_details(title, "\n".join(_findings(result)))
    if len(whole.encode()) <= MAX_CHECK_BYTES:
        return whole
    return markdown_details(title, "Too long to show here; see `results.json`.")


def _findings(result: CheckResult) -> Iterator[str]:
    recording = markdown_code(str(result.case.recording))
    yield f"Trace {recording}, config {markdown_code(str(result.evaluator.place))}\n"
    if result.judgement is None:
        return
    if misses := truncate.truncate_list(result.judgement.misses, MAX_MISSES):
        yield "".join(f"- {markdown_prose(miss)}\n" for miss in misses)
    for turn in find_unmatched_turns(result.judgement.details)[:MAX_TURNS]:
        yield _render_calls(turn)
    if turns := low_scoring_turns(result):
        yield "".join(f"- {markdown_prose(turn)}\n" for turn in turns)
    if result.judgement.reasoning:
        yield markdown_fence(result.judgement.reasoning)


def _render_calls(turn: TurnCalls) -> str:
    head = markdown_row(
        [f"{turn.title[0].upper()}{turn.title[1:]}", "Expected", "Actual"]
    ) + markdown_row(["---"] * 3)
    rows = (
        markdown_row(
            [
                markdown_prose(each.label),
                each.expected and markdown_code(each.expected),
                each.actual and markdown_code(each.actual),
            ]
        )
        for each in turn.rows
    )
    more = markdown_row([f"{turn.hidden:,} more", "", ""]) if turn.hidden else ""
    return f"{head}{''.join(rows)}{more}"


# Below GitHub's limit, which leaves room for other output of the step.
MAX_BYTES = workflow_commands.SUMMARY_BYTES - 124 * 1024

MAX_CASES = 50
UNFOLDED_CASES = 10
MAX_CHANGED_RUNS = 10
MAX_EVALUATORS = 200


class SummaryReport(Struct, frozen=True, kw_only=True):
    """Decision, evaluators, failed, errored and skipped checks, warnings and problems.

    Attributes:
        max_bytes: size limit of the text in UTF-8. Whole blocks are omitted and none is cut: GitHub
            drops a summary over its limit, and shows half a table as text.
        report_url, arrange: as in ``CommentReport``.
    """

    max_bytes: int = MAX_BYTES
    report_url: str = ""
    arrange: sections.Arrange = sections.join_blocks
    name: str = "summary"
    file_name: str = "summary.md"

    def render(self, report: Report) -> Iterator[str]:
        """Yield Markdown; the last line counts what is omitted."""
        head = sections.render_head(report, report.run.url)
        if spending := markdown_prose(groups_and_totals.format_spending(report.spending)):
            head += f"{spending}\n\n"
        footer = _render_footer(report, self.report_url)
        blocks = sections.render_page(
            head, _sections(report, self.report_url), footer, self.max_bytes
        )
        yield f"{self.arrange(self.name, blocks, report).rstrip()}\n"


def _render_footer(report: Report, report_url: str) -> str:
    amounts = sections.render_further_amounts(report)
    link = f"[Report]({report_url})" if report_url else ""
    return "".join(f"{line}\n\n" for line in (amounts, link) if line)


def _sections(report: Report, report_url: str) -> Iterator[sections.Section]:
    """Yield the sections below the verdict: those of the comment, then every check."""
    several = groups_and_totals.has_several_configs(report.results)
    yield sections.make_reasons_section(report)
    if (policy := explain_policy(report)) is not None:
        yield from make_policy_sections(policy)

    def render_details(cause: Cause) -> str:
        return "".join(render_failed_check(each.result) for each in cause.checks)

    layout = cause_sections.Layout(causes=UNFOLDED_CASES)
    yield from cause_sections.make_cause_sections(
        report, layout, report_url=report_url, render_details=render_details
    )
    yield from cause_sections.make_lost_sections(
        report, cause_sections.MAX_CASES, report_url=report_url
    )
    yield cause_sections.make_known_section(
        report, report_url=report_url, render_details=render_details
    )
    yield cause_sections.make_changed_runs_section(report, report_url, MAX_CHANGED_RUNS)
    yield _errors(groups_and_totals.filter_by_status(report.results, "errored"), several=several)
    yield _evaluators(report)
    # With total 0 an omitted chart is not counted: the table has the same numbers.
    yield sections.Section(
        name="evaluators",
        title="",
        noun="chart",
        blocks=iter((render_chart(report),)),
        total=0,
        share=0.01,
    )
    yield sections.make_lower_scores_section(report, report_url)
    if report.comparison is not None:
        yield make_baseline_section(
            report.comparison, report.decision.reasons, find_missing(report)
        )
    yield sections.make_notes_section(report)
    yield _repeats(report.results)
    yield sections.make_skips_section(report)
    yield sections.make_other_words_section(report, report_url)
    yield sections.make_warnings_section(groups_and_totals.group_warnings(report))
    yield sections.make_problems_section(report.problems, report)


def _evaluators(report: Report) -> sections.Section:
    found, several = (
        groups_and_totals.group_by_evaluator(report.results),
        groups_and_totals.has_several_configs(report.results),
    )
    columns = ["Evaluator", "Passed", "Pass rate (95% interval)", "Mean score (95% interval)"]
    columns.append("Threshold")
    ruler = ["---", *["--:"] * 3, "---"]
    if several:
        columns, ruler = ["Config", *columns], ["---", *ruler]
    return sections.Section(
        name="evaluators",
        title=markdown_row(columns) + markdown_row(ruler),
        end=f"{groups_and_totals.format_counts(report)}\n\n" if found else "",
        noun="evaluator",
        blocks=(_render_row(each, report, several=several) for each in found),
        total=len(found),
        max_items=MAX_EVALUATORS,
        share=0.2,
    )


def _render_row(checks: groups_and_totals.EvaluatorChecks, report: Report, *, several: bool) -> str:
    totals, result, stats = checks.totals, checks.representative, checks.stats
    others = [
        *([format_count(totals.errored, "error")] if totals.errored else []),
        *([f"{totals.skipped:,} skipped"] if totals.skipped else []),
    ]
    compared = find_compared(report.comparison, result.config, result.evaluator.name)
    name = (
        f"{markdown_code(result.evaluator.name)}"
        f"{'' if result.evaluator.required else baseline_text.ADVISORY}"
    )
    cells = [
        f"{sections.choose_icon(checks, report, compared)} {name}",
        groups_and_totals.format_passed(totals.passed, totals.passed + totals.failed, others),
        format_pass_rate(stats),
        format_mean_score(groups_and_totals.choose_mean(totals), stats)
        or groups_and_totals.name_no_score(totals),
        markdown_prose(groups_and_totals.format_thresholds(result, report)),
    ]
    return markdown_row(
        [markdown_code(groups_and_totals.format_path(result.config)), *cells] if several else cells
    )


def _repeats(results: tuple[CheckResult, ...]) -> sections.Section:
    found = tuple(summarize_repeats(results))
    return sections.Section(
        title="### Repeats\n\n",
        noun="repeated evaluator",
        blocks=(f"- {markdown_prose(each.line)}\n" for each in found),
        total=len(found),
    )


def _errors(errored: Sequence[CheckResult], *, several: bool) -> sections.Section:
    groups = groups_and_totals.group_by_cases(errored)
    return sections.Section(
        name="errors",
        title="### Errored checks\n\n",
        noun="error",
        blocks=(
            f"{sections.format_group_name(each, markdown_code, several=several)}: "
            f"{each.format_checks(markdown_code, markdown_code)}\n\n"
            f"{markdown_fence(truncate.middle(each.reason, MAX_FENCE))}\n"
            for each in groups
        ),
        total=len(groups),
    )
