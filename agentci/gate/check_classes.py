"""Put each check of two runs into one class, and find those that no longer pass."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from agentci.gate.groups import SCORED_STATUSES
from agentci.model.gate import CheckChange, CheckClass, CheckClasses, Gate
from agentci.model.result import CheckResult


class ClassifiedCheck(Struct, frozen=True):
    """A check of two runs; None stands for a run without it."""

    check_class: CheckClass
    before: CheckResult | None
    after: CheckResult | None

    @property
    def either(self) -> CheckResult:
        """Its result in this run, else in the baseline."""
        found = self.after or self.before
        assert found is not None  # noqa: S101 (a check is in one of the runs)
        return found


def classify_checks(
    before: Sequence[CheckResult], after: Sequence[CheckResult]
) -> Iterator[ClassifiedCheck]:
    """Classify each check of either run: those of this run in its order, then removed ones."""
    earlier = {result.id: result for result in before}
    for result in after:
        known = earlier.pop(result.id, None)
        yield ClassifiedCheck(_find_class(known, result), known, result)
    yield from (ClassifiedCheck("removed", result, None) for result in earlier.values())


def _find_class(before: CheckResult | None, after: CheckResult) -> CheckClass:
    if before is None:
        return "added"
    if before.fingerprint != after.fingerprint:
        return "changed"
    if after.status in SCORED_STATUSES:
        return "compared" if before.status in SCORED_STATUSES else "newly_scored"
    if after.status == before.status:
        return "unscored"
    return "newly_errored" if after.status == "errored" else "newly_skipped"


def count_classes(checks: Iterable[ClassifiedCheck]) -> CheckClasses:
    """Count checks by class."""
    counts = Counter[str](each.check_class for each in checks)
    return CheckClasses(**counts)


class AllowedRemovals:
    """The removed checks that do not count as worse.

    Their config says ``on_removed: allow``, and their case was removed, too: no check of this run
    has it, and it is not an eval case that only lacks a recorded run.
    """

    def __init__(self, gates: Sequence[Gate], after: Sequence[CheckResult]) -> None:
        self._configs = {each.config for each in gates if each.policy.on_removed == "allow"}
        self._cases = {(each.config, each.case.id) for each in after if self._configs}
        self._uncovered = {(each.config, case) for each in gates for case in each.uncovered}

    def contains(self, result: CheckResult) -> bool:
        """Whether ``result`` of the baseline may be missing."""
        eval_case = result.case.eval_case_id or result.case.id
        return (
            result.config in self._configs
            and (result.config, result.case.id) not in self._cases
            and (result.config, eval_case) not in self._uncovered
        )


def find_worse_checks(
    checks: Iterable[ClassifiedCheck], allowed: AllowedRemovals
) -> Iterator[CheckChange]:
    """Yield the checks that passed in the baseline and do not pass now."""
    for check in checks:
        before, after = check.before, check.after
        if before is None or before.status != "passed":
            continue
        if after is None:
            if not allowed.contains(before):
                yield _make_change(check)
        elif after.status != "passed":
            yield _make_change(check)


def find_better_checks(checks: Iterable[ClassifiedCheck]) -> Iterator[CheckChange]:
    """Yield the compared checks that failed and now pass."""
    for check in checks:
        before, after = check.before, check.after
        if check.check_class != "compared" or before is None or after is None:
            continue
        if before.status == "failed" and after.status == "passed":
            yield _make_change(check)


def _make_change(check: ClassifiedCheck) -> CheckChange:
    before, after = check.before, check.after
    return CheckChange(
        case=check.either.case.id,
        before=None if before is None else before.score,
        after=None if after is None else after.score,
        status="removed" if after is None else after.status,
        check_class=check.check_class,
    )
