"""The page: what everybody sees without a script, then the data and the script for the rest."""

from collections.abc import Iterator

from msgspec import Struct

from agentci.model.result import Report
from agentci.reports.html import assets
from agentci.reports.html.data import exchanges, page_data
from agentci.reports.html.evaluator_table import against, evaluators
from agentci.reports.html.findings import findings
from agentci.reports.html.markup import Markup, joined, tag, text
from agentci.reports.html.verdict import header
from agentci.reports.report_format import conclusion
from agentci.version import __version__


class HtmlReport(Struct, frozen=True, kw_only=True):
    """Everything about each check, to look at, search and link to; it asks nothing of a network.

    Text of others is never HTML: here it is escaped, and the script makes nothing but text nodes
    of it. The policy would let no other script run anyway.
    """

    tool_version: str = __version__
    name: str = "report"
    file_name: str = "report.html"

    def render(self, report: Report) -> Iterator[str]:
        """HTML; the data are JSON of which an element ``script`` is not ended by anything."""
        style, script = assets.style(), assets.script()
        policy = (
            f"default-src 'none'; script-src {script.source}; style-src {style.source}; "
            "base-uri 'none'; form-action 'none'"
        )
        yield (
            "<!doctype html>\n"
            '<html lang="en">\n'
            '<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="referrer" content="no-referrer">\n'
            f"<title>{text(conclusion(report))} - agentci</title>\n"
            f"<style>{style.text}</style>\n"
            '<a class="skip" href="#checks">Skip to the checks</a>\n'
        )
        yield f"{self._body(report)}\n"
        yield '<script type="application/json" id="data">'
        yield from page_data(report)
        yield "</script>\n"
        for each in exchanges(report):
            yield f"{each}\n"
        yield f'<script type="module">{script.text}</script>\n</html>\n'

    def _body(self, report: Report) -> Markup:
        return joined(
            tag(
                "main",
                tag(
                    "div",
                    header(report),
                    evaluators(report),
                    against(report),
                    *findings(report),
                    id="overview",
                ),
                tag("section", id="check", hidden=""),
            ),
            tag("footer", f"agentci {self.tool_version}"),
        )
