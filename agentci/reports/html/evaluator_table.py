"""Tables of evaluators: how their checks ended, and how that was in the baseline."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

from agentci._util.text import truncate
from agentci.model.comparison import Change, Comparison, Trend
from agentci.model.result import Report, Result, Status
from agentci.reports import comparison as trends
from agentci.reports.evaluator_stats import rate_in_words, score_in_words
from agentci.reports.html.charts import change, histogram
from agentci.reports.html.markup import Markup, joined, tag
from agentci.reports.locations import file_name
from agentci.reports.report_format import Tally, of_status, several_configs, tallies

MAX_EVALUATORS = 500
MAX_CHANGES = 100
ENDS = ("Passed", "Failed", "Errored", "Skipped")


def evaluators(report: Report) -> Markup:
    """One row an evaluator of a config, with the distribution of its scores."""
    found, several = tallies(report.results), several_configs(report.results)
    if not found:
        return Markup("")
    columns = ("Evaluator", "Scores", "Mean (95 %)", "Bar", "Pass rate (95 %)", *ENDS)
    return tag(
        "section",
        tag("h2", "Evaluators"),
        _table(
            "Evaluators",
            ("Config", *columns) if several else columns,
            [_evaluator(tally, several=several) for tally in found[:MAX_EVALUATORS]],
        ),
        _more(len(found) - MAX_EVALUATORS),
    )


def against(report: Report) -> Markup:
    """The run beside its baseline; nothing where it has none."""
    comparison = report.comparison
    if comparison is None:
        return Markup("")
    ids = {(each.config, each.evaluator.name, each.case.id): each.id for each in report.results}
    rows = [_trend(each, comparison) for each in comparison.trends]
    name, *others = (each.capitalize() for each in trends.COLUMNS)
    return tag(
        "section",
        tag("h2", "Against the baseline ", tag("code", comparison.baseline)),
        _table("Against the baseline", (name, "Change", *others), rows) if rows else "",
        tag("ul", *(tag("li", remark) for remark in trends.remarks(comparison))),
        *_regressions(comparison, ids),
    )


def _evaluator(tally: Tally, *, several: bool) -> Sequence[str]:
    totals, result, standing = tally.totals, tally.any, tally.standing
    advisory = "" if result.evaluator.required else " (advisory)"
    counts = {
        "passed": totals.passed,
        "failed": totals.failed,
        "errored": totals.errored,
        "skipped": totals.skipped,
    }
    cells = [
        joined(_filtered(result.evaluator.name, result), advisory),
        histogram(_scores(tally, "passed"), _scores(tally, "failed"), result.evaluator.threshold),
        score_in_words(totals.score, standing),
        result.evaluator.bar,
        rate_in_words(standing),
        *(
            _filtered(f"{amount:,}", result, status=status) if amount else "0"
            for status, amount in counts.items()
        ),
    ]
    return [file_name(result.config), *cells] if several else cells


def _scores(tally: Tally, status: Status) -> list[float]:
    judgements = (result.judgement for result in of_status(tally.results, status))
    return [each.score for each in judgements if each is not None and each.score is not None]


def _filtered(words: str, result: Result, **only: str) -> Markup:
    """A link to the checks of an evaluator."""
    wanted = {"evaluator": result.evaluator.name, "config": file_name(result.config), **only}
    return tag("a", words, href=_hash(wanted))


def _trend(trend: Trend, comparison: Comparison) -> Sequence[str]:
    name, *others = trends.cells(trend, comparison)
    return [name, change(trend.before, trend.after), *others]


def _regressions(
    comparison: Comparison, ids: Mapping[tuple[str, str, str], str]
) -> Iterator[Markup]:
    changes = [(trend, each) for trend in comparison.trends for each in trend.regressions]
    if not changes:
        return
    yield tag("h3", "Worse than the baseline")
    yield tag(
        "ul",
        *(
            _regression(trends.name(trend, comparison), trend, each, ids)
            for trend, each in changes[:MAX_CHANGES]
        ),
    )
    yield _more(len(changes) - MAX_CHANGES)


def _regression(
    evaluator: str, trend: Trend, each: Change, ids: Mapping[tuple[str, str, str], str]
) -> Markup:
    name = f"{each.case} \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} {evaluator}"
    check = ids.get((trend.config, trend.evaluator, each.case))
    link = name if check is None else tag("a", name, href=_hash({"check": check}))
    return tag("li", link, f": {trends.scores(each)}")


def _hash(state: Mapping[str, str]) -> str:
    """As the script reads it."""
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


def _more(left: int) -> Markup:
    return tag("p", truncate.more(left)) if left > 0 else Markup("")
