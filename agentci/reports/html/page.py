"""HTML report: assets, the part for readers without scripts, and the complete page."""

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci.model.result import CheckResult, Report
from agentci.reports.check_text import format_outcome, list_findings
from agentci.reports.groups_and_totals import (
    filter_by_status,
    format_counts,
    format_problem,
    sort_worst_first,
)
from agentci.reports.html.data import PageData
from agentci.reports.html.markup import Markup, escape_text, join_markup, tag
from agentci.reports.verdict import format_conclusion, format_title, list_reasons
from agentci.version import __version__

# What `make page` builds from the sources, which are one module in this order: pure functions
# first, then views.
SCRIPT: Final = "built/report.js"
SCRIPTS: Final = (
    *("format.js", "tool_calls.js", "text_diff.js", "cases.js", "payload.js"),
    *("elements.js", "parts.js", "page_data.js", "verdict.js", "changes.js", "matrix.js"),
    *("transcript_view.js", "check_view.js", "turn_view.js", "timeline.js", "case_view.js"),
    *("evaluator_views.js", "message_view.js", "report.js"),
)
STYLE: Final = "report.css"
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_SPACE: Final = re.compile(r"\s*([{};,>!])\s*|(?<=:)\s+")


class Asset(Struct, frozen=True, kw_only=True):
    """A bundled text and its source expression for the content security policy."""

    text: str
    csp_source: str


@cache
def load_style() -> Asset:
    """Load the style sheet, without comments and the space that only its readers need."""
    return _asset(_SPACE.sub(r"\1", _COMMENT.sub("", _read(STYLE))).replace(";}", "}"))


@cache
def load_script() -> Asset:
    """Load the script module."""
    return _asset(_read(SCRIPT))


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _asset(text: str) -> Asset:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return Asset(text=text, csp_source=f"'sha256-{digest}'")


MAX_CHECKS: Final = 20
MAX_PROBLEMS: Final = 100
MAX_TEXT: Final = 4_000


def render_plain_report(report: Report) -> Markup:
    """Render the verdict, the problems and the worst checks, for readers without scripts."""
    failed = sort_worst_first(filter_by_status(report.results, "failed"))
    checks = [*failed, *filter_by_status(report.results, "errored")]
    left = len(checks) - MAX_CHECKS
    problems = truncate.truncate_list(list(map(format_problem, report.problems)), MAX_PROBLEMS)
    counts = format_counts(report)
    return tag(
        "main",
        tag("h1", format_conclusion(report)),
        *(tag("p", reason) for reason in (*list_reasons(report), *report.decision.notes)),
        tag("p", counts) if counts else "",
        *(tag("p", problem) for problem in problems),
        *map(_render_check, checks[:MAX_CHECKS]),
        tag("p", truncate.format_omitted(left)) if left > 0 else "",
        tag("p", "Enable scripts to see all cases, conversations and evaluators."),
        class_="plain",
    )


def _render_check(result: CheckResult) -> Markup:
    findings = truncate.characters("\n".join(list_findings(result)), MAX_TEXT)
    return tag(
        "article",
        tag("h2", join_markup(result.case.id, " > "), result.evaluator.name),
        tag("p", truncate.middle(format_outcome(result), MAX_TEXT)),
        tag("pre", findings) if findings else "",
    )


class HtmlReport(Struct, frozen=True, kw_only=True):
    """A self-contained page of all cases, with search and links; it makes no network requests.

    Text from evaluators, traces and configs is never HTML: it is escaped here, and the script
    inserts it as text nodes only. The content security policy also blocks every other script.
    """

    tool_version: str = __version__
    name: str = "report"
    file_name: str = "report.html"

    def render(self, report: Report) -> Iterator[str]:
        """Yield HTML; ``<`` is escaped in embedded JSON, so it cannot end its script element."""
        style, script = load_style(), load_script()
        policy = (
            f"default-src 'none'; script-src {script.csp_source}; style-src {style.csp_source}; "
            "base-uri 'none'; form-action 'none'"
        )
        yield (
            "<!doctype html>\n"
            '<html lang="en">\n'
            '<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="referrer" content="no-referrer">\n'
            f"<title>{escape_text(format_conclusion(report))} - agentci</title>\n"
            f"<style>{style.text}</style>\n"
            "<body>\n"
        )
        yield f"{tag('noscript', render_plain_report(report))}\n"
        # In view while the rest is read, which may take seconds over a network.
        loading = tag(
            "p", f"{format_title(report)} - loading \N{HORIZONTAL ELLIPSIS}", id="loading"
        )
        yield f"{loading}\n"
        data = PageData(report, tool_version=self.tool_version)
        for each in data.render_blocks():
            yield f"{each}\n"
        for each in data.render_transcripts():
            yield f"{each}\n"
        yield '<script type="application/json" id="data">'
        yield from data.render_index()
        yield "</script>\n"
        yield f'<script type="module">{script.text}</script>\n</html>\n'
