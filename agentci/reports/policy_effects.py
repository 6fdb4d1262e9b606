"""What changes of the policy change in the results: checks that pass or count only by them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.gate.policy_changes import MAX_SHOWN
from agentci.gate.rules import TOLERANCE
from agentci.model.gate import Gate, PolicyChange, PolicyComparison, PolicyKey
from agentci.model.result import SCORED_STATUSES, CheckResult, Report
from agentci.model.values import IdentityKey, replace


def explain_policy(report: Report) -> PolicyComparison | None:
    """Return the comparison of the policy with the effects of its changes in this run."""
    return _explain_policy(IdentityKey(report))


# Each report format shows them.
@lru_cache(maxsize=1)
def _explain_policy(report: IdentityKey[Report]) -> PolicyComparison | None:
    policy = report.value.policy
    if policy is None:
        return None
    changes = (_explain(each, report.value) for each in policy.loosened)
    return replace(policy, loosened=tuple(changes))


def drop_effects(policy: PolicyComparison) -> PolicyComparison:
    """Drop what ``explain_policy`` adds."""
    changes = (
        replace(each, effect="") if each.key in _EFFECTS else each for each in policy.loosened
    )
    return replace(policy, loosened=tuple(changes))


def drop_names(policy: PolicyComparison) -> PolicyComparison:
    """Drop the names of cases where there are several and their number stays."""
    return replace(policy, loosened=tuple(map(_drop_names, policy.loosened)))


def _drop_names(change: PolicyChange) -> PolicyChange:
    """Drop the names of added and removed cases, which the subject counts, and of effects."""
    effect, _, names = change.effect.partition(": ")
    is_counted = not change.before and len(change.names) > 1
    return replace(
        change,
        names=() if is_counted else change.names,
        effect=effect if change.key in _EFFECTS and ", " in names else change.effect,
    )


def _explain(change: PolicyChange, report: Report) -> PolicyChange:
    if change.key not in _EFFECTS:
        return change
    find, one, several = _EFFECTS[change.key]
    gate = next((each for each in report.gates if each.config == change.config), None)
    own = [each for each in report.results if each.config == change.config]
    found = [] if gate is None else find(change, gate, own)
    if not found:
        return replace(change, effect="")
    names = truncate.truncate_list(list(dict.fromkeys(each.case.id for each in found)), MAX_SHOWN)
    checks = format_count(len(found), "check")
    does = one if len(found) == 1 else several
    return replace(change, effect=f"{checks} {does}: {', '.join(names)}")


def _find_passed_by_threshold(
    change: PolicyChange, gate: Gate, results: Sequence[CheckResult]
) -> list[CheckResult]:
    """Find the checks that pass, but not with the base's threshold.

    Those that several runs decide, and thresholds on another scale than the score, are left out.
    """
    thresholds = {
        (case, each.name): each.threshold if change.key == "threshold" else each.maximum
        for each in gate.settings
        for case in each.cases or ("",)
    }
    value = change.value
    if value is None:
        return []

    def is_passed_by(result: CheckResult) -> bool:
        name, score = result.evaluator.name, result.score
        if score is None or result.status != "passed" or result.repeats or result.trials:
            return False
        own = thresholds.get((result.case.id, name), thresholds.get(("", name)))
        if own != result.evaluator.threshold:
            return False
        if change.key == "maximum":
            return score > value + TOLERANCE
        return result.evaluator.better != "lower" and score < value - TOLERANCE

    return [each for each in _select(change, results) if is_passed_by(each)]


def _find_not_required(
    change: PolicyChange, _: Gate, results: Sequence[CheckResult]
) -> list[CheckResult]:
    """Find the checks that do not pass, and would count if they were required."""
    return [
        each
        for each in _select(change, results)
        if not each.evaluator.required and each.status in ("failed", "errored")
    ]


def _select(change: PolicyChange, results: Sequence[CheckResult]) -> Iterator[CheckResult]:
    """Yield the checks of the evaluator, of the cases that the change is about."""
    for each in results:
        is_own = not change.names or each.case.id in change.names
        if each.evaluator.name == change.evaluator and is_own:
            yield each


def _find_allowed_failures(
    change: PolicyChange, gate: Gate, results: Sequence[CheckResult]
) -> list[CheckResult]:
    """Find the failed checks if their pass rate is below that of the base."""
    own = {name for name, each in gate.policy.evaluators.items() if each.min_pass_rate is not None}
    scored = [
        each
        for each in results
        if each.evaluator.required
        and each.evaluator.name not in own
        and each.status in SCORED_STATUSES
    ]
    failed = [each for each in scored if each.status == "failed"]
    is_below = len(failed) > (1 - (change.value or 0.0) + TOLERANCE) * len(scored)
    return failed if is_below else []


_Find = Callable[[PolicyChange, Gate, Sequence[CheckResult]], list[CheckResult]]
_BY_THRESHOLD: Final = (
    _find_passed_by_threshold,
    "passes only because of it",
    "pass only because of it",
)
# How the checks are found, and what one and several of them do.
_EFFECTS: Final[Mapping[PolicyKey, tuple[_Find, str, str]]] = {
    "threshold": _BY_THRESHOLD,
    "maximum": _BY_THRESHOLD,
    "required": (
        _find_not_required,
        "does not pass, and does not count because of it",
        "do not pass, and do not count because of it",
    ),
    "min_pass_rate": (
        _find_allowed_failures,
        "failed, too many for the base's pass rate",
        "failed, too many for the base's pass rate",
    ),
}
