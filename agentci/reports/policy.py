"""The comparison with the policy of the base commit, for all report formats."""

from collections.abc import Iterator, Sequence
from typing import Final

from agentci._util.text import truncate
from agentci._util.text.escape import markdown_prose, markdown_row
from agentci._util.text.format import format_count
from agentci.gate.policy_changes import MAX_SHOWN, describe_change, has_looser
from agentci.model.gate import PolicyChange, PolicyComparison
from agentci.model.values import replace
from agentci.reports.groups_and_totals import format_path
from agentci.reports.policy_effects import drop_names
from agentci.reports.sections import Section, fold_section

LOOSER_TITLE: Final = "Policy is looser than on the base branch"
EDITED_TITLE: Final = "Policy was edited and may be looser than on the base branch"
POLICY_TITLE: Final = "Policy of the base"
COLUMNS: Final = ("Change", "Base", "This run")
CONFIG_COLUMN: Final = "Config"
MAX_CHANGES: Final = 50
# Changes that are not folded where there is little room.
MIN_LINES: Final = 2


def choose_title(policy: PolicyComparison) -> str:
    """Choose the title of the section."""
    if not policy.loosened:
        return POLICY_TITLE
    return LOOSER_TITLE if has_looser(policy.loosened) else EDITED_TITLE


def list_columns(policy: PolicyComparison) -> tuple[str, ...]:
    """List the columns of the table, with one for the config if there are several."""
    return (CONFIG_COLUMN, *COLUMNS) if _has_several_configs(policy) else COLUMNS


def format_cells(change: PolicyChange, policy: PolicyComparison) -> tuple[str, ...]:
    """Format the table cells of a change, in the order of ``list_columns``."""
    names = ", ".join(truncate.truncate_list(change.names, MAX_SHOWN))
    after = "; ".join(filter(None, (change.after, change.effect)))
    cells = (f"{change.subject}{names and f': {names}'}", change.before, after)
    return (format_path(change.config), *cells) if _has_several_configs(policy) else cells


def list_policy_remarks(policy: PolicyComparison) -> Iterator[str]:
    """Yield what is not a row of the table."""
    if policy.decided_by_base:
        configs = ", ".join(map(format_path, policy.decided_by_base))
        yield f"evaluated by the policy of the base ({policy.base}): {configs}"
    yield from policy.notes


def list_policy_lines(policy: PolicyComparison) -> Iterator[str]:
    """Yield one line per change, then the remarks."""
    several = _has_several_configs(policy)
    for change in policy.loosened:
        config = f"{format_path(change.config)}: " if several else ""
        yield f"{config}{describe_change(change)}"
    yield from list_policy_remarks(policy)


def make_policy_sections(
    policy: PolicyComparison, *, unfolded: int | None = None
) -> Iterator[Section]:
    """Yield the sections of the job summary and of the pull request comment.

    Args:
        unfolded: how many changes are one line that begins with a word, without heading and table;
            the others are folded. At 0, ``MIN_LINES`` have no names of cases, which are folded,
            too. None for a table of all.
    """
    title = f"### {choose_title(policy)}\n\n"
    blocks, whole = [*map(_render_line, list_policy_remarks(policy))], list[str]()
    if policy.loosened and unfolded is not None:
        word = "looser policy" if has_looser(policy.loosened) else "edited policy"
        title = ""
        lines = [*list_policy_lines(policy)]
        number = max(unfolded, MIN_LINES)
        shown = lines if unfolded else [*list_policy_lines(drop_names(policy))]
        whole = [each for each, short in zip(lines, shown[:number], strict=False) if each != short]
        lines = ["; ".join(shown[:number]), *lines[number:]]
        unfolded = 1
        blocks = [_render_line(each, f"**{word}:** ") for each in lines]
    elif policy.loosened:
        columns = list_columns(policy)
        title += markdown_row(columns) + markdown_row(["---"] * len(columns))
        rows = [_render_row(format_cells(each, policy)) for each in policy.loosened]
        blocks = [*rows, *(["\n"] if blocks else []), *blocks]
    first, more = blocks[:unfolded], blocks[len(blocks[:unfolded]) :]
    section = Section(
        name="policy",
        title=title,
        noun="policy change",
        blocks=iter(first),
        total=len(first),
        max_items=MAX_CHANGES,
        share=0.1,
    )
    yield section
    if more:
        others = replace(section, title="", blocks=iter(more), total=len(more))
        folded = fold_section(others, format_count(len(more), "more policy change"))
        yield replace(folded, stays=True)
    others = replace(section, title="", blocks=map(_render_line, whole), total=len(whole))
    yield fold_section(others, "Policy changes with their cases", "policy changes")


def _render_line(text: str, word: str = "") -> str:
    return f"- {word}{markdown_prose(text)}\n"


def _render_row(cells: Sequence[str]) -> str:
    return markdown_row(map(markdown_prose, cells))


def _has_several_configs(policy: PolicyComparison) -> bool:
    return len({each.config for each in policy.loosened}) > 1
