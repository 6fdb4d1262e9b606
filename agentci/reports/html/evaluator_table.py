"""Tables of evaluators: results of this run, and the comparison with the baseline."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

from agentci._util.text import truncate
from agentci.model.gate import CheckChange, Comparison, EvaluatorComparison
from agentci.model.result import CheckResult, Report, Status
from agentci.reports import comparison as baseline_text
from agentci.reports.html.charts import make_change_chart, make_histogram
from agentci.reports.html.markup import Markup, join_markup, tag
from agentci.reports.report_format import (
    EvaluatorChecks,
    filter_by_status,
    format_mean_score,
    format_pass_rate,
    format_path,
    group_by_evaluator,
    has_several_configs,
)

MAX_EVALUATORS = 500
MAX_CHANGES = 100
STATUS_COLUMNS = ("Passed", "Failed", "Errored", "Skipped")


def render_evaluators(report: Report) -> Markup:
    """Render one row per evaluator and config, with a histogram of its scores."""
    found, several = group_by_evaluator(report.results), has_several_configs(report.results)
    if not found:
        return Markup("")
    columns = (
        *("Evaluator", "Scores", "Mean score (95 % CI)", "Threshold", "Pass rate (95 % CI)"),
        *STATUS_COLUMNS,
    )
    return tag(
        "section",
        tag("h2", "Evaluators"),
        _table(
            "Evaluators",
            ("Config", *columns) if several else columns,
            [_make_row(each, several=several) for each in found[:MAX_EVALUATORS]],
        ),
        _render_more(len(found) - MAX_EVALUATORS),
    )


def render_comparison(report: Report) -> Markup:
    """Render the comparison with the baseline; empty without a baseline."""
    comparison = report.comparison
    if comparison is None:
        return Markup("")
    ids = {(each.config, each.evaluator.name, each.case.id): each.id for each in report.results}
    rows = [_make_comparison_row(each, comparison) for each in comparison.evaluators]
    name, *others = (each.capitalize() for each in baseline_text.COLUMNS)
    return tag(
        "section",
        tag("h2", "Comparison with the baseline ", tag("code", comparison.baseline)),
        _table("Comparison with the baseline", (name, "Change", *others), rows) if rows else "",
        tag("ul", *(tag("li", remark) for remark in baseline_text.list_remarks(comparison))),
        *_regressions(comparison, ids),
    )


def _make_row(checks: EvaluatorChecks, *, several: bool) -> Sequence[str]:
    totals, result, stats = checks.totals, checks.representative, checks.stats
    advisory = "" if result.evaluator.required else " (advisory)"
    counts = {
        "passed": totals.passed,
        "failed": totals.failed,
        "errored": totals.errored,
        "skipped": totals.skipped,
    }
    cells = [
        join_markup(_link_checks(result.evaluator.name, result), advisory),
        make_histogram(
            _scores(checks, "passed"), _scores(checks, "failed"), result.evaluator.threshold
        ),
        format_mean_score(totals.score, stats),
        result.evaluator.criterion,
        format_pass_rate(stats),
        *(
            _link_checks(f"{amount:,}", result, status=status) if amount else "0"
            for status, amount in counts.items()
        ),
    ]
    return [format_path(result.config), *cells] if several else cells


def _scores(checks: EvaluatorChecks, status: Status) -> list[float]:
    results = filter_by_status(checks.results, status)
    return [each.score for each in results if each.score is not None]


def _link_checks(text: str, result: CheckResult, **filters: str) -> Markup:
    state = {"evaluator": result.evaluator.name, "config": format_path(result.config), **filters}
    return tag("a", text, href=_make_fragment(state))


def _make_comparison_row(compared: EvaluatorComparison, comparison: Comparison) -> Sequence[str]:
    name, *others = baseline_text.format_cells(compared, comparison)
    return [name, make_change_chart(compared.before, compared.after), *others]


def _regressions(
    comparison: Comparison, ids: Mapping[tuple[str, str, str], str]
) -> Iterator[Markup]:
    changes = [(compared, each) for compared in comparison.evaluators for each in compared.worse]
    if not changes:
        return
    yield tag("h3", "Worse than the baseline")
    yield tag(
        "ul",
        *(
            _regression(baseline_text.format_evaluator(compared, comparison), compared, each, ids)
            for compared, each in changes[:MAX_CHANGES]
        ),
    )
    yield _render_more(len(changes) - MAX_CHANGES)


def _regression(
    evaluator: str,
    compared: EvaluatorComparison,
    each: CheckChange,
    ids: Mapping[tuple[str, str, str], str],
) -> Markup:
    name = f"{each.case} \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} {evaluator}"
    check = ids.get((compared.config, compared.evaluator, each.case))
    link = name if check is None else tag("a", name, href=_make_fragment({"check": check}))
    return tag("li", link, f": {baseline_text.format_scores(each)}")


def _make_fragment(state: Mapping[str, str]) -> str:
    """Encode page state as a URL fragment, in the format that the script reads."""
    return f"#{urlencode(state, errors='replace')}"


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", *(tag("th", each, scope="col") for each in columns))),
            tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows)),
        ),
        class_="wide",
        tabindex=0,
        role="region",
        aria_label=title,
    )


def _render_more(left: int) -> Markup:
    return tag("p", truncate.format_omitted(left)) if left > 0 else Markup("")
