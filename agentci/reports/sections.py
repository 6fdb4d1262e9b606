"""Markdown sections that the job summary and the pull request comment share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.escape import markdown_code, markdown_prose
from agentci._util.text.format import format_count
from agentci.model.problem import Problem
from agentci.model.result import Report
from agentci.model.values import replace
from agentci.reports.report_format import (
    EvaluatorChecks,
    Verdict,
    format_path,
    format_problem_text,
    format_title,
    get_verdict,
    is_invalid_input,
    list_reasons,
)

MAX_ITEMS = 100

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
        blocks: rendered lazily, since only some may be shown.
        total: number of blocks.
        share: fraction of the page's bytes that the blocks may take, if earlier sections leave
            room.
        end: Markdown after the blocks.
    """

    name: BlockName = "details"
    title: str
    end: str = ""
    noun: str
    blocks: Iterator[str]
    total: int
    max_items: int = MAX_ITEMS
    share: float = 0.05


def render_page(
    head: str, sections: Iterable[Section], footer: str, max_bytes: int
) -> dict[BlockName, str]:
    """Render the blocks of a page in page order; as ``render_sections`` between head and footer."""
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


def fold_section(section: Section, summary: str) -> Section:
    """Fold a section under a summary, which is plain text of the report's own."""
    title = f"<details>\n<summary>{summary}</summary>\n\n{section.title}"
    return replace(section, title=title, end=f"{section.end}</details>\n\n")


_ICONS: dict[Verdict, str] = {
    "passed": "\N{WHITE HEAVY CHECK MARK}",
    "partial": "\N{WHITE HEAVY CHECK MARK}",
    "failed": "\N{CROSS MARK}",
    "error": "\N{COLLISION SYMBOL}",
    "invalid": "\N{CROSS MARK}",
}


def render_heading(report: Report) -> str:
    """Render the verdict and its main reason as a heading."""
    return f"## {_ICONS[get_verdict(report.decision)]} {markdown_prose(format_title(report))}\n\n"


def make_notes_section(report: Report) -> Section:
    """Make the folded section of what does not decide."""
    notes = report.decision.notes
    section = Section(
        title="",
        noun="note",
        blocks=(f"- {markdown_prose(note)}\n" for note in notes),
        total=len(notes),
    )
    return fold_section(section, "Notes")


def make_reasons_section(report: Report) -> Section:
    """Make a section of the other reasons for the verdict."""
    others = list_reasons(report)[1:]
    return Section(
        name="reasons",
        title="",
        noun="reason",
        blocks=(f"- {markdown_prose(reason)}\n" for reason in others),
        total=len(others),
    )


_WARNING = "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}"


def choose_icon(checks: EvaluatorChecks, *, gate_failed: bool, is_worse: bool = False) -> str:
    """Choose the icon of an evaluator.

    Failures of an advisory evaluator, or in a run that passed, get a warning sign, not a cross.

    Args:
        is_worse: whether any of its checks passed in the baseline and does not pass now.
    """
    if checks.totals.failed or checks.totals.errored:
        failing = checks.representative.evaluator.required and gate_failed
        return "\N{CROSS MARK}" if failing else _WARNING
    if is_worse:
        return _WARNING
    return "\N{WHITE HEAVY CHECK MARK}" if checks.totals.passed else "\N{HEAVY MINUS SIGN}"


def format_evaluator_name(config: str, evaluator: str, *, several: bool) -> str:
    """Format an evaluator's name, with its config where there are several."""
    suffix = f" of {markdown_code(format_path(config))}" if several else ""
    return f"{markdown_code(evaluator)}{suffix}"


def make_problems_section(problems: Sequence[Problem], report: Report) -> Section:
    """Make a section of errors, warnings and notes.

    It needs no title where the heading of the page is about them.
    """
    return Section(
        name="problems",
        title="" if is_invalid_input(report) else "### Problems\n\n",
        noun="problem",
        blocks=map(_render_problem, problems),
        total=len(problems),
        share=0.9 if is_invalid_input(report) else 0.05,
    )


def _render_problem(problem: Problem) -> str:
    place = "" if problem.place is None else f"{markdown_code(str(problem.place))} "
    return f"- **{problem.severity}** {place}{markdown_prose(format_problem_text(problem))}\n"
