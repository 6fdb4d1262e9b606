"""Names the cases whose answers, tool calls or results changed although no check fails by that."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, takewhile
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from agentci._util.text import escape, truncate
from agentci._util.text.change import ARROW, find_numbers
from agentci._util.text.format import format_count
from agentci.evaluators.changed_facts import keep_first_facts, rank_facts
from agentci.model.case import (
    CALL_CHANGES,
    RESULT_CHANGES,
    ChangedCall,
    ChangedResult,
    ChangedText,
    ResultChange,
    RunChanges,
)
from agentci.model.result import Report
from agentci.model.values import IdentityKey, replace
from agentci.reports.case_states import find_changes, make_check_key
from agentci.reports.failure_patterns import is_resource_limit
from agentci.reports.groups_and_totals import MAX_NAMES, list_first_names
from agentci.reports.outcomes import CaseOutcome, list_case_outcomes

# Of a text, which is that short already unless another program wrote the report.
MAX_SHOWN: Final = 100
# Of two values that are shown in a list of names.
MAX_VALUES: Final = 40
# Of a case.
MAX_CALLS: Final = 2
# Facts that changed in several cases and are named even if there is little room.
MAX_COMMON: Final = 2
MINUS: Final = "\N{MINUS SIGN}"

T = TypeVar("T")
_ChangedAnswer: TypeAlias = tuple[CaseOutcome, ChangedText]
_FactGroup: TypeAlias = tuple[ChangedText, Sequence[_ChangedAnswer]]


class ChangedRuns(Struct, frozen=True, kw_only=True):
    """Cases that changed in one way.

    Attributes:
        label: of what changed.
        head: what all have in common.
        items: one for each of the first cases.
        left: number of the others.
    """

    label: str
    head: str
    items: tuple[str, ...] = ()
    left: int = 0

    @property
    def lines(self) -> list[str]:
        """The items, and how many others there are."""
        return [*self.items, *([truncate.format_omitted(self.left)] if self.left else [])]


def list_changed_runs(
    report: Report,
    most: int,
    write_case: Callable[[str], str],
    write: Callable[[str], str],
    *,
    names: bool = True,
) -> Iterator[ChangedRuns]:
    """Yield tools that newly fail, then changed calls, results of tools, and answers.

    The last three are of cases that no other list of what got worse has.

    Args:
        most: number of cases, and of failing tools, that are shown of each.
        write_case, write: escape the id of a case, and texts of tools and agents.
        names: whether further cases with other facts are named, not only counted.
    """

    def show(text: str) -> str:
        flat = truncate.short(escape.flatten_line(text), MAX_SHOWN)
        return write(flat) if flat else "nothing"

    yield from _list_failing(list_case_outcomes(report), most, write_case, show)
    unseen = list_unseen(report)
    yield from _list_calls(unseen, most, write_case, show)
    results = [
        (each, each.summary.changes.results[0])
        for each in unseen
        if each.summary.changes is not None and each.has_other_results
    ]
    if results:
        yield _make_line(
            "changed tool results",
            results,
            lambda result: f"{show(result.tool)} {_format(result, show)}",
            most=most,
            write_case=write_case,
        )
    answers = _list_changed_answers(unseen)
    if answers:
        groups = group_changed_facts(report)
        yield _list_answers(answers, groups, most, write_case, show, names=names)


def group_changed_facts(report: Report) -> Sequence[_FactGroup]:
    """Group the cases that no other list shows and whose answers have the same other fact.

    Returns:
        What the cases of each group have in common, and the cases.
    """
    return _group_changed_facts(IdentityKey(report))


# The page needs them, and the comment for each of its sizes.
@lru_cache(maxsize=1)
def _group_changed_facts(key: IdentityKey[Report]) -> Sequence[_FactGroup]:
    groups = _group_by_facts(_list_changed_answers(list_unseen(key.value)))
    return [(_find_common(group), group) for group in groups]


def _list_changed_answers(outcomes: Iterable[CaseOutcome]) -> list[_ChangedAnswer]:
    return [
        (each, answer)
        for each in outcomes
        if each.summary.changes is not None and (answer := each.summary.changes.answer)
    ]


def _group_by_facts(answers: Iterable[_ChangedAnswer]) -> list[list[_ChangedAnswer]]:
    """Group the answers with the same first other fact, but for numbers that the user gave.

    Other numbers come first, then facts of cases that pass, then those of more cases, then those
    that have another value instead.
    """
    groups: dict[str, list[_ChangedAnswer]] = {}
    for each in answers:
        if facts := _get_facts(each):
            groups.setdefault(_hide_given(keep_first_facts(facts), each[0]), []).append(each)
    return sorted(
        groups.values(),
        key=lambda group: (
            rank_facts(_get_facts(group[0])),
            all(each.problems for each, _ in group),
            -len(group),
            ARROW not in _get_facts(group[0]),
        ),
    )


def _hide_given(facts: str, outcome: CaseOutcome) -> str:
    pieces, numbers = find_numbers(facts)
    given = {each for turn in outcome.summary.dialogue for each in find_numbers(turn.question)[1]}
    shown = (truncate.ELLIPSIS if each in given else each for each in numbers)
    return "".join(chain.from_iterable(zip(pieces, (*shown, ""), strict=True)))


def _get_facts(answer: _ChangedAnswer) -> str:
    changes = answer[0].summary.changes
    return "" if changes is None else changes.facts


def _list_answers(
    answers: Sequence[_ChangedAnswer],
    groups: Sequence[_FactGroup],
    most: int,
    write_case: Callable[[str], str],
    write: Callable[[str], str],
    *,
    names: bool,
) -> ChangedRuns:
    """Name the cases with other facts, which are not expected of a model; count other words.

    The same facts are named once, and those of several cases even if there is little room.
    """
    others = [each for each in answers if not _get_facts(each)]
    head = _count_cases([each for each, _ in answers])
    if not groups:
        line = _make_line(
            "changed answers",
            others,
            lambda answer: _format(answer, write),
            most=most,
            write_case=write_case,
        )
        return replace(line, head=head)
    sizes = [len(group) for _, group in groups]
    several = len([*takewhile(lambda size: size > 1, sizes)])
    shown = max(most, min(several, MAX_COMMON))
    items = [_format_group(*each, write_case, write) for each in groups[:shown]]
    if rest := groups[shown:]:
        named = [_name_facts(*each, write_case, write) for each in rest[:MAX_NAMES]]
        if left := sum(sizes[shown + MAX_NAMES :]):
            named.append(truncate.format_omitted(left))
        count = format_count(sum(sizes[shown:]), "case")
        items.append(f"other facts in {', '.join(named) if names else count}")
    if others:
        items.append(f"other words in {_count_cases([each for each, _ in others])}")
    return ChangedRuns(label="changed answers", head=head, items=tuple(items))


def _format_group(
    common: ChangedText,
    group: Sequence[_ChangedAnswer],
    write_case: Callable[[str], str],
    write: Callable[[str], str],
) -> str:
    """Format ``20 cases, e.g. a: 50 EUR → 75 EUR``."""
    outcome, _ = group[0]
    count = f"{len(group):,} cases, e.g. " if len(group) > 1 else ""
    return f"{count}{write_case(outcome.summary.id)}: {_format(common, write)}"


def _find_common(group: Sequence[_ChangedAnswer]) -> ChangedText:
    """Return what the first case shows, without the facts that differ in other cases."""
    facts = {*map(_get_facts, group)}
    shared = keep_first_facts(_get_facts(group[0]))
    if len(facts) == 1 or ARROW not in shared:
        return group[0][1]
    before, after = (side.strip(' "') for side in shared.split(ARROW, 1))
    return ChangedText(before=before, after=after)


def _name_facts(
    common: ChangedText,
    group: Sequence[_ChangedAnswer],
    write_case: Callable[[str], str],
    write: Callable[[str], str],
) -> str:
    """Name the first case with its facts, if they are short, and count the others."""
    outcome, _ = group[0]
    more = f" and {len(group) - 1:,} more" if len(group) > 1 else ""
    name = f"{write_case(outcome.summary.id)}{more}"
    is_short = len(common.before) + len(common.after) <= MAX_VALUES
    return f"{name} ({_format(common, write)})" if is_short else name


def _make_line(
    label: str,
    found: Sequence[tuple[CaseOutcome, T]],
    describe: Callable[[T], str],
    *,
    most: int,
    write_case: Callable[[str], str],
    more: Sequence[str] = (),
) -> ChangedRuns:
    """Make what cases have in common of those that changed, each with its change.

    Args:
        more: what else the head says.
    """
    counted = [_count_cases([each for each, _ in found])] if found else []
    return ChangedRuns(
        label=label,
        head=", ".join([*counted, *more]),
        items=tuple(
            f"{write_case(each.summary.id)}: {describe(changed)}" for each, changed in found[:most]
        ),
        left=len(found[most:]),
    )


def list_unseen(report: Report) -> Sequence[CaseOutcome]:
    """List the cases of which no list of checks that got worse or better shows the run.

    Those of errors and limits on resources do not, so that cases that have nothing else count if
    more than the words of their answers changed.
    """
    return _list_unseen(IdentityKey(report))


# All report formats of a run need them, the comment for each of its sizes.
@lru_cache(maxsize=1)
def _list_unseen(key: IdentityKey[Report]) -> Sequence[CaseOutcome]:
    report = key.value
    compared = report.comparison.evaluators if report.comparison else ()
    fixed = {change.case for each in compared for change in each.fixed}
    worse = find_changes(report)
    found: list[CaseOutcome] = []
    for each in list_case_outcomes(report):
        changes = each.summary.changes or RunChanges()
        blind = [
            result
            for result in each.problems
            if result.status == "errored" or is_resource_limit(result)
        ]
        is_listed = len(blind) < len(each.problems) or each.summary.id in fixed
        is_other = bool(changes.facts or changes.calls or changes.results)
        if not is_listed and (is_other or not blind):
            found.append(each)
    own = {make_check_key(result) for each in found for result in each.problems}
    lost = {key[-1] for key in worse if key not in own}
    return [each for each in found if each.summary.id not in lost]


def _list_calls(
    outcomes: Sequence[CaseOutcome],
    most: int,
    write_case: Callable[[str], str],
    write: Callable[[str], str],
) -> Iterator[ChangedRuns]:
    changed = [
        (each, each.summary.changes) for each in outcomes if each.summary.changes is not None
    ]
    named = [(each, changes) for each, changes in changed if changes.calls]
    named.sort(key=lambda pair: CALL_CHANGES.index(pair[1].calls[0].kind))
    reworded = sum(
        bool(changes.reworded_calls) and not (changes.calls or each.problems)
        for each, changes in changed
    )
    if not named and not reworded:
        return
    words = f"other words of arguments in {format_count(reworded, 'passing case')}"
    yield _make_line(
        "changed tool calls",
        named,
        lambda changes: _format_calls(changes, write),
        most=most,
        write_case=write_case,
        more=[words] if reworded else (),
    )


def _format_calls(changes: RunChanges, write: Callable[[str], str]) -> str:
    shown = changes.calls[:MAX_CALLS]
    more = len(changes.calls) - len(shown) + changes.more_calls
    texts = [_format_call(each, write) for each in shown]
    return ", ".join([*texts, *([f"{more:,} more"] if more else [])])


def _format_call(call: ChangedCall, write: Callable[[str], str]) -> str:
    times = f" ({call.count:,} times)" if call.count > 1 else ""
    if call.before and call.after:
        return f"{write(call.tool)} {_format(call, write)}{times}"
    sign = "+" if call.after else MINUS
    return f"{sign} {write(call.after or call.before)}{times}"


# What the lines of the other kinds of changes begin with.
_LABELS: Final[Mapping[ResultChange, str]] = {
    "error": "tool newly fails",
    "empty": "tool newly returns nothing",
}


def _list_failing(
    outcomes: Sequence[CaseOutcome],
    most: int,
    write_case: Callable[[str], str],
    write: Callable[[str], str],
) -> Iterator[ChangedRuns]:
    """Yield the tools that newly fail or return nothing, those with the same result together.

    Not those that are named as the cause of new failures in all of their cases.
    """
    named = {
        (each.summary.id, each.tool_error.tool)
        for each in outcomes
        if each.tool_error is not None and each.new
    }
    groups: dict[tuple[str, str, str], list[tuple[str, ChangedResult]]] = {}
    for each in outcomes:
        for result in each.summary.changes.results if each.summary.changes else ():
            if result.kind in _LABELS:
                key = result.kind, result.tool, result.after
                groups.setdefault(key, []).append((each.summary.id, result))

    def name_cases(found: Iterable[tuple[str, ChangedResult]]) -> str:
        cases = list(dict.fromkeys(case for case, _ in found))
        return f"{format_count(len(cases), 'case')} ({list_first_names(cases, write_case)})"

    ranked = sorted(
        (
            group
            for (kind, tool, _), group in groups.items()
            if kind != "error" or any((case, tool) not in named for case, _ in group)
        ),
        key=lambda group: (RESULT_CHANGES.index(group[0][1].kind), -len(group)),
    )
    # The line about others would be as long as that of a single one.
    shown = most + 1 if len(ranked) == most + 1 else most
    for group in ranked[:shown]:
        first = group[0][1]
        is_known = first.before not in ("", first.after)
        then = f"; in the baseline {write(first.before)}" if is_known else ""
        returns = f"{write(first.tool)} returns {write(first.after)}"
        head = f"{returns} in {name_cases(group)}{then}"
        yield ChangedRuns(label=_LABELS[first.kind], head=head)
    if more := [each for group in ranked[shown:] for each in group]:
        tools = list(dict.fromkeys(result.tool for _, result in more))
        names = list_first_names(tools, write)
        head = f"{names} with other results in {name_cases(more)}"
        yield ChangedRuns(label=_LABELS[more[0][1].kind], head=head)


def _count_cases(cases: Sequence[CaseOutcome]) -> str:
    passing = "" if any(each.problems for each in cases) else "passing "
    return format_count(len(cases), f"{passing}case")


def _format(changed: ChangedText | ChangedResult | ChangedCall, write: Callable[[str], str]) -> str:
    return f"{write(changed.before)} {ARROW} {write(changed.after)}"
