"""Causes of the failures of a run, for the comment, the summary and the terminal."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.change import find_numbers
from agentci._util.text.format import format_count, format_score
from agentci.model.gate import CheckChange
from agentci.model.result import CheckResult, Report
from agentci.model.values import IdentityKey, replace
from agentci.reports.case_states import (
    CheckKey,
    find_changes,
    make_check_key,
    make_novelty_test,
)
from agentci.reports.changed_checks import LostChecks, list_lost_checks
from agentci.reports.check_text import (
    NO_REASONS,
    format_cause,
    format_headline,
    format_reason,
    list_findings,
    list_reasons,
    reaches_threshold,
    shorten_quotes,
)
from agentci.reports.comparison import format_note
from agentci.reports.contents import load_run
from agentci.reports.differences import Reference, RunDifference, find_difference
from agentci.reports.failure_patterns import (
    FORBIDDEN,
    LIMIT,
    NumberNotes,
    find_largest,
    rank_seriousness,
)
from agentci.reports.groups_and_totals import MAX_NAMES, format_path, list_first_names
from agentci.reports.outcomes import (
    CaseOutcome,
    find_pattern,
    list_case_outcomes,
    rank_cause,
    rank_problem,
)
from agentci.reports.short_facts import ShortFact, list_named_values
from agentci.reports.tool_calls import find_unmatched_turns

NEW_TITLE: Final = "New failures"


class FailedCheck(Struct, frozen=True, kw_only=True):
    """A failed check.

    Attributes:
        before: its score in the baseline, else its status; empty if it has none.
        after: its score.
        note: what else to know about the change; empty for nothing.
        reason: why it failed, on one line; empty if nothing says it.
        findings: all that its evaluator found, by line.
        shows_calls: whether these lines have all tool calls that differ.
    """

    result: CheckResult
    before: str
    after: str
    note: str
    reason: str
    findings: tuple[str, ...]
    shows_calls: bool


class Cause(Struct, frozen=True, kw_only=True):
    """Cases that fail for the same reasons.

    Attributes:
        case: the first of them, which the other attributes describe.
        others: ids of the first of the others, with the numbers in which they differ from it.
        more: the number of further others.
        more_note: the ranges of their numbers; empty if they are those of the first.
        is_known: whether more than the reasons of the failures is known.
        checks: its failed ones, in the order of its problems.
        similar: ids of the cases with the same cause that fail with other values or answers.
        also_failing: of these, the number that fail other evaluators, too, and their names, the
            most frequent first.
        difference: what differs first; None if nothing does or if that is not known.
        fact: what happened in the first, in short.
    """

    case: CaseOutcome
    others: tuple[tuple[str, str], ...]
    more: int
    more_note: str
    is_known: bool
    checks: tuple[FailedCheck, ...]
    similar: tuple[str, ...]
    also_failing: tuple[int, tuple[str, ...]]
    difference: RunDifference | None
    fact: ShortFact

    @property
    def question(self) -> str:
        """The first question; empty if it is the id of the case."""
        summary = self.case.summary
        found = next((turn.question for turn in summary.dialogue if turn.question), "")
        return "" if found == summary.id else found

    def format_others(
        self, write: Callable[[str], str], write_note: Callable[[str], str] | None
    ) -> str:
        """Format ``2 more cases fail in the same way: a, b (took 9 s)``, or nothing.

        Args:
            write: escapes the id of a case.
            write_note: escapes the numbers of a case with the words around them; None for none.
        """
        if not self.others:
            return ""
        count = len(self.others) + self.more
        groups: dict[str, list[str]] = {}
        for id_, note in self.others:
            groups.setdefault(_add_note(note, write_note), []).append(write(id_))
        names = []
        for note, own in groups.items():
            last = f" (the last {len(own):,}: " if len(own) > 1 else " ("
            names.append(", ".join(own) + note.replace(" (", last, 1))
        if self.more:
            rest = truncate.format_omitted(self.more)
            names.append(rest + _add_note(self.more_note, write_note))
        return (
            f"{format_count(count, 'more case')} {self.format_likeness(count)}: {', '.join(names)}"
        )

    def format_likeness(self, count: int) -> str:
        """Format what is the same in ``count`` cases."""
        verb = "fails" if count == 1 else "fail"
        return f"{verb} {'in the same way' if self.is_known else 'for the same reason'}"

    def format_similar(
        self,
        write: Callable[[str], str] | None = None,
        write_name: Callable[[str], str] = str,
    ) -> str:
        """Format ``1 more case fails like this with other values or answers: a``, or nothing.

        Of those that fail more: ``3 more cases fail like this; 2 also fail max_latency``.

        Args:
            write: escapes the id of a case; None for no ids, where the report has them elsewhere.
            write_name: escapes the name of an evaluator.
        """
        if not self.similar:
            return ""
        count = len(self.similar)
        verb = "fails" if count == 1 else "fail"
        names = "" if write is None else f": {list_first_names(self.similar, write)}"
        more, evaluators = self.also_failing
        start = f"{format_count(count, 'more case')} {verb} like this"
        if not more:
            return f"{start} with other values or answers{names}"
        also = ", ".join(truncate.truncate_list([*map(write_name, evaluators)], MAX_EVALUATORS))
        some = "fails" if more == 1 else "fail"
        of = f"; {more} also {some}" if more < count else f" and also {verb}"
        return f"{start}{of} {also}{names}"


# Names of evaluators that similar cases also fail.
MAX_EVALUATORS: Final = 3


def _add_note(note: str, write: Callable[[str], str] | None) -> str:
    return f" ({write(note)})" if note and write is not None else ""


class Causes(Struct, frozen=True, kw_only=True):
    """What got worse, and what still fails as in the baseline.

    Attributes:
        changes: of the checks that do not pass now.
        is_new: whether a failed check did not fail in the baseline.
        new, known: cases by cause, in the order of ``rank_cause``; in each, its representative
            first.
    """

    report: Report
    changes: Mapping[CheckKey, CheckChange]
    is_new: Callable[[CheckResult], bool]
    new: tuple[Sequence[CaseOutcome], ...]
    known: tuple[Sequence[CaseOutcome], ...]
    lost: tuple[LostChecks, ...]

    @property
    def title(self) -> str:
        """The title of the new failures, with their number; those of advisory checks are apart."""
        cases = [each for group in self.new for each in group]
        if not self.report.baseline:
            return f"Failures: {format_count(len(cases), 'case')}"
        advisory = sum(each.is_advisory_failure for each in cases)
        required = len(cases) - advisory
        if not required:
            return f"{NEW_TITLE} of advisory checks: {format_count(advisory, 'case')}"
        fails = "fails" if advisory == 1 else "fail"
        more = f"; {advisory:,} more newly {fails} only advisory checks" if advisory else ""
        return f"{NEW_TITLE}: {format_count(required, 'case')}{more}"

    def describe(self, group: Sequence[CaseOutcome], max_names: int = MAX_NAMES) -> Cause:
        """Describe the first case of a cause.

        Args:
            max_names: of the other cases.
        """
        case = group[0]
        same = [each for each in group if each.variant == case.variant]
        others, similar = same[1:], [each for each in group if each.variant != case.variant]
        failed = [each for each in case.problems if each.status == "failed"]
        reference: Reference = "baseline" if any(map(self.is_new, failed)) else "expected"
        values = list_named_values(text for each in failed for text in list_reasons(each))
        content = load_run(self.report, case.results).content
        difference = find_difference(content, reference, values)
        phrases = find_pattern(self.report, case).phrases
        questions = [_join_questions(each) for each in same]
        given = [each.given for each in same]
        notes = NumberNotes([each.numbers for each in same], given, phrases, questions)
        named = [
            (
                each.summary.id,
                notes.describe(place, find_pattern(self.report, each).phrases)
                if each.numbers != case.numbers
                else "",
            )
            for place, each in enumerate(others[:max_names], start=1)
        ]
        checks = tuple(self._describe_check(each, quotes=difference is None) for each in failed)
        return Cause(
            case=case,
            others=tuple(named),
            more=len(others) - len(named),
            more_note=notes.describe_rest(1 + len(named), phrases),
            is_known=case.is_known,
            checks=checks,
            similar=tuple(each.summary.id for each in similar),
            also_failing=_count_also_failing(case, similar),
            difference=difference,
            fact=_describe_fact(case, checks[0], difference),
        )

    def _describe_check(self, result: CheckResult, *, quotes: bool) -> FailedCheck:
        change = self.changes.get(make_check_key(result))
        reason = format_reason(result)
        judgement, threshold = result.judgement, result.evaluator.threshold
        shows_score = result.score is not None and not reaches_threshold(result)
        return FailedCheck(
            result=result,
            before=self._format_before(result, change),
            after=format_score(result.score, threshold) if shows_score else "failed",
            note="" if change is None else format_note(change),
            reason=reason if quotes else shorten_quotes(reason, result),
            findings=list_findings(result, quotes=quotes),
            shows_calls=judgement is not None and bool(find_unmatched_turns(judgement.details)),
        )

    def _format_before(self, result: CheckResult, change: CheckChange | None) -> str:
        if change is not None and change.before is not None:
            return format_score(change.before)
        before = self.report.baseline.get(result.id)
        if before is None:
            return ""
        return before.status if before.score is None else format_score(before.score)


def _describe_fact(
    case: CaseOutcome, check: FailedCheck, difference: RunDifference | None
) -> ShortFact:
    """Describe what happened: the cause before what follows from it, facts before reasons."""
    reason = check.reason or format_headline(check.result)
    if len(case.summary.dialogue) == 1:
        reason = reason.removeprefix("turn 1: ")
    says_why = bool(check.reason) and not check.reason.endswith(NO_REASONS)
    calls = difference.calls if difference is not None else ()
    if case.tool_error is not None:
        quotes = difference.fact.quotes if difference and case.tool_error.changed else ()
        return ShortFact(str(case.tool_error), quotes)
    rank = rank_seriousness(check.result)
    if difference is None or rank == LIMIT:
        return ShortFact(reason)
    if rank == FORBIDDEN and not re.search(rf"`{re.escape(difference.fact.tool)}[`(]", reason):
        return ShortFact(reason)
    answer = difference.answer_fact
    if calls or difference.missing_turns or answer is None or not says_why:
        return difference.fact
    return replace(answer, reason=reason) if answer.are_facts else ShortFact(reason)


def list_causes(report: Report) -> Causes:
    """Group failed cases by cause, and checks that are not evaluated any more by reason.

    A case is new if any of its checks is newly failing, unless it also fails as in the baseline,
    and only advisory ones are newly failing.
    """
    return _list_causes(IdentityKey(report))


# All report formats of a run need them.
@lru_cache(maxsize=1)
def _list_causes(key: IdentityKey[Report]) -> Causes:
    report = key.value
    new: list[CaseOutcome] = []
    known: list[CaseOutcome] = []
    for case in list_case_outcomes(report):
        if any(each.status == "failed" for each in case.results):
            (new if case.new and case.state != "still_failing" else known).append(case)
    groups = [tuple(_group_by_cause(cases)) for cases in (new, known)]
    return Causes(
        report=report,
        changes=find_changes(report),
        is_new=make_novelty_test(report),
        new=groups[0],
        known=groups[1],
        lost=tuple(list_lost_checks(report)),
    )


def name_causes(report: Report) -> dict[int, str]:
    """Name the causes by cluster, each differently if a reader can see how they differ.

    One is not named if the reason of the first check of its cases says all.
    """
    first: dict[int, CaseOutcome] = {}
    for each in list_case_outcomes(report):
        if each.cluster is not None:
            first.setdefault(each.cluster, each)
    names: dict[str, list[int]] = {}
    for cluster, case in first.items():
        names.setdefault(_name_cause(case), []).append(cluster)
    found: dict[int, str] = {}
    for name, clusters in names.items():
        for cluster in clusters:
            case = first[cluster]
            apart = _tell_apart(case, [first[each] for each in clusters if each != cluster])
            is_by_kind = case.kind and name.endswith(f": {case.kind}")
            if apart or is_by_kind or case.tool_error or case.decisive is not case.problems[0]:
                found[cluster] = f"{name} ({apart})" if apart else name
    return found


def _name_cause(case: CaseOutcome) -> str:
    """Name the decisive check of a case with its reason, else with how calls and answers differ.

    A tool error that is the cause is named instead.
    """
    if case.tool_error is not None:
        return truncate.ELLIPSIS.join(find_numbers(str(case.tool_error).replace("`", ""))[0])
    result = case.decisive or case.results[0]
    reason = format_cause(result)
    if case.kind and (reason == result.status or reason.endswith(NO_REASONS)):
        reason = case.kind
    pieces, _ = find_numbers(reason)
    return f"{result.evaluator.name}: {truncate.ELLIPSIS.join(pieces)}"


def _tell_apart(case: CaseOutcome, others: Sequence[CaseOutcome]) -> str:
    """Return what not all of the other causes with the same name have; "" for nothing.

    That is its config and kind, or else a finding.
    """
    for read in (_list_parts, _list_findings):
        known = [read(each) for each in others]
        own = [each for each in read(case) if not all(each in other for other in known)]
        if own:
            return "; ".join(own)
    return ""


def _list_parts(case: CaseOutcome) -> list[str]:
    config = (case.decisive or case.results[0]).config
    return [format_path(config), *filter(None, case.kind.split("; "))]


def _list_findings(case: CaseOutcome) -> list[str]:
    result = case.decisive or case.results[0]
    misses = () if result.judgement is None else result.judgement.misses
    texts = (truncate.ELLIPSIS.join(find_numbers(each)[0]) for each in misses)
    return [truncate.short(each, MAX_FINDING) for each in texts][:MAX_FINDINGS]


# Of those that tell causes apart: the number, and the characters of each.
MAX_FINDINGS: Final = 3
MAX_FINDING: Final = 80


def _group_by_cause(outcomes: Sequence[CaseOutcome]) -> list[list[CaseOutcome]]:
    """Group cases by cause, in the order of ``rank_cause``.

    Of groups of the same size, the one with the most failures comes first, then the worst.
    """
    groups: dict[int | None, list[CaseOutcome]] = {}
    for each in outcomes:
        groups.setdefault(each.cluster, []).append(each)
    return sorted(
        map(_sort_group, groups.values()),
        key=lambda group: (
            rank_cause(group),
            -len(group[0].problems),
            rank_problem(group[0].problems[0]),
        ),
    )


def _join_questions(case: CaseOutcome) -> str:
    return " ".join(turn.question for turn in case.summary.dialogue)


def _sort_group(group: list[CaseOutcome]) -> list[CaseOutcome]:
    """Sort cases of one cause by variant.

    The first case represents the cause in all reports: one with a baseline, and with nothing that
    others of the group lack. Of these, variants with more cases come first, then the worst case,
    then the one with the largest number that its user did not give.
    """
    facts = [_list_facts(each) for each in group]
    shared = frozenset.intersection(*facts)
    extra = {id(each): len(own - shared) for each, own in zip(group, facts, strict=True)}
    variants: dict[int | None, list[CaseOutcome]] = {}
    for each in group:
        variants.setdefault(each.variant, []).append(each)
    ranked: list[list[tuple[_CaseRank, CaseOutcome]]] = []
    for same in variants.values():
        largest = find_largest([each.numbers for each in same], [*map(_join_questions, same)])
        own: list[tuple[_CaseRank, CaseOutcome]] = [
            (
                (
                    each.answer_changed is None,
                    extra[id(each)],
                    -len(same),
                    rank_problem(each.problems[0]),
                    -number,
                ),
                each,
            )
            for each, number in zip(same, largest, strict=True)
        ]
        ranked.append(sorted(own, key=lambda each: each[0]))
    ranked.sort(key=lambda own: own[0][0])
    return [case for own in ranked for _, case in own]


_CaseRank: TypeAlias = tuple[bool, int, int, tuple[bool, bool, float], float]


def _list_facts(case: CaseOutcome) -> frozenset[tuple[str, ...]]:
    """List what reports show of a case: its problems, and what differs from the baseline."""
    facts = {(each.config, each.evaluator.name, each.status) for each in case.problems}
    others = [("answer",)] * bool(case.answer_changed)
    return frozenset([*facts, *others, *(("tool", name) for name in case.failing_tools)])


def _count_also_failing(
    case: CaseOutcome, similar: Sequence[CaseOutcome]
) -> tuple[int, tuple[str, ...]]:
    own = _list_failing(case)
    found = [names for each in similar if (names := _list_failing(each) - own)]
    counted = Counter(name for names in found for name in sorted(names))
    return len(found), tuple(name for name, _ in counted.most_common())


def _list_failing(case: CaseOutcome) -> set[str]:
    return {each.evaluator.name for each in case.results if each.status == "failed"}
