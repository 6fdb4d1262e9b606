"""Markdown sections that the job summary and the pull request comment share."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias, get_args
from urllib.parse import quote

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.escape import markdown_code, markdown_prose
from agentci._util.text.format import format_count
from agentci._util.text.suggest import shorten_commit
from agentci.gate.comparison import fails_gate, has_failing_outcome
from agentci.gate.rules import list_changed_words
from agentci.model.case import CaseSummary
from agentci.model.gate import Comparison, EvaluatorComparison, GatePolicy
from agentci.model.result import Report, Status
from agentci.model.values import Problem, replace
from agentci.reports.case_counts import find_missing, format_case_line
from agentci.reports.changed_checks import (
    LOWER_SCORE_TITLE,
    MAX_LOWER_SCORES,
    format_more_skips,
    list_lower_scores,
    list_skipped,
)
from agentci.reports.comparison import describe_change, drop_missing
from agentci.reports.groups_and_totals import (
    EvaluatorChecks,
    ReasonGroup,
    Verdict,
    count_problems,
    format_case_names,
    format_path,
    format_problem_text,
    get_verdict,
    group_by_reason,
    has_several_configs,
    is_invalid_input,
    list_first_names,
)
from agentci.reports.outcomes import (
    format_metrics,
    has_notable_change,
    list_case_outcomes,
    summarize_metrics,
)
from agentci.reports.verdict import (
    format_title,
    list_further_reasons,
    list_verdict_warnings,
    split_title,
)

MAX_ITEMS = 100
MAX_UNFOLDED: Final = 3
# Regressed evaluators that are named.
MAX_REGRESSED: Final = 6

# The blocks of the summary and the comment, in page order.
BlockName: TypeAlias = Literal[
    "verdict",
    "reasons",
    "policy",
    "failures",
    "errors",
    "evaluators",
    "comparison",
    "details",
    "problems",
    "footer",
]
BLOCKS: Final[tuple[BlockName, ...]] = get_args(BlockName)


class Section(Struct, frozen=True, kw_only=True):
    """Blocks of Markdown under a title.

    Attributes:
        name: of the block of the page that it belongs to, which a template can replace.
        noun: what one block is about, to count omitted ones.
        blocks: rendered lazily if only some may be shown.
        total: number of blocks.
        share: fraction of the page's bytes that the blocks may take, if earlier sections leave
            room.
        end: Markdown after the blocks.
        summary: under which it is folded; empty if it is not.
        brief: the same where it is one of several.
        stays: whether it is folded in its place where others are joined, such as what no template
            may leave out.
    """

    name: BlockName = "details"
    title: str
    end: str = ""
    noun: str
    blocks: Iterable[str]
    total: int
    max_items: int = MAX_ITEMS
    share: float = 0.05
    summary: str = ""
    brief: str = ""
    stays: bool = False


def render_page(
    head: str, sections: Iterable[Section], footer: str, max_bytes: int
) -> dict[BlockName, str]:
    """Render blocks of a page in page order, like ``render_sections`` between head and footer."""
    blocks: dict[BlockName, str] = dict.fromkeys(BLOCKS, "")
    blocks["verdict"] = head
    for name, text in _render_each(sections, max_bytes):
        blocks[name] += text
    blocks["footer"] += footer
    return blocks


def join_blocks(_: str, blocks: Mapping[BlockName, str], __: Report) -> str:
    """Join the blocks of a page: the page without a template."""
    return "".join(blocks.values())


# Makes a page of its name, its blocks and the report.
Arrange: TypeAlias = Callable[[str, Mapping[BlockName, str], Report], str]


def render_sections(sections: Iterable[Section], max_bytes: int) -> str:
    """Render as many whole blocks per section as fit; the last line counts what is omitted.

    Args:
        sections: in page order.
        max_bytes: size limit of the text in UTF-8; each section gets its share.
    """
    return "".join(text for _, text in _render_each(sections, max_bytes))


def _render_each(sections: Iterable[Section], max_bytes: int) -> Iterator[tuple[BlockName, str]]:
    room = max_bytes
    left_out: list[str] = []
    for section in sections:
        most = min(
            int(max_bytes * section.share),
            room - truncate.count_utf8_bytes(f"{section.title}\n\n{section.end}"),
        )
        kept = truncate.take_blocks(islice(section.blocks, section.max_items), most)
        if kept.text:
            part = f"{section.title}{kept.text.rstrip()}\n\n{section.end}"
            yield section.name, part
            room -= truncate.count_utf8_bytes(part)
        if kept.blocks < section.total:
            left_out.append(format_count(section.total - kept.blocks, section.noun))
    if left_out:
        text = f"_Not shown: {', '.join(left_out)}. See `results.json` for the full list._\n\n"
        yield "footer", text


def fold_section(section: Section, summary: str, brief: str = "") -> Section:
    """Fold a section under a summary, which is plain text of the report's own.

    Args:
        brief: the summary if other sections are folded with it, unless it is the same.
    """
    title = f"<details>\n<summary>{summary}</summary>\n\n{section.title}"
    end = f"{section.end}</details>\n\n"
    return replace(section, title=title, end=end, summary=summary, brief=brief or summary)


def join_folded(folded: Sequence[Section], max_bytes: int) -> Section:
    """Fold sections, which are folded themselves, under one summary that has theirs in brief.

    Args:
        max_bytes: of the page, of which each section has its share.
    """
    shown = [each for each in folded if each.total]
    if len(shown) == 1:
        return shown[0]
    section = Section(
        title="",
        noun="section",
        blocks=(render_sections([each], max_bytes) for each in shown),
        total=len(shown),
        share=sum(each.share for each in shown) + 0.05,
    )
    return fold_section(section, f"Details: {', '.join(each.brief for each in shown)}")


SEPARATOR: Final = " \N{MIDDLE DOT} "
WARNING: Final = "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}"
_ICONS: dict[Verdict, str] = {
    "passed": "\N{WHITE HEAVY CHECK MARK}",
    "partial": "\N{WHITE HEAVY CHECK MARK}",
    "failed": "\N{CROSS MARK}",
    "error": "\N{COLLISION SYMBOL}",
    "invalid": "\N{CROSS MARK}",
}


def render_head(report: Report, run_url: str, width: int | None = None) -> str:
    """Render the verdict with its main reason as a heading, and below it how the cases ended.

    Args:
        run_url: as in ``format_baseline``.
        width: characters beyond which the end of the main reason is beside the cases.
    """
    icon = WARNING if list_verdict_warnings(report) else _ICONS[get_verdict(report.decision)]
    title, rest = (format_title(report), "") if width is None else split_title(report, width)
    comparison = report.comparison
    baseline = "" if comparison is None else format_baseline(comparison, run_url)
    cases = format_case_line(report, baseline, bold="**", write=markdown_code)
    if rest:
        cases = f"{markdown_prose(rest)}{SEPARATOR}{cases[:1].lower()}{cases[1:]}"
    lines = [cases]
    if _is_beside_verdict(report):
        lines.append(render_amounts(report))
    shown = "<br>\n".join(filter(None, lines))
    return f"## {icon} {markdown_prose(title)}\n\n" + (f"{shown}\n\n" if shown else "")


def make_notes_section(report: Report, *, unfolded: int = MAX_UNFOLDED) -> Section:
    """Make the section of what does not decide and has no section of its own; folded if long."""
    notes = report.decision.unlisted_notes
    is_folded = len(notes) > unfolded
    section = Section(
        title="" if is_folded else "### Notes\n\n",
        noun="note",
        blocks=(f"- {markdown_prose(note)}\n" for note in notes),
        total=len(notes),
    )
    return fold_section(section, format_count(len(notes), "note")) if is_folded else section


def make_warnings_section(found: Mapping[str, Sequence[CaseSummary]]) -> Section:
    """Make the section of warnings about recorded runs, with the cases of each."""
    return Section(
        title="### Warnings\n\n",
        noun="warning",
        blocks=(
            f"- {markdown_prose(text)} ({format_case_names(cases, markdown_code)})\n"
            for text, cases in found.items()
        ),
        total=len(found),
    )


def make_reasons_section(report: Report) -> Section:
    """Make a section of the other reasons for the verdict."""
    return _make_reasons([markdown_prose(each) for each in list_further_reasons(report)])


def make_short_reasons_sections(report: Report, most: int, *, joined: bool) -> Iterator[Section]:
    """Yield the other reasons for the verdict, then, folded, those beyond ``most``.

    All regressions are one, without how they were tested: the largest drops first, each with what
    else its evaluator fails, in few words if there are many.

    Args:
        joined: whether they are one line, without the names of what errored, which is shown apart.
    """
    scores, others = dict[str, str](), list[str]()
    for each in list_further_reasons(report):
        if (found := _REGRESSION.match(each)) is not None:
            scores[found[1]] = found[2]
        else:
            others.append(each)
    names = sorted(scores, key=lambda name: _measure_drop(scores[name]))
    shorten = _cut_reason if len(names) > MAX_UNFOLDED else _merge_rate
    parts = []
    for name in names[:MAX_REGRESSED]:
        # At the start of a line, a number with a point would be that of a list.
        shown = markdown_prose(f"from{scores[name]}").removeprefix("from")
        own = [each for each in others if each.startswith(f"{name}: ")]
        others = [each for each in others if each not in own]
        whys = (shorten(each.removeprefix(f"{name}: ")) for each in own)
        note = f" ({markdown_prose('; '.join(whys))})" if own else ""
        parts.append(f"{markdown_code(name)}{shown}{note}")
    if left := len(names) - len(parts):
        parts.append(truncate.format_omitted(left))
    short = report.decision.errored if joined else {}
    others = [markdown_prose(short.get(each, each)) for each in others]
    if parts:
        others.insert(0, f"Regressed: {', '.join(parts)}")
    first, more = others[:most], others[most:]
    yield _make_reasons(["; ".join(first)] if joined and first else first)
    folded = fold_section(_make_reasons(more), format_count(len(more), "more reason"))
    yield replace(folded, stays=True)


def _merge_rate(reason: str) -> str:
    """Write ``8 of 99 checks failed, pass rate 92%, required 99%`` without brackets."""
    return _RATE.sub(r", \1", reason)


def _cut_reason(reason: str) -> str:
    """Return the pass rate of a reason, or what is before its brackets."""
    rate = _RATE.search(reason)
    return rate[1] if rate is not None else _BRACKETS.sub("", reason)


def _make_reasons(reasons: Sequence[str]) -> Section:
    return Section(
        name="reasons",
        title="",
        noun="reason",
        blocks=(f"- {each}\n" for each in reasons),
        total=len(reasons),
    )


def _measure_drop(scores: str) -> float:
    """Return the change of `` 0.98 → 0.83``, which is negative for a drop."""
    found = [float(each) for each in re.findall(r"[0-9]+(?:\.[0-9]+)?", scores)]
    return found[-1] - found[0] if found else 0.0


_REGRESSION: Final = re.compile(
    r"(.+) regressed: mean score( [^()]*?)(?: in both runs, tested [^()]*)? \(.*\)\Z"
)
_RATE: Final = re.compile(r" \((pass rate [^()]*)\)\Z")
_BRACKETS: Final = re.compile(r" \([^()]*\)\Z")
CROSS: Final = "\N{CROSS MARK}"


_STATUS_ICONS: Final[Mapping[Status, str]] = {
    "failed": CROSS,
    "errored": WARNING,
    "passed": "\N{WHITE HEAVY CHECK MARK}",
    "skipped": "\N{HEAVY MINUS SIGN}",
}


def choose_icon(
    checks: EvaluatorChecks, report: Report, compared: EvaluatorComparison | None = None
) -> str:
    """Choose the icon of an evaluator by its own outcome."""
    return _STATUS_ICONS[choose_status(checks, report, compared)]


def choose_status(
    checks: EvaluatorChecks, report: Report, compared: EvaluatorComparison | None = None
) -> Status:
    """Choose what an evaluator amounts to: failed if it is required and failed the gate.

    Other failures, errors and checks that passed in the baseline and do not now are like errors,
    unless the whole case is missing.
    """
    totals, result = checks.totals, checks.representative
    missing = find_missing(report)
    own = None if compared is None else drop_missing(compared, missing)
    policy = _find_policy(report, result.config)
    thresholds = policy.evaluators.get(result.evaluator.name, policy.overall)
    is_empty = thresholds.on_empty == "fail" and all(
        each.status == "skipped" and not each.unavailable for each in checks.results
    )
    is_worse = own is not None and has_failing_outcome(own, policy)
    can_fail = result.evaluator.required and report.decision.is_failure
    if can_fail and (totals.failed or is_empty or is_worse):
        return "failed"
    errors = any(
        each.status == "errored" and each.case.id not in missing for each in checks.results
    )
    if totals.failed or errors or (own is not None and own.worse):
        return "errored"
    others: Status = "errored" if totals.errored else "skipped"
    return "passed" if totals.passed else others


def choose_removed_icon(compared: EvaluatorComparison, report: Report) -> str:
    """Choose the icon of an evaluator that only the baseline has."""
    fails = fails_gate(compared, _find_policy(report, compared.config))
    return CROSS if fails and report.decision.is_failure else WARNING


def _find_policy(report: Report, config: str) -> GatePolicy:
    removed = report.comparison.removed_policies if report.comparison else {}
    policies = {**removed, **{each.config: each.policy for each in report.gates}}
    return policies.get(config, GatePolicy())


def format_evaluator_names(config: str, evaluators: Sequence[str], *, several: bool) -> str:
    """Format the names of evaluators, with their config where there are several."""
    return f"{list_first_names(evaluators, markdown_code)}{_format_config(config, several=several)}"


def format_group_name(
    group: ReasonGroup, write_case: Callable[[str], str], *, several: bool
) -> str:
    """Format the evaluator or the cases of a group, with their config where there are several."""
    config = _format_config(group.config, several=several)
    return f"{group.format_name(markdown_code, write_case)}{config}"


def _format_config(config: str, *, several: bool) -> str:
    return f" ({markdown_code(format_path(config))})" if several else ""


def make_problems_section(
    problems: Sequence[Problem], report: Report, *, unfolded: int = MAX_UNFOLDED
) -> Section:
    """Make a section of errors, warnings and notes.

    It needs no title where the heading of the page is about them.
    """
    invalid = is_invalid_input(report)
    is_folded = not invalid and len(problems) > unfolded
    section = Section(
        name="problems",
        title="" if invalid or is_folded else "### Problems\n\n",
        noun="problem",
        blocks=map(_render_problem, problems),
        total=len(problems),
        share=0.9 if invalid else 0.05,
    )
    count = count_problems(problems)
    return fold_section(section, f"Problems: {count}", count) if is_folded else section


def _render_problem(problem: Problem) -> str:
    place = "" if problem.place is None else f"{markdown_code(str(problem.place))} "
    return f"- **{problem.severity}** {place}{markdown_prose(format_problem_text(problem))}\n"


def render_amounts(report: Report) -> str:
    """Render latency, tokens and cost, in bold what is notably more."""
    metrics = summarize_metrics(report)
    if not has_notable_change(metrics):
        return markdown_prose(format_metrics(metrics))
    return format_metrics(metrics, bold="**", write_name=markdown_code).replace("$", r"\$")


def render_further_amounts(report: Report) -> str:
    """Render latency, tokens and cost for the footer; empty if they are beside the verdict."""
    return "" if _is_beside_verdict(report) else render_amounts(report)


def _is_beside_verdict(report: Report) -> bool:
    """Return whether the amounts are beside the verdict: a notable change without failures."""
    return has_notable_change(summarize_metrics(report)) and not report.totals.failed


def format_baseline(comparison: Comparison, run_url: str) -> str:
    """Format the commit of the baseline, or its name, linked to its run if that is known.

    Args:
        run_url: of this run. A report may be of a fork: only runs of the same repository are
            linked.
    """
    name = markdown_code(shorten_commit(comparison.commit) or comparison.baseline)
    found = [_RUN_URL.match(url) for url in (comparison.url, run_url)]
    runs = [each[1] for each in found if each is not None]
    return f"[{name}]({comparison.url})" if len(runs) == len({*runs}) + 1 else name


_RUN_URL: Final = re.compile(r"(https?://.+/actions/runs/)[0-9]+\Z")


def make_case_url(report_url: str, case: str) -> str:
    """Return the URL of a case in ``report.html``; empty if the page's URL is not known."""
    return f"{report_url}#/case/{quote(case, safe='')}" if report_url else ""


def format_case_link(case: str, report_url: str) -> str:
    """Format the id of a case, linked to its page in ``report.html`` if the URL is known."""
    url = make_case_url(report_url, case)
    return f"[{markdown_code(case)}]({url})" if url else markdown_code(case)


def make_lower_scores_section(report: Report, report_url: str) -> Section:
    """Make the folded section of the checks whose score fell although they still pass."""
    found = list_lower_scores(report)
    section = Section(
        name="comparison",
        title="",
        noun="lower score",
        blocks=(
            f"- {format_case_link(each.change.case, report_url)} > "
            f"{markdown_code(each.evaluator)}: {describe_change(each.change)}\n"
            for each in found[:MAX_LOWER_SCORES]
        ),
        total=min(len(found), MAX_LOWER_SCORES),
        share=0.05,
    )
    checks = format_count(len(found), "check")
    shown = f", the {MAX_LOWER_SCORES} largest drops" if len(found) > MAX_LOWER_SCORES else ""
    brief = format_count(len(found), "lower score")
    return fold_section(section, f"{LOWER_SCORE_TITLE}: {checks}{shown}", brief)


def make_fixed_section(report: Report, report_url: str) -> Section:
    """Make the folded section of the cases that failed in the baseline and pass now."""
    fixed = [each.summary.id for each in list_case_outcomes(report) if each.state == "fixed"]
    names = list_first_names(fixed, lambda case: format_case_link(case, report_url))
    section = Section(
        name="comparison",
        title="",
        noun="line",
        blocks=iter([f"{names}\n"] if fixed else []),
        total=min(len(fixed), 1),
        share=0.05,
    )
    count = format_count(len(fixed), "case")
    return fold_section(section, f"Fixed: {count}", f"{len(fixed):,} fixed")


def make_other_words_section(report: Report, report_url: str) -> Section:
    """Make the folded section of passed answers that have single other words than expected."""
    found = [
        (each.case.id, list_changed_words(each))
        for each in report.results
        if each.evaluator.required and list_changed_words(each)
    ]
    section = Section(
        title="",
        noun="answer with other words",
        blocks=(
            f"- {format_case_link(case, report_url)}: {markdown_prose('; '.join(words))}\n"
            for case, words in found
        ),
        total=len(found),
    )
    count = format_count(len(found), "passed answer")
    return fold_section(section, f"Other words than expected: {count}", f"{count} in other words")


def make_skips_section(report: Report) -> Section:
    """Make the folded section of skipped checks, without those that passed in the baseline."""
    several = has_several_configs(report.results)
    skipped = list_skipped(report)
    groups = group_by_reason(skipped)
    section = Section(
        title="",
        noun="skip reason",
        blocks=(
            f"- {format_evaluator_names(config, evaluators, several=several)}: "
            f"{markdown_prose(reason)} ({format_case_names(cases, markdown_code)})\n"
            for (config, evaluators, reason), cases in groups.items()
        ),
        total=len(groups),
    )
    title = f"Skipped: {format_count(len(skipped), 'check')}{format_more_skips(report)}"
    return fold_section(section, title, f"{len(skipped):,} skipped")
