"""Put each check of two runs into one class, and find those that no longer pass."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.gate import CheckChange, CheckClass, CheckClasses, Gate
from agentci.model.result import CASE_METRIC, SCORED_STATUSES, CheckResult
from agentci.model.values import replace

# A smaller fall of the score of a check that passes is not listed. As in report.html (cases.js).
MIN_FALL: Final = 0.05
SCORE_TOLERANCE: Final = 1e-9

_CheckKey: TypeAlias = tuple[str, str, str]
# Ids of a case, its trace, its file and its eval case.
_RunKey: TypeAlias = tuple[str, str, str, str | None]


class ClassifiedCheck(Struct, frozen=True):
    """A check of two runs; None stands for a run without it.

    Attributes:
        stored: the result in the baseline, if ``before`` is from evaluating that again.
    """

    check_class: CheckClass
    before: CheckResult | None
    after: CheckResult | None
    stored: CheckResult | None = None

    @property
    def either(self) -> CheckResult:
        """Its result in this run, else in the baseline."""
        found = self.after or self.before
        assert found is not None  # noqa: S101 (a check is in one of the runs)
        return found


def classify_checks(
    before: Sequence[CheckResult],
    after: Sequence[CheckResult],
    stored: Mapping[str, CheckResult],
) -> Iterator[ClassifiedCheck]:
    """Classify each check of either run: those of this run in its order, then removed ones.

    A check is not removed but errored if its case is in this run as errored as a whole.

    Args:
        stored: by id, as in ``ClassifiedCheck``.
    """
    earlier = {result.id: result for result in before}
    for result in after:
        known = earlier.pop(result.id, None)
        check_class = _find_class(known, result)
        yield ClassifiedCheck(check_class, known, result, stored.get(result.id))
    errors = _find_errored_cases(after)
    for result in earlier.values():
        error = errors.get((result.config, result.case.id))
        if error is None or result.status == "errored":
            yield ClassifiedCheck("removed", result, None)
        else:
            now = replace(result, status="errored", judgement=None, reason=error.reason)
            yield ClassifiedCheck("newly_errored", result, now)


def _find_errored_cases(results: Iterable[CheckResult]) -> Mapping[tuple[str, str], CheckResult]:
    """The checks of whole cases that another tool could not evaluate, by config and case."""
    return {
        (each.config, each.case.id): each
        for each in results
        if each.status == "errored" and each.evaluator.name.endswith(CASE_METRIC)
    }


def _find_class(before: CheckResult | None, after: CheckResult) -> CheckClass:
    if before is None:
        return "added"
    if before.fingerprint != after.fingerprint:
        return "changed"
    was_scored, is_scored = (each.status in SCORED_STATUSES for each in (before, after))
    if is_scored or (before.is_measurement and after.is_measurement):
        return "compared" if was_scored or not is_scored else "newly_evaluated"
    if after.status == before.status:
        return "not_evaluated"
    return "newly_errored" if after.status == "errored" else "newly_skipped"


def count_classes(checks: Iterable[ClassifiedCheck]) -> CheckClasses:
    """Count checks by class."""
    counts = Counter[str](each.check_class for each in checks)
    return CheckClasses(**counts)


def find_renamed_configs(
    before: Iterable[CheckResult], after: Iterable[CheckResult]
) -> Mapping[str, str]:
    """Find configs that are in both runs by another name: name in the baseline, name now.

    They have the same checks by evaluator, case and fingerprint, so that a config with a looser
    evaluator is not taken for a renamed one. No other config of only one run has these checks.
    """
    names: dict[frozenset[_CheckKey], tuple[list[str], list[str]]] = {}
    earlier, later = _list_checks(before), _list_checks(after)
    for side, (own, others) in enumerate(((earlier, later), (later, earlier))):
        for config, checks in own.items():
            if config not in others and len({key[:2] for key in checks}) == len(checks):
                names.setdefault(frozenset(checks), ([], []))[side].append(config)
    return {old[0]: new[0] for old, new in names.values() if len(old) == len(new) == 1}


def _list_checks(results: Iterable[CheckResult]) -> Mapping[str, list[_CheckKey]]:
    """By config, the evaluator, the case and the fingerprint of each check."""
    checks: dict[str, list[_CheckKey]] = {}
    for each in results:
        key = (each.evaluator.name, each.case.id, each.fingerprint)
        checks.setdefault(each.config, []).append(key)
    return checks


def rename_configs(
    before: Sequence[CheckResult], after: Sequence[CheckResult], names: Mapping[str, str]
) -> tuple[CheckResult, ...]:
    """Return the results of the baseline with the names and ids that their checks have now.

    Args:
        names: as returned by ``find_renamed_configs``.
    """
    ids = {(each.config, each.evaluator.name, each.case.id): each.id for each in after}
    return tuple(
        replace(each, config=new, id=ids[new, each.evaluator.name, each.case.id])
        if (new := names.get(each.config))
        else each
        for each in before
    )


class UncoveredCases:
    """The eval cases of a run without a recorded run."""

    def __init__(self, gates: Sequence[Gate]) -> None:
        self._cases = {(each.config, case) for each in gates for case in each.uncovered}

    def contains(self, result: CheckResult) -> bool:
        """Whether the case of a check, which the other run has, is one of them."""
        return (result.config, result.case.eval_case_id) in self._cases


class AllowedRemovals:
    """The removed checks that do not count as worse.

    Their config says ``on_removed: allow``, and their case was removed, too: no check of this run
    has it, and it is not an eval case that only lacks a recorded run.
    """

    def __init__(self, gates: Sequence[Gate], after: Sequence[CheckResult]) -> None:
        self._configs = {each.config for each in gates if each.policy.on_removed == "allow"}
        self._cases = {(each.config, each.case.id) for each in after if self._configs}
        self._uncovered = UncoveredCases(gates)

    def contains(self, result: CheckResult) -> bool:
        """Whether ``result`` of the baseline may be missing."""
        return (
            result.config in self._configs
            and (result.config, result.case.id) not in self._cases
            and not self._uncovered.contains(result)
        )


def find_missing_cases(
    before: Iterable[CheckResult], after: Iterable[CheckResult], uncovered: UncoveredCases
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find the cases of which this run has no check in the configs of the baseline's checks.

    Args:
        uncovered: of this run.

    Returns:
        Ids of those that were removed, and of those without a recorded run.
    """
    present = {(each.config, each.case.id) for each in after}
    missing: dict[_RunKey, bool] = {}
    kept: set[_RunKey] = set()
    for each in before:
        case = each.case
        key = (case.id, case.trace_id, case.recording.file, case.eval_case_id)
        if (each.config, case.id) in present:
            kept.add(key)
        else:
            missing[key] = missing.get(key, False) or uncovered.contains(each)
    found = [(key[0], is_unrecorded) for key, is_unrecorded in missing.items() if key not in kept]
    removed, unrecorded = (
        tuple(id_ for id_, is_unrecorded in found if is_unrecorded == wanted)
        for wanted in (False, True)
    )
    return removed, unrecorded


def find_newly_failing(checks: Iterable[ClassifiedCheck]) -> Iterator[CheckChange]:
    """Yield the checks that fail now, and did not fail in the baseline or are not in it.

    One that was evaluated again counts as passed if it passed by either evaluation: a change of
    evaluators does not hide that it stopped passing.
    """
    for check in checks:
        before, after = check.before, check.after
        if after is not None and after.status == "failed":
            known = before is not None and before.status == "failed"
            if not known or _has_passed(check.stored):
                yield _make_change(check)


def find_no_longer_evaluated(
    checks: Iterable[ClassifiedCheck], allowed: AllowedRemovals, uncovered: UncoveredCases
) -> Iterator[CheckChange]:
    """Yield the checks that passed in the baseline by either evaluation, and have no verdict now.

    They errored, were skipped, are removed or have no recorded run.

    Args:
        uncovered: of this run.
    """
    for check in checks:
        before, after = check.before, check.after
        if before is None or not _has_passed(before, check.stored):
            continue
        if after is None:
            if not allowed.contains(before):
                change = _make_change(check)
                is_unrecorded = uncovered.contains(before)
                yield replace(change, status="unrecorded") if is_unrecorded else change
        elif after.status not in SCORED_STATUSES:
            yield _make_change(check)


def find_lower_scores(checks: Iterable[ClassifiedCheck]) -> Iterator[CheckChange]:
    """Yield the checks that pass in both runs with a score that is lower by ``MIN_FALL``."""
    for check in checks:
        before, after = check.before, check.after
        if before is None or after is None or {before.status, after.status} != {"passed"}:
            continue
        if before.score is None or after.score is None or after.evaluator.better == "lower":
            continue
        if before.score - after.score >= MIN_FALL - SCORE_TOLERANCE:
            yield _make_change(check)


def find_fixed_checks(checks: Iterable[ClassifiedCheck]) -> Iterator[CheckChange]:
    """Yield the compared checks that failed and now pass."""
    for check in checks:
        if _is_gain(check) and not _has_passed(check.stored):
            yield _make_change(check)


def count_contradicted(checks: Iterable[ClassifiedCheck]) -> int:
    """Count the checks that got better only by a change to their evaluator.

    They passed in the baseline, fail there if they are evaluated again, and pass now.
    """
    return sum(_is_gain(check) and _has_passed(check.stored) for check in checks)


def _is_gain(check: ClassifiedCheck) -> bool:
    before, after = check.before, check.after
    if check.check_class != "compared" or before is None or after is None:
        return False
    return before.status == "failed" and after.status == "passed"


def _has_passed(*results: CheckResult | None) -> bool:
    return any(each is not None and each.status == "passed" for each in results)


def _make_change(check: ClassifiedCheck) -> CheckChange:
    before, after = check.before, check.after
    fails_before = _has_passed(check.stored) and not _has_passed(before, after)
    before = check.stored if fails_before else before
    return CheckChange(
        case=check.either.case.id,
        before=None if before is None else before.score,
        after=None if after is None else after.score,
        status_before=None if before is None else before.status,
        status="removed" if after is None else after.status,
        check_class=check.check_class,
        fails_before=fails_before,
    )
