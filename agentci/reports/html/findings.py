"""What is to be known besides numbers: problems, what was not judged, and the worst checks.

The worst checks are for those who see the page without a script, which puts all in their place.
"""

from collections.abc import Iterator, Sequence

from agentci._util.text import truncate
from agentci._util.text.format import count
from agentci.model.problem import Problem
from agentci.model.result import Provenance, Report, Result
from agentci.reports.check_text import findings as lines_of
from agentci.reports.check_text import outcome
from agentci.reports.html.markup import Markup, joined, tag
from agentci.reports.locations import file_name
from agentci.reports.report_format import (
    by_reason,
    case_names,
    of_status,
    warnings,
    worst_first,
)
from agentci.reports.stability import stabilities

MAX_ITEMS = 100
MAX_CHECKS = 20
MAX_TEXT = 4_000


def findings(report: Report) -> Iterator[Markup]:
    """The sections under the tables; those that would be empty are left out."""
    yield _listed("Problems", [_problem(each) for each in report.problems], unfolded=True)
    yield _listed(
        "Repeats", [tag("li", each.line) for each in stabilities(report.results)], unfolded=True
    )
    errored, skipped = of_status(report.results, "errored"), of_status(report.results, "skipped")
    yield _listed("Could not be judged", _reasons(errored), unfolded=True)
    yield _listed("Nothing to judge", _reasons(skipped))
    yield _listed(
        "Warnings",
        [
            tag("li", f"{text} ({case_names(cases, str)})")
            for text, cases in warnings(report.results).items()
        ],
    )
    yield _listed("Evaluators kept elsewhere", [_provenance(each) for each in report.provenance])
    yield _worst(report.results)


def _listed(title: str, items: Sequence[Markup], *, unfolded: bool = False) -> Markup:
    if not items:
        return Markup("")
    more = [tag("li", truncate.more(len(items) - MAX_ITEMS))] if len(items) > MAX_ITEMS else []
    return tag(
        "details",
        tag("summary", tag("h2", f"{title} ({len(items):,})")),
        tag("ul", *items[:MAX_ITEMS], *more),
        open="" if unfolded else None,
    )


def _problem(problem: Problem) -> Markup:
    place = "" if problem.place is None else tag("code", str(problem.place))
    hint = "" if problem.hint is None else f" ({problem.hint})"
    return tag("li", tag("strong", problem.severity), " ", place, f" {problem.message}{hint}")


def _reasons(results: Sequence[Result]) -> list[Markup]:
    """The cases that one thing befell, together."""
    return [
        tag(
            "li",
            tag("strong", evaluator),
            f" of {file_name(config)}: {case_names(cases, str)}",
            tag("pre", truncate.middle(reason, MAX_TEXT)),
        )
        for (config, evaluator, reason), cases in by_reason(results).items()
    ]


def _provenance(each: Provenance) -> Markup:
    where = f"{each.source}: {each.repository} {each.ref}".strip()
    return tag(
        "li",
        tag("strong", each.evaluator),
        f" {where} at ",
        tag("code", each.commit or each.digest),
    )


def _worst(results: Sequence[Result]) -> Markup:
    failed = worst_first(of_status(results, "failed"))
    left = len(failed) - MAX_CHECKS
    return tag(
        "section",
        tag("h2", "Checks"),
        tag("p", f"{count(len(results), 'check')}. A browser that runs scripts shows them all."),
        *(_check(result) for result in failed[:MAX_CHECKS]),
        tag("p", f"{truncate.more(left)} that failed") if left > 0 else "",
        id="checks",
        tabindex=-1,
    )


def _check(result: Result) -> Markup:
    told = truncate.characters("\n".join(lines_of(result)), MAX_TEXT)
    return tag(
        "article",
        tag(
            "h3",
            joined(result.case.id, " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "),
            result.evaluator.name,
        ),
        tag("p", outcome(result)),
        tag("pre", told) if told else "",
    )
