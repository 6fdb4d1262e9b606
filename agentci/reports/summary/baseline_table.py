"""The run beside its baseline: a table, what is to be known of it, and what got worse."""

from collections.abc import Iterator

from agentci._util.text.markdown import code, prose, row
from agentci.model.comparison import Comparison
from agentci.reports import comparison as trends
from agentci.reports.summary.section import Section

_RULER = ["---", *["--:"] * 5, "---"]


def against(comparison: Comparison) -> Section:
    """The section of the page."""
    blocks = list(_blocks(comparison))
    return Section(
        title=f"### Against the baseline {code(comparison.baseline)}\n\n{_table(comparison)}",
        noun="line of the comparison",
        blocks=iter(blocks),
        total=len(blocks),
        share=0.15,
    )


def _table(comparison: Comparison) -> str:
    if not comparison.trends:
        return ""
    rows = (trends.cells(trend, comparison) for trend in comparison.trends)
    body = "".join(row([code(name), *map(prose, others)]) for name, *others in rows)
    return f"{row([each.capitalize() for each in trends.COLUMNS])}{row(_RULER)}{body}\n"


def _blocks(comparison: Comparison) -> Iterator[str]:
    for remark in trends.remarks(comparison):
        yield f"- {prose(remark)}\n"
    for case, evaluator, scores in trends.regressions(comparison):
        yield f"- worse: {code(case)}, {code(evaluator)}: {prose(scores)}\n"
    if not comparison.refused:
        yield "\n"
