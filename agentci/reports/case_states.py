"""Put each case of two runs into one class: which checks are new failures, and what that makes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.gate.comparison import name_status
from agentci.model.case import UNRECORDED_REASONS
from agentci.model.gate import CheckChange
from agentci.model.result import SCORED_STATUSES, CaseState, CheckResult, Report
from agentci.model.values import IdentityKey

# Config, evaluator and case.
CheckKey: TypeAlias = tuple[str, str, str]


class CaseClass(Struct, frozen=True):
    """A class of the cases of both runs.

    Attributes:
        words: that follow the number of its cases.
        is_worse: whether its cases got worse.
    """

    words: str
    is_worse: bool = False


# In the order in which they are listed.
CASE_CLASSES: Final[Mapping[CaseState, CaseClass]] = {
    "new_failure": CaseClass("newly failing", is_worse=True),
    "error": CaseClass("newly errored", is_worse=True),
    "unrecorded": CaseClass(name_status("unrecorded"), is_worse=True),
    "lost": CaseClass("no longer fully evaluated", is_worse=True),
    "still_failing": CaseClass("still failing"),
    "still_errored": CaseClass("still errored"),
    "fixed": CaseClass("fixed"),
    "new_case": CaseClass("new"),
    "newly_evaluated": CaseClass("evaluated only now"),
    "removed": CaseClass("removed"),
    "not_evaluated": CaseClass("without a verdict"),
    "same": CaseClass("passed in both"),
}


UNRECORDED: Final = CASE_CLASSES["unrecorded"].words


def make_check_key(result: CheckResult) -> CheckKey:
    """Make the key of a check in the baseline's changes."""
    return result.config, result.evaluator.name, result.case.id


def find_changes(report: Report) -> Mapping[CheckKey, CheckChange]:
    """Find the changes of the checks that passed in the baseline and do not pass now."""
    return _find_changes(IdentityKey(report))


# Each case needs them.
@lru_cache(maxsize=1)
def _find_changes(report: IdentityKey[Report]) -> Mapping[CheckKey, CheckChange]:
    comparison = report.value.comparison
    return {
        (each.config, each.evaluator, change.case): change
        for each in (comparison.evaluators if comparison else ())
        for change in (*each.newly_failing, *each.no_longer_evaluated)
    }


def make_novelty_test(report: Report) -> Callable[[CheckResult], bool]:
    """Make a test whether a failed check is newly failing, as all failed ones without a baseline.

    One that passed there by the evaluators of that time is, too.
    """
    changes = find_changes(report)

    def is_new(result: CheckResult) -> bool:
        before = report.baseline.get(result.id)
        return before is None or before.status != "failed" or make_check_key(result) in changes

    return is_new


def _find_advisory_failures(
    results: Sequence[CheckResult], is_new: Callable[[CheckResult], bool]
) -> frozenset[str]:
    """Find the ids of the advisory checks of a case that newly fail, but do not decide its class.

    They do in a case without a required check.

    Args:
        results: all results of the case.
        is_new: as of ``make_novelty_test``.
    """
    if not any(each.evaluator.required for each in results):
        return frozenset()
    return frozenset(
        each.id
        for each in results
        if each.status == "failed" and not each.evaluator.required and is_new(each)
    )


def find_case_state(report: Report, results: Sequence[CheckResult]) -> CaseState | None:
    """Return the class of a case of this run, the worst that fits; None without a baseline.

    Args:
        results: all results of the case.
    """
    if not report.baseline:
        return None
    is_new, lost = make_novelty_test(report), _find_lost(IdentityKey(report))
    ignored = _find_advisory_failures(results, is_new)
    results = [each for each in results if each.id not in ignored]
    known = ((each, report.baseline.get(each.id)) for each in results)
    pairs = [(each.status, None if before is None else before.status) for each, before in known]
    now, earlier = ({status for status in side if status} for side in zip(*pairs, strict=True))
    holds: dict[CaseState, bool] = {
        "unrecorded": is_unrecorded(results),
        "new_failure": any(each.status == "failed" and is_new(each) for each in results),
        "error": any(status == "errored" != before for status, before in pairs),
        "lost": any((each.config, each.case.id) in lost for each in results),
        "still_failing": "failed" in now,
        "still_errored": "errored" in now,
        "new_case": not earlier,
        "not_evaluated": now.isdisjoint(SCORED_STATUSES),
        "fixed": any(
            status == "passed" and before in ("failed", "errored") for status, before in pairs
        ),
        "newly_evaluated": earlier.isdisjoint(SCORED_STATUSES),
    }
    return next((state for state, is_it in holds.items() if is_it), "same")


def is_unrecorded(results: Iterable[CheckResult]) -> bool:
    """Return whether nothing was recorded of a case."""
    return all(each.reason in UNRECORDED_REASONS for each in results)


def has_lower_score(report: Report, results: Iterable[CheckResult]) -> bool:
    """Return whether a check of a case passes in both runs with a lower score now."""
    lower = _find_lower_scores(IdentityKey(report))
    return bool(lower) and any((each.config, each.case.id) in lower for each in results)


@lru_cache(maxsize=1)
def _find_lower_scores(report: IdentityKey[Report]) -> frozenset[tuple[str, str]]:
    comparison = report.value.comparison
    evaluators = comparison.evaluators if comparison else ()
    return frozenset((each.config, own.case) for each in evaluators for own in each.lower_score)


@lru_cache(maxsize=1)
def _find_lost(report: IdentityKey[Report]) -> frozenset[tuple[str, str]]:
    """Find the cases, by config and id, with checks that passed in the baseline and have no run."""
    return frozenset(
        (config, case)
        for (config, _, case), change in find_changes(report.value).items()
        if change.status in ("skipped", "removed")
    )
