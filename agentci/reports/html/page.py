"""HTML report: assets, header, findings and the complete page."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.model.problem import Problem
from agentci.model.result import CheckResult, Provenance, Report
from agentci.reports.check_text import format_outcome, list_findings
from agentci.reports.html.charts import make_share_bar
from agentci.reports.html.data import render_page_data, render_transcripts
from agentci.reports.html.evaluator_table import render_comparison, render_evaluators
from agentci.reports.html.markup import Markup, escape_text, join_markup, tag
from agentci.reports.html.policy_table import render_policy
from agentci.reports.report_format import (
    Verdict,
    filter_by_status,
    format_case_names,
    format_conclusion,
    format_counts,
    format_path,
    format_problem_text,
    get_verdict,
    group_by_reason,
    group_warnings,
    is_invalid_input,
    list_reasons,
    sort_worst_first,
)
from agentci.reports.stability import summarize_repeats
from agentci.version import __version__

# The order of concatenation into one module: pure functions first, then views.
SCRIPTS: Final = (
    *("checks.js", "tool_calls.js", "payload.js"),
    *("elements.js", "transcript_view.js", "check_view.js"),
    *("state.js", "table.js", "report.js"),
)
STYLE: Final = "report.css"


class Asset(Struct, frozen=True, kw_only=True):
    """A bundled text and its source expression for the content security policy."""

    text: str
    csp_source: str


@cache
def load_style() -> Asset:
    """Load the style sheet."""
    return _asset(_read(STYLE))


@cache
def load_script() -> Asset:
    """Load the script module."""
    return _asset("\n".join(map(_read, SCRIPTS)))


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _asset(text: str) -> Asset:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return Asset(text=text, csp_source=f"'sha256-{digest}'")


_VERDICT_STYLES: dict[Verdict, tuple[str, str]] = {
    "passed": ("passed", "\N{CHECK MARK}"),
    "partial": ("passed", "\N{CHECK MARK}"),
    "failed": ("failed", "\N{MULTIPLICATION X}"),
    "error": ("errored", "!"),
    "invalid": ("errored", "!"),
}


def render_header(report: Report) -> Markup:
    """Render the verdict, its reasons and the counts."""
    kind, icon = _VERDICT_STYLES[get_verdict(report.decision)]
    totals, others = report.totals, list_reasons(report)[1:]
    return tag(
        "header",
        tag(
            "h1",
            tag("span", icon, class_="icon", aria_hidden="true"),
            f" {format_conclusion(report)}",
        ),
        *(tag("p", reason, class_="why") for reason in list_reasons(report)[:1]),
        tag("ul", *(tag("li", reason) for reason in others)) if others else "",
        tag("p", format_counts(report)) if report.results else "",
        make_share_bar(
            [
                ("passed", totals.passed),
                ("failed", totals.failed),
                ("errored", totals.errored),
                ("skipped", totals.skipped),
            ]
        ),
        class_=f"verdict {kind}",
    )


MAX_ITEMS = 100
MAX_CHECKS = 20
MAX_TEXT = 4_000


def render_findings(report: Report) -> Iterator[Markup]:
    """Yield the sections below the tables, without empty ones."""
    yield _render_problems(report)
    yield _render_list(
        "Repeats",
        [tag("li", each.line) for each in summarize_repeats(report.results)],
        unfolded=True,
    )
    errored, skipped = (
        filter_by_status(report.results, "errored"),
        filter_by_status(report.results, "skipped"),
    )
    yield _render_list("Errored checks", _render_reasons(errored), unfolded=True)
    yield _render_list("Skipped checks", _render_reasons(skipped))
    yield _render_list(
        "Warnings",
        [
            tag("li", f"{text} ({format_case_names(cases, str)})")
            for text, cases in group_warnings(report.results).items()
        ],
    )
    sources = [_render_provenance(each) for each in report.provenance]
    yield _render_list("Remote evaluators", sources)
    yield _render_checks(report.results)


def _render_problems(report: Report) -> Markup:
    """Render all problems; without a title where the heading of the page is about them."""
    items = [_render_problem(each) for each in report.problems]
    return (
        tag("ul", *_truncate_items(items))
        if is_invalid_input(report)
        else _render_list("Problems", items, unfolded=True)
    )


def _render_list(title: str, items: Sequence[Markup], *, unfolded: bool = False) -> Markup:
    if not items:
        return Markup("")
    return tag(
        "details",
        tag("summary", tag("h2", f"{title} ({len(items):,})")),
        tag("ul", *_truncate_items(items)),
        open="" if unfolded else None,
    )


def _truncate_items(items: Sequence[Markup]) -> Sequence[Markup]:
    if len(items) <= MAX_ITEMS:
        return items
    return [*items[:MAX_ITEMS], tag("li", truncate.format_omitted(len(items) - MAX_ITEMS))]


def _render_problem(problem: Problem) -> Markup:
    place = "" if problem.place is None else join_markup(tag("code", str(problem.place)), " ")
    text = format_problem_text(problem)
    return tag("li", tag("strong", problem.severity), " ", place, text)


def _render_reasons(results: Sequence[CheckResult]) -> list[Markup]:
    """Render one item per reason, with its cases."""
    return [
        tag(
            "li",
            tag("strong", evaluator),
            f" of {format_path(config)}: {format_case_names(cases, str)}",
            tag("pre", truncate.middle(reason, MAX_TEXT)),
        )
        for (config, evaluator, reason), cases in group_by_reason(results).items()
    ]


def _render_provenance(each: Provenance) -> Markup:
    where = f"{each.source}: {each.repository} {each.ref}".strip()
    return tag(
        "li",
        tag("strong", each.evaluator),
        f" {where} at ",
        tag("code", each.commit or each.digest),
    )


def _render_checks(results: Sequence[CheckResult]) -> Markup:
    """Render the section that the script fills; without scripts it has the worst failed checks."""
    failed = sort_worst_first(filter_by_status(results, "failed"))
    left = len(failed) - MAX_CHECKS
    return tag(
        "section",
        tag("h2", "Checks"),
        tag("p", f"{format_count(len(results), 'check')}. Enable scripts to see all of them."),
        *(_render_check(result) for result in failed[:MAX_CHECKS]),
        tag("p", f"{truncate.format_omitted(left)} failed") if left > 0 else "",
        id="checks",
        tabindex=-1,
        hidden=None if results else "",
    )


def _render_check(result: CheckResult) -> Markup:
    findings = truncate.characters("\n".join(list_findings(result)), MAX_TEXT)
    return tag(
        "article",
        tag(
            "h3",
            join_markup(result.case.id, " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "),
            result.evaluator.name,
        ),
        tag("p", format_outcome(result)),
        tag("pre", findings) if findings else "",
    )


class HtmlReport(Struct, frozen=True, kw_only=True):
    """A self-contained page of all checks, with search and links; it makes no network requests.

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
            '<a class="skip" href="#checks">Skip to the checks</a>\n'
        )
        yield f"{self._body(report)}\n"
        yield '<script type="application/json" id="data">'
        yield from render_page_data(report)
        yield "</script>\n"
        for each in render_transcripts(report):
            yield f"{each}\n"
        yield f'<script type="module">{script.text}</script>\n</html>\n'

    def _body(self, report: Report) -> Markup:
        return join_markup(
            tag(
                "main",
                tag(
                    "div",
                    render_header(report),
                    render_evaluators(report),
                    render_policy(report),
                    render_comparison(report),
                    *render_findings(report),
                    id="overview",
                ),
                tag("section", id="check", hidden=""),
            ),
            tag("footer", f"agentci {self.tool_version}"),
        )
