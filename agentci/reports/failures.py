"""What got worse in a run, one entry per cause, for the comment, the summary and the terminal."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count, format_score
from agentci.gate.comparison import NEWLY_FAILING, NO_LONGER_EVALUATED, list_changes
from agentci.model.gate import CheckChange
from agentci.model.result import CheckResult, Report
from agentci.model.values import IdentityKey
from agentci.reports.check_text import (
    format_headline,
    format_reason,
    list_findings,
    shorten_quotes,
)
from agentci.reports.comparison import (
    describe_change,
    find_gone_configs,
    format_evaluator,
    format_note,
    format_whole_config,
)
from agentci.reports.contents import show_case
from agentci.reports.differences import (
    Reference,
    RunDifference,
    find_difference,
    find_unmatched_turns,
)
from agentci.reports.failure_patterns import NumberNotes, find_largest
from agentci.reports.outcomes import (
    CaseOutcome,
    find_pattern,
    list_case_outcomes,
    rank_problem,
)
from agentci.reports.report_format import (
    MAX_NAMES,
    case_key,
    filter_by_status,
    list_first_names,
)

NEW_TITLE: Final = "New failures"
LOST_TITLE: Final = NO_LONGER_EVALUATED.capitalize()
LOWER_SCORE_TITLE: Final = "Lower score, still passing"
MAX_LOWER_SCORES: Final = 5

# Config, evaluator and case.
_CheckKey: TypeAlias = tuple[str, str, str]
# As `case_key` returns.
_CaseKey: TypeAlias = tuple[str | None, ...]
# Config and evaluator of each.
_FailedChecks: TypeAlias = tuple[tuple[str, str], ...]
# Weighs evaluators with few checks less, so that a single one is not first.
_FEW_CHECKS: Final = 10


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
        case: the worst of them, which the other attributes describe.
        others: ids of the first of the others, with the numbers in which they differ from it.
        more: the number of further others.
        more_note: the ranges of their numbers; empty if they are those of the first.
        is_known: whether more than the reasons of the failures is known.
        checks: its failed ones, required before advisory, the worst first.
        similar: ids of the cases that fail the same checks with other calls or answers; empty if an
            earlier cause has them.
        difference: what differs first; None if nothing does or if that is not known.
    """

    case: CaseOutcome
    others: tuple[tuple[str, str], ...]
    more: int
    more_note: str
    is_known: bool
    checks: tuple[FailedCheck, ...]
    similar: tuple[str, ...]
    difference: RunDifference | None

    @property
    def question(self) -> str:
        """The first question; empty if it is the id of the case."""
        summary = self.case.summary
        found = next((turn.question for turn in summary.dialogue if turn.question), "")
        return "" if found == summary.id else found

    def format_others(self, write: Callable[[str], str], write_note: Callable[[str], str]) -> str:
        """Format ``2 more cases fail in the same way: a, b (took 9 s)``, or nothing.

        Args:
            write: escapes the id of a case.
            write_note: escapes the numbers of a case with the words around them.
        """
        if not self.others:
            return ""
        count = len(self.others) + self.more
        names = [write(id_) + _add_note(note, write_note) for id_, note in self.others]
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

    def format_similar(self, write: Callable[[str], str] | None = None) -> str:
        """Format ``1 more case fails the same checks with other calls or answers: a``, or nothing.

        Args:
            write: escapes the id of a case; None for no ids, where the report has them elsewhere.
        """
        if not self.similar:
            return ""
        count = len(self.similar)
        verb = "fails" if count == 1 else "fail"
        names = "" if write is None else f": {list_first_names(self.similar, write)}"
        return (
            f"{format_count(count, 'more case')} {verb} the same checks "
            f"with other calls or answers{names}"
        )


def _add_note(note: str, write: Callable[[str], str]) -> str:
    return f" ({write(note)})" if note else ""


class LostChecks(Struct, frozen=True, kw_only=True):
    """Checks of one evaluator, or of a config that is gone, that are no longer evaluated.

    Attributes:
        change: ``1 → skipped``.
        status: the second part of it.
        reason: why they are skipped; empty for others.
        checks: their number.
        without_case: how many of them are of cases that this run does not have.
        cases: ids.
        changed: those of them whose answer changed, if no earlier checks have them.
        difference: of the first of these that no failed check shows.
    """

    evaluator: str
    change: str
    status: str
    reason: str
    checks: int
    without_case: int
    cases: tuple[str, ...]
    changed: tuple[str, ...]
    difference: RunDifference | None

    def format_cases(self, write: Callable[[str], str]) -> str:
        """Format ``a, b``, or ``20 checks: a, b, c, d, e, … and 15 more``.

        Args:
            write: escapes the id of a case.
        """
        names = list_first_names(self.cases, write)
        is_counted = self.checks == len(self.cases) <= MAX_NAMES
        return names if is_counted else f"{format_count(self.checks, 'check')}: {names}"

    def format_changed(self, write: Callable[[str], str]) -> str:
        """Format ``2 of these cases have a changed answer: a, b``, or of all; empty for none."""
        if not self.changed:
            return ""
        if self.changed == self.cases and len(self.cases) > 1:
            return "all of these cases have a changed answer"
        verb = "has" if len(self.changed) == 1 else "have"
        names = list_first_names(self.changed, write)
        return f"{len(self.changed):,} of these cases {verb} a changed answer: {names}"


def join_lost(lost: Sequence[LostChecks]) -> list[list[LostChecks]]:
    """Join evaluators whose checks of the same cases have the same status and reason now."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[LostChecks]] = {}
    for each in lost:
        groups.setdefault((each.status, each.reason, each.cases), []).append(each)
    return [*groups.values()]


def format_lost(
    group: Sequence[LostChecks], write: Callable[[str], str], write_case: Callable[[str], str]
) -> str:
    """Format ``tone 1 → skipped: a, b``; of several evaluators ``a, b: 4 checks removed (...)``.

    Args:
        group: as returned by ``join_lost``.
        write: escapes the name of an evaluator.
        write_case: escapes the id of a case.
    """
    [first, *others] = group
    if not others:
        return f"{write(first.evaluator)} {first.change}: {first.format_cases(write_case)}"
    checks = format_count(sum(each.checks for each in group), "check")
    names = list_first_names([each.evaluator for each in group], write)
    return f"{list_first_names(first.cases, write_case)}: {checks} {first.status} ({names})"


class Causes(Struct, frozen=True, kw_only=True):
    """What got worse, and what still fails as in the baseline.

    Attributes:
        changes: of the checks that do not pass now.
        is_new: whether a failed check did not fail in the baseline.
        new, known: cases by cause, the most first; in each, the worst case first.
        similar: by the worst case of a cause, the ids of the cases of later causes with its checks.
    """

    report: Report
    changes: Mapping[_CheckKey, CheckChange]
    is_new: Callable[[CheckResult], bool]
    new: tuple[Sequence[CaseOutcome], ...]
    known: tuple[Sequence[CaseOutcome], ...]
    similar: Mapping[_CaseKey, tuple[str, ...]]
    lost: tuple[LostChecks, ...]

    def describe(self, group: Sequence[CaseOutcome], max_names: int = MAX_NAMES) -> Cause:
        """Describe the worst case of a cause.

        Args:
            max_names: of the other cases.
        """
        case, *others = group
        failed = [each for each in case.problems if each.status == "failed"]
        reference: Reference = "baseline" if any(map(self.is_new, failed)) else "expected"
        difference = self._find_difference(case, reference)
        phrases = find_pattern(self.report, case).phrases
        questions = [_join_questions(each) for each in group]
        notes = NumberNotes([each.numbers for each in group], phrases, questions)
        named = [
            (
                each.summary.id,
                notes.describe(place, find_pattern(self.report, each).phrases)
                if each.numbers != case.numbers
                else "",
            )
            for place, each in enumerate(others[:max_names], start=1)
        ]
        return Cause(
            case=case,
            others=tuple(named),
            more=len(others) - len(named),
            more_note=notes.describe_rest(1 + len(named), phrases),
            is_known=case.is_known,
            checks=tuple(
                self._describe_check(each, quotes=difference is None)
                for each in sorted(failed, key=self.is_new, reverse=True)
            ),
            similar=self.similar.get(case_key(case.summary), ()),
            difference=difference,
        )

    def _find_difference(self, case: CaseOutcome, reference: Reference) -> RunDifference | None:
        return find_difference(show_case(self.report, case.results).content, reference)

    def _describe_check(self, result: CheckResult, *, quotes: bool) -> FailedCheck:
        change = self.changes.get(_make_key(result))
        reason = format_reason(result)
        judgement, threshold = result.judgement, result.evaluator.threshold
        return FailedCheck(
            result=result,
            before=self._format_before(result, change),
            after="failed" if result.score is None else format_score(result.score, threshold),
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


def list_causes(report: Report) -> Causes:
    """Group failed cases by cause, and checks that are not evaluated any more by reason.

    A case is new if any of its checks is newly failing.
    """
    return _list_causes(IdentityKey(report))


# All report formats of a run need them.
@lru_cache(maxsize=1)
def _list_causes(key: IdentityKey[Report]) -> Causes:
    report = key.value
    is_new = _make_novelty_test(report)
    new: list[CaseOutcome] = []
    known: list[CaseOutcome] = []
    for case in list_case_outcomes(report):
        failed = [each for each in case.results if each.status == "failed"]
        if failed:
            (new if any(map(is_new, failed)) else known).append(case)
    groups = [tuple(_group_by_cause(cases, report.results)) for cases in (new, known)]
    return Causes(
        report=report,
        changes=_find_changes(report),
        is_new=is_new,
        new=groups[0],
        known=groups[1],
        similar=dict(chain.from_iterable(map(_find_similar, groups))),
        lost=tuple(_list_lost(report)),
    )


def _make_novelty_test(report: Report) -> Callable[[CheckResult], bool]:
    """Make a test whether a failed check is newly failing, as all failed ones without a baseline.

    One that passed there by the evaluators of that time is, too.
    """
    changes = _find_changes(report)

    def is_new(result: CheckResult) -> bool:
        before = report.baseline.get(result.id)
        return before is None or before.status != "failed" or _make_key(result) in changes

    return is_new


def _group_by_cause(
    outcomes: Sequence[CaseOutcome], results: Sequence[CheckResult]
) -> list[list[CaseOutcome]]:
    """Group cases that fail in the same way.

    The largest group of each evaluator comes first: required evaluators before advisory ones, then
    those that lose most of their mean score, so that many cases of one evaluator do not hide
    another one. The first group of each set of failed checks is before the second of any, the one
    with the most cases first, then the one with the most failures, then the worst. In a group, of
    cases with equal scores the one with the largest number that its user did not give comes first.

    Args:
        results: of the whole run.
    """
    groups: dict[int | None, list[CaseOutcome]] = {}
    for each in outcomes:
        groups.setdefault(each.cluster, []).append(each)
    ordered = sorted(
        map(_sort_group, groups.values()),
        key=lambda group: (
            -len(group),
            -len(group[0].problems),
            rank_problem(group[0].problems[0]),
        ),
    )
    failed = [_list_failed_checks(group) for group in ordered]
    counts: Counter[_FailedChecks] = Counter()
    places: list[int] = []
    for checks in failed:
        places.append(counts[checks])
        counts[checks] += 1
    leading = {
        next(at for at, checks in enumerate(failed) if evaluator in checks): rank
        for rank, evaluator in reversed([*enumerate(_rank_evaluators(outcomes, results))])
    }
    order = sorted(range(len(ordered)), key=lambda at: (leading.get(at, len(ordered)), places[at]))
    return [ordered[at] for at in order]


def _find_similar(
    groups: Sequence[Sequence[CaseOutcome]],
) -> Iterator[tuple[_CaseKey, tuple[str, ...]]]:
    """Yield the worst case of each first cause of some checks, and the cases of the later ones."""
    same: dict[_FailedChecks, list[Sequence[CaseOutcome]]] = {}
    for group in groups:
        same.setdefault(_list_failed_checks(group), []).append(group)
    for first, *others in same.values():
        yield case_key(first[0].summary), tuple(case.summary.id for each in others for case in each)


def _list_failed_checks(group: Sequence[CaseOutcome]) -> _FailedChecks:
    return tuple((each.config, each.evaluator.name) for each in group[0].problems)


def _rank_evaluators(
    outcomes: Sequence[CaseOutcome], results: Sequence[CheckResult]
) -> list[tuple[str, str]]:
    """Rank the evaluators of failed checks by what these take from their mean scores.

    Returns:
        Config and name, required ones first.
    """
    evaluated = Counter(
        (each.config, each.evaluator.name) for each in results if each.status != "skipped"
    )
    problems = [each for outcome in outcomes for each in outcome.problems]
    required = {(each.config, each.evaluator.name) for each in problems if each.evaluator.required}
    lost: dict[tuple[str, str], float] = {}
    for each in problems:
        key = each.config, each.evaluator.name
        lost[key] = lost.get(key, 0.0) + 1 - (each.score or 0.0)
    return sorted(
        lost, key=lambda each: (each not in required, -lost[each] / (evaluated[each] + _FEW_CHECKS))
    )


def _join_questions(case: CaseOutcome) -> str:
    return " ".join(turn.question for turn in case.summary.dialogue)


def _sort_group(group: list[CaseOutcome]) -> list[CaseOutcome]:
    largest = find_largest([each.numbers for each in group], [*map(_join_questions, group)])
    ranked = zip(group, largest, strict=True)
    ordered = sorted(ranked, key=lambda each: (rank_problem(each[0].problems[0]), -each[1]))
    return [case for case, _ in ordered]


def _make_key(result: CheckResult) -> _CheckKey:
    return result.config, result.evaluator.name, result.case.id


def _find_changes(report: Report) -> Mapping[_CheckKey, CheckChange]:
    compared = report.comparison.evaluators if report.comparison else ()
    return {
        (each.config, each.evaluator, change.case): change
        for each in compared
        for change in (*each.newly_failing, *each.no_longer_evaluated)
    }


def _list_lost(report: Report) -> Iterator[LostChecks]:
    """Yield the checks that are no longer evaluated; those of a config that is gone together.

    Errored ones have a list of their own.
    """
    comparison = report.comparison
    if comparison is None:
        return
    gone = find_gone_configs(comparison)
    results = {_make_key(each): each for each in report.results}
    present = {(each.config, each.case.id) for each in report.results}
    groups: dict[tuple[str, str, str], list[CheckChange]] = {}
    without_case: Counter[tuple[str, str, str]] = Counter()
    for compared in comparison.evaluators:
        name = format_evaluator(compared, comparison)
        if compared.config in gone:
            own = [each for each in comparison.evaluators if each.config == compared.config]
            name = format_whole_config(own)
        for change in compared.no_longer_evaluated:
            if change.status == "errored":
                continue
            result = results.get((compared.config, compared.evaluator, change.case))
            reason = "" if result is None else format_headline(result)
            key: tuple[str, str, str] = (name, change.status, reason)
            groups.setdefault(key, []).append(change)
            without_case[key] += (
                compared.config not in gone and (compared.config, change.case) not in present
            )
    changed = {
        each.summary.id: each for each in list_case_outcomes(report) if each.answer_changed is True
    }
    for (evaluator, status, reason), changes in groups.items():
        cases = tuple(dict.fromkeys(each.case for each in changes))
        found = [changed.pop(each) for each in cases if each in changed]
        # What a failed check shows is above already.
        unseen = next((each for each in found if not each.problems), found[0] if found else None)
        yield LostChecks(
            evaluator=evaluator,
            change=_describe_changes(changes),
            status=status,
            reason=reason,
            checks=len(changes),
            without_case=without_case[evaluator, status, reason],
            cases=cases,
            changed=tuple(each.summary.id for each in found),
            difference=None if unseen is None else _find_difference(report, unseen),
        )


def _find_difference(report: Report, case: CaseOutcome) -> RunDifference | None:
    return find_difference(show_case(report, case.results).content, "baseline")


def _describe_changes(changes: Sequence[CheckChange]) -> str:
    """Describe changes to one status: ``1 → skipped``, or ``0.93 to 1 → removed``."""
    lowest, highest = (
        choose(changes, key=lambda each: 0.0 if each.before is None else each.before)
        for choose in (min, max)
    )
    low, high = describe_change(lowest), describe_change(highest)
    return high if low == high else f"{low.partition(' ')[0]} to {high}"


def list_skipped(report: Report) -> tuple[CheckResult, ...]:
    """List the skipped checks without those that ``list_causes`` has as lost."""
    changes = _find_changes(report)
    return tuple(
        each
        for each in report.results
        if each.status == "skipped" and _make_key(each) not in changes
    )


def format_changes(report: Report) -> tuple[str, ...]:
    """Format how many checks changed, and of cases the answers: ``2 newly failing``, ``1 fixed``.

    What got worse comes first. Empty without a baseline, or if nothing changed.
    """
    changed = sum(each.answer_changed is True for each in list_case_outcomes(report))
    answers = [f"{format_count(changed, 'case')} with a changed answer"] if changed else []
    return (*format_changed_checks(report), *answers)


def format_changed_checks(report: Report) -> tuple[str, ...]:
    """Format how many checks changed, as in ``format_changes``."""
    if report.comparison is None or report.comparison.no_baseline:
        return ()
    is_new = _make_novelty_test(report)
    known = sum(each.status == "failed" and not is_new(each) for each in report.results)
    return (
        *(f"{count:,} {label}" for _, count, label in list_changes(report.comparison.evaluators)),
        *([f"{known:,} still failing"] if known else []),
    )


def format_change_line(report: Report, baseline: str, *, bold: str = "") -> str:
    """Format ``Checks against the baseline BASELINE: 2 newly failing, 1 fixed``; or nothing.

    Args:
        baseline: its name, as the report format shows it.
        bold: is put around what got worse.
    """
    if report.comparison is None or report.comparison.no_baseline:
        return ""
    worse = (f" {NEWLY_FAILING}", f" {NO_LONGER_EVALUATED}")
    shown = [
        f"{bold}{each}{bold}" if any(name in each for name in worse) else each
        for each in format_changes(report)
    ]
    return f"Checks against the baseline {baseline}: {', '.join(shown) or 'no change'}"


class LowerScore(Struct, frozen=True):
    """A check that passes as in the baseline, with a lower score."""

    evaluator: str
    change: CheckChange


def list_lower_scores(report: Report) -> list[LowerScore]:
    """List the checks whose score fell although they still pass: largest drop first."""
    if report.comparison is None:
        return []
    found = [
        LowerScore(format_evaluator(compared, report.comparison), change)
        for compared in report.comparison.evaluators
        for change in compared.lower_score
    ]
    return sorted(found, key=lambda each: (each.change.after or 0.0) - (each.change.before or 0.0))


def format_more_skips(report: Report) -> str:
    """Format that skipped checks which passed in the baseline are in another list; or nothing."""
    found = filter_by_status(report.results, "skipped")
    lost = len(found) - len(list_skipped(report))
    return f", and {lost:,} that passed in the baseline" if lost else ""
