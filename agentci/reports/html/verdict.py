"""The head of the page: the verdict, why it is so, and how many checks ended in which way."""

from agentci.model.result import Report
from agentci.reports.html.charts import shares
from agentci.reports.html.markup import Markup, tag
from agentci.reports.report_format import Verdict, conclusion, counts, verdict

_KINDS: dict[Verdict, tuple[str, str]] = {
    "open": ("passed", "\N{CHECK MARK}"),
    "partial": ("passed", "\N{CHECK MARK}"),
    "shut": ("failed", "\N{MULTIPLICATION X}"),
    "error": ("errored", "!"),
    "invalid": ("errored", "!"),
}


def header(report: Report) -> Markup:
    """What somebody who reads no further has to know."""
    kind, icon = _KINDS[verdict(report.decision)]
    totals = report.totals
    return tag(
        "header",
        tag("h1", tag("span", icon, class_="icon", aria_hidden="true"), f" {conclusion(report)}"),
        *(tag("p", why, class_="why") for why in report.decision.why[:1]),
        *_others(report.decision.why[1:]),
        tag("p", counts(report)),
        shares(
            [
                ("passed", totals.passed),
                ("failed", totals.failed),
                ("errored", totals.errored),
                ("skipped", totals.skipped),
            ]
        ),
        class_=f"verdict {kind}",
    )


def _others(reasons: tuple[str, ...]) -> tuple[Markup, ...]:
    return (tag("ul", *(tag("li", why) for why in reasons)),) if reasons else ()
