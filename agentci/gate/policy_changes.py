"""Compare the policy of a run with that of the base commit, and apply that of the base."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.change import ArgumentChange
from agentci._util.text.format import (
    format_count,
    format_distinct,
    format_distinct_durations,
    format_number,
)
from agentci._util.text.secrets import HIDDEN
from agentci.gate.rules import GateReason
from agentci.model.gate import (
    MAX_MS,
    MAX_USD,
    POOLED,
    RESULTS_PREFIX,
    Comparability,
    EvaluatorSettings,
    Gate,
    GatePolicy,
    GateThresholds,
    PolicyChange,
    PolicyChangeKind,
    PolicyComparison,
    PolicyKey,
    list_compared,
    list_pooled,
)
from agentci.model.values import FAIL_ON_CHOICES, FailOn, replace

# Keys in configs that differ from the names here.
CONFIG_KEYS: Final = {
    "source": "policy",
    "max_drop": "max_regression",
    "confidence": "regression_confidence",
    "mode": "regression_mode",
    "fail_on": "fail_on_regression",
}

LOOSER: Final = "the policy is looser than the base's"
MAYBE_LOOSER: Final = "the policy was edited, and may be looser than the base's"
# They decide about the comparison, not about checks.
SWITCHES: Final = ("gate.on_loosened", "gate.policy")
# First word of the names of lower limits of checks.
LOWER_LIMIT: Final = "min"
# Last word of the name of a limit on the calls of all tools.
OF_ALL_TOOLS: Final = "*"
NOT_SET: Final = "not set"
ADVISORY: Final = "advisory"
BY_QUESTION: Final = "found by the question"
REMOVED: Final = "removed"
EDITED: Final = "edited"
RECORDED_RUNS: Final = "recorded runs"
# An option of the run, not of a config.
FAIL_ON: Final = "fail-on"
MAX_NAMES: Final = 100
MAX_SHOWN: Final = 5
# Edited eval cases whose values are shown, and values of each.
MAX_EDITS: Final = 3
MAX_VALUES: Final = 2

T = TypeVar("T")
Value: TypeAlias = str | float | tuple[str, ...] | None
# A key, and its values in both commits.
LooserKey: TypeAlias = tuple[str, str, str]


class Difference(Struct, frozen=True):
    """A change without its config and cases; the fields are those of ``PolicyChange``."""

    kind: PolicyChangeKind
    subject: str
    before: str
    after: str
    key: PolicyKey = ""
    evaluator: str = ""
    value: float | None = None


def find_policy_changes(base: Sequence[Gate], head: Sequence[Gate]) -> Iterator[PolicyChange]:
    """Find what is looser than the base commit's policy, or edited.

    Args:
        base, head: the gates of all configs of both commits.
    """
    after = {gate.config: gate for gate in head}
    for gate in base:
        fails = gate.policy.on_loosened == "fail"
        if gate.config not in after:
            subject = f"config {gate.config}"
            yield PolicyChange(
                config=gate.config, kind="removed", subject=subject, after=REMOVED, fails=fails
            )
            continue
        for change in _compare_gates(gate, after[gate.config]):
            yield replace(change, fails=fails)


def compare_fail_on(base: Sequence[Gate], before: FailOn, after: FailOn) -> Iterator[PolicyChange]:
    """Yield the change to a ``fail-on`` that lets fewer reasons fail the run.

    Args:
        base: the gates of the base commit; without any there is nothing to compare.
        before, after: the options of the base's run and of this one.
    """
    if base and FAIL_ON_CHOICES.index(after) < FAIL_ON_CHOICES.index(before):
        by_switches = sorted(
            base, key=lambda each: (each.policy.on_loosened == "warn", each.policy.source == "head")
        )
        change = _make_change(by_switches[0], Difference("loosened", FAIL_ON, before, after))
        yield replace(change, fails=by_switches[0].policy.on_loosened == "fail")


def choose_fail_on(comparison: PolicyComparison | None, given: FailOn) -> FailOn:
    """Return the base's ``fail-on`` instead of a looser one, where the base's policy counts.

    Args:
        given: the option of this run.
    """
    if comparison is None:
        return given
    for change in comparison.loosened:
        is_enforced = change.fails or change.config in comparison.decided_by_base
        for option in FAIL_ON_CHOICES:
            if change.subject == FAIL_ON and is_enforced and option == change.before:
                return option
    return given


def is_looser(compared: Comparability, before: Any, after: Any, *, mode: str = "detect") -> bool:
    """Whether a check may pass more easily with ``after``.

    Args:
        compared: how the field is compared.
        mode: the regression mode, for the field that depends on it.
    """
    if compared.stricter in {"by part", "neither"}:
        return False
    if before is None or after is None:
        return before is not None
    if compared.choices:
        return compared.choices.index(after) > compared.choices.index(before)
    if compared.stricter == "more":
        return not {*before} <= {*after}
    by_mode = "lower" if mode == "detect" else "higher"
    stricter = by_mode if compared.stricter == "by mode" else compared.stricter
    return bool(after > before if stricter == "lower" else after < before)


def apply_base_policy(base: Gate, head: Gate) -> GatePolicy:
    """Return the base's policy for the head's evaluators; new ones keep the head's thresholds."""
    added = {name for name in head.evaluators if name not in base.evaluators}
    own = {
        name: each
        for name, each in base.policy.evaluators.items()
        if name in head.evaluators or _has_results(head)
    }
    new = {name: head.policy.evaluators.get(name, head.policy.overall) for name in added}
    return replace(base.policy, evaluators={**own, **new})


def find_unmet_requirements(base: Sequence[Gate], head: Sequence[Gate]) -> Iterator[str]:
    """Yield what the base requires and the run did not evaluate, where the base's policy decides.

    Args:
        head: the gates of the run, with the base's policy applied.
    """
    after = {gate.config: gate for gate in head}
    for gate in base:
        if gate.policy.source != "base":
            continue
        if gate.config not in after:
            yield f"the base's policy requires config {gate.config}, which was removed"
            continue
        policies = _list_policy_changes(gate, after[gate.config])
        for change in (*policies, *_compare_evaluators(gate, after[gate.config])):
            counts = change.kind != "edited" and change.before != ADVISORY
            if counts and change.subject not in SWITCHES:
                yield f"the base's policy is not met: {describe_change(change)}"


def merge_policies(parts: Iterable[PolicyComparison | None]) -> PolicyComparison | None:
    """Merge the comparisons of shards, or of runs of several configs; None if no part has one."""
    known = [each for each in parts if each is not None]
    if not known:
        return None
    unavailable = dict.fromkeys(each.unavailable for each in known if each.unavailable)

    def join(select: Callable[[PolicyComparison], Iterable[T]]) -> tuple[T, ...]:
        return tuple(dict.fromkeys(item for each in known for item in select(each)))

    return PolicyComparison(
        base=", ".join(dict.fromkeys(each.base for each in known)),
        loosened=join(lambda each: each.loosened),
        decided_by_base=join(lambda each: each.decided_by_base),
        missing=join(lambda each: each.missing),
        unavailable="; ".join(unavailable),
        required=any(each.required for each in known),
        notes=join(lambda each: each.notes),
    )


def add_fail_on(
    policy: PolicyComparison | None, merged: PolicyComparison | None
) -> PolicyComparison | None:
    """Add a change to ``fail-on`` that only a merge knows to the comparison of its parts.

    Args:
        policy: of the parts; None if they were not compared.
        merged: of the merge.
    """
    is_known = policy is not None and (policy.required or not policy.unavailable)
    if policy is None or merged is None or not is_known:
        return merged or policy
    own = (each for each in merged.loosened if each.subject == FAIL_ON)
    return replace(policy, loosened=tuple(dict.fromkeys((*policy.loosened, *own))))


def describe_change(change: PolicyChange) -> str:
    """Describe a change in one line: ``threshold of tone: 0.8 → 0.5 (2 cases: a, b)``."""
    names = ", ".join(truncate.truncate_list(change.names, MAX_SHOWN))
    effect = change.effect and f"; {change.effect}"
    if not change.before:
        return f"{change.subject} {change.after}{names and f': {names}'}{effect}"
    shown = f"{change.subject}: {change.before} → {change.after}"
    return f"{shown}{names and f' ({names})'}{effect}"


def describe_unknown_base(comparison: PolicyComparison) -> str:
    """Describe that the policy of the base is not known."""
    return f"the policy of the base is unknown: {comparison.unavailable}"


def find_policy_reasons(comparison: PolicyComparison | None) -> Iterator[GateReason]:
    """List what is loosened; it fails the gate where the base's config demands that."""
    if comparison is None:
        return
    if comparison.unavailable:
        text = describe_unknown_base(comparison)
        yield GateReason("failed" if comparison.required else "unknown", text)
    for text in comparison.missing:
        yield GateReason("failed", text)
    failing = [each for each in comparison.loosened if each.fails]
    if failing:
        several = len({each.config for each in comparison.loosened}) > 1
        texts = [
            f"{each.config}: {describe_change(each)}" if several else describe_change(each)
            for each in failing
        ]
        listed = "; ".join(truncate.truncate_list(texts, MAX_SHOWN))
        yield GateReason("failed", f"{_choose_summary(failing)}: {listed}")
    if others := [each for each in comparison.loosened if not each.fails]:
        yield GateReason("remark", summarize_changes(others), shown_elsewhere=True)


def count_changes(changes: Sequence[PolicyChange]) -> Iterator[str]:
    """Yield how many changes there are, looser ones first: ``2 looser policy changes``."""
    looser = sum(each.kind != "edited" for each in changes)
    if looser:
        yield format_count(looser, "looser policy change")
    cases = [each for each in changes if each.kind == "edited" and each.key == "eval_cases"]
    yield from (f"{each.subject} {each.after}" for each in cases)
    if edits := len(changes) - looser - len(cases):
        yield format_count(edits, "policy edit")


def summarize_changes(changes: Sequence[PolicyChange]) -> str:
    """Summarize changes: ``the policy is looser than the base's (2 changes, 1 edit)``."""
    edits = sum(each.kind == "edited" for each in changes)
    counts = {"change": len(changes) - edits, "edit": edits}
    parts = [format_count(count, noun) for noun, count in counts.items() if count]
    return f"{_choose_summary(changes)} ({', '.join(parts)})"


def _choose_summary(changes: Sequence[PolicyChange]) -> str:
    return LOOSER if has_looser(changes) else MAYBE_LOOSER


def has_looser(changes: Sequence[PolicyChange]) -> bool:
    """Whether one of the changes is surely looser, as an edit may be stricter."""
    return any(each.kind != "edited" for each in changes)


def _compare_gates(base: Gate, head: Gate) -> Iterator[PolicyChange]:
    """Compare the gates of one config in both commits."""
    yield from _list_policy_changes(base, head)
    yield from _compare_evaluators(base, head)
    yield from _compare_cases_and_runs(base, head)
    for path, selected in head.selection.items():
        before = base.selection.get(path)
        if selected and before is not None and selected != before:
            values = (before or "all traces", selected)
            yield _make_change(base, Difference("edited", f"where of {path}", *values))
    for path, named in head.case_names.items():
        before = base.case_names.get(path)
        if before is not None and named != before:
            values = (before or BY_QUESTION, named or BY_QUESTION)
            yield _make_change(base, Difference("edited", f"case of {path}", *values))
    yield from _compare_inputs(base, head)
    if base.trials != head.trials:
        values = (base.trials or "1 run", head.trials or "1 run")
        yield _make_change(base, Difference("edited", "trials", *values))


def _compare_inputs(base: Gate, head: Gate) -> Iterator[PolicyChange]:
    """Yield that runs are read from elsewhere or otherwise; further paths are no change."""
    if not base.selection.keys() <= head.selection.keys():
        before, after = (
            ", ".join(truncate.truncate_list([*each.selection], MAX_SHOWN)) or NOT_SET
            for each in (base, head)
        )
        yield _make_change(base, Difference("edited", "traces", before, after))
    for key in {**base.inputs, **head.inputs}:
        values = base.inputs.get(key, NOT_SET), head.inputs.get(key, NOT_SET)
        if values[0] != values[1]:
            yield _make_change(base, Difference("edited", key, *values))


def _list_policy_changes(base: Gate, head: Gate) -> Iterator[PolicyChange]:
    for name, own, other in _compare_policies(base, head):
        found = Difference("loosened", f"gate.{name}", own, other)
        if name == "min_pass_rate":
            value = base.policy.overall.min_pass_rate
            found = replace(found, key="min_pass_rate", value=value)
        yield _make_change(base, found)


def _make_change(gate: Gate, difference: Difference, names: Sequence[str] = ()) -> PolicyChange:
    return PolicyChange(
        config=gate.config,
        kind=difference.kind,
        subject=difference.subject,
        before=difference.before,
        after=difference.after,
        names=tuple(names[:MAX_NAMES]),
        key=difference.key,
        evaluator=difference.evaluator,
        value=difference.value,
    )


def _compare_policies(base: Gate, head: Gate) -> Iterator[LooserKey]:
    """Yield each looser key of `gate`."""
    before, after = base.policy, head.policy
    overall = [*_compare_fields(before.overall, after.overall)]
    yield from overall
    yield from _compare_fields(before, after)
    for name in base.evaluators:
        own, other = (_find_own_thresholds(each, name) for each in (before, after))
        pooled: Iterator[LooserKey] = iter(())
        if name in before.evaluators and not _is_only_evaluator(head, name):
            now = after.evaluators.get(name)
            pooled = find_pooled(before.evaluators[name], now, after.overall)
        for found in (*_compare_fields(own, other), *pooled):
            if name in head.evaluators and found not in overall:
                yield (f"evaluators.{name}.{found[0]}", *found[1:])
    yield from _compare_case_thresholds(before, after)
    if before.regression is not None and after.regression is None:
        yield "max_regression", format_number(before.regression.max_drop), NOT_SET
    elif before.regression is not None and after.regression is not None:
        mode = before.regression.mode
        yield from _compare_fields(before.regression, after.regression, mode=mode)


def _compare_case_thresholds(base: GatePolicy, head: GatePolicy) -> Iterator[LooserKey]:
    if base.cases is None:
        return
    if head.cases is not None:
        for key, before, after in _compare_fields(base.cases, head.cases):
            yield f"cases.{key}", before, after
        for case_id in {**base.cases.own, **head.cases.own}:
            own, other = (each.find_threshold(case_id) for each in (base.cases, head.cases))
            if other < own:
                yield f"cases.{case_id}.threshold", *_format_values(own, other)
    elif head.overall.min_pass_rate == base.overall.min_pass_rate:
        yield "cases", f"score >= {base.cases.threshold:g}", NOT_SET


def _compare_fields(before: Struct, after: Struct, *, mode: str = "detect") -> Iterator[LooserKey]:
    """Yield the fields with a looser value in ``after``, by their keys in a config."""
    for name, compared in list_compared(type(before)).items():
        own, other = getattr(before, name), getattr(after, name)
        if own != other and is_looser(compared, own, other, mode=mode):
            yield (CONFIG_KEYS.get(name, name), *_format_values(own, other))


def _format_values(before: Value, after: Value) -> tuple[str, str]:
    if isinstance(before, float | int) and isinstance(after, float | int):
        return format_distinct(before, after)
    return _format_value(before), _format_value(after)


def _format_value(value: Value) -> str:
    match value:
        case None:
            return NOT_SET
        case str():
            return value
        case tuple():
            return ", ".join(value) or "none"
        case _:
            return format_number(value)


def _find_own_thresholds(policy: GatePolicy, name: str) -> GateThresholds:
    """The thresholds of one evaluator; those that it sets, else those of the whole gate."""
    own = policy.evaluators.get(name)
    if own is None:
        return policy.overall
    unset = {key: getattr(policy.overall, key) for key in POOLED if getattr(own, key) is None}
    return replace(own, **unset)


def _is_only_evaluator(gate: Gate, name: str) -> bool:
    """Whether no other evaluator can share limits with it."""
    return gate.evaluators == (name,) and not _has_results(gate)


def _has_results(gate: Gate) -> bool:
    """Whether it has metrics of other tools, which are not known before their results are read."""
    return any(each.name.startswith(RESULTS_PREFIX) for each in gate.settings)


def find_pooled(own: Struct, now: Struct | None, shared: Struct) -> Iterator[LooserKey]:
    """Yield an evaluator's own limits that became limits of all evaluators together.

    Unless the shared limit is the strictest, more of its checks may then fail if others pass, even
    if the limit is stricter than its own was. Looser limits are yielded by ``_compare_fields``.

    Args:
        own: the thresholds that the evaluator had for itself.
        now: those that it has for itself; None if it shares all.
        shared: those of all evaluators together.
    """
    for key, compared in list_pooled(type(own)).items():
        before, after = getattr(own, key), getattr(shared, key)
        if before is None or (now is not None and getattr(now, key) is not None):
            continue
        if after != compared.strictest_share and not is_looser(compared, before, after):
            yield key, format_number(before), "only that of all evaluators together"


def _compare_evaluators(base: Gate, head: Gate) -> Iterator[PolicyChange]:
    """Compare the settings of all evaluators; equal changes of several cases become one."""
    found: dict[Difference, list[str]] = {}
    weighted = base.policy.cases is not None or head.policy.cases is not None
    cases = _match_compared_cases(base, head)
    before, after = _SettingsByCase(base), _SettingsByCase(head)
    for case, later_case in cases.items():
        later = after.find(later_case)
        for name, own in before.find(case).items():
            other = later.get(name)
            if other is None:
                requires = f"required, {own.criterion}" if own.required else ADVISORY
                removed = Difference("removed", name, requires, REMOVED)
                found.setdefault(removed, []).append(case)
                continue
            for difference in _compare_settings(own, other, weighted=weighted):
                found.setdefault(difference, []).append(case)
    for difference, names in found.items():
        if not _is_of_gate(difference, base, head):
            yield _make_change(base, difference, () if len(names) == len(cases) else names)


def _match_compared_cases(base: Gate, head: Gate) -> Mapping[str, str]:
    """Match the cases of both commits if evaluators belong to cases; else one empty name."""
    if any(each.cases for gate in (base, head) for each in gate.settings):
        return match_cases(base.eval_cases, head.eval_cases)
    return {"": ""}


def match_cases(base: Mapping[str, str], head: Mapping[str, str]) -> Mapping[str, str]:
    """Map the ids of the base's cases to ids of the head's; one that is in neither is left out.

    A case that was renamed has the same digest.

    Args:
        base, head: digests of the cases by id.
    """
    renamed: dict[str, list[str]] = {}
    for case, digest in head.items():
        if case not in base:
            renamed.setdefault(digest, []).append(case)
    matched: dict[str, str] = {}
    for case, digest in base.items():
        if case in head:
            matched[case] = case
        elif found := renamed.get(digest):
            matched[case] = found.pop(0)
    return matched


class _SettingsByCase:
    """Finds the evaluators of a case by name."""

    def __init__(self, gate: Gate) -> None:
        self._shared = {each.name: each for each in gate.settings if not each.cases}
        self._own: dict[str, dict[str, EvaluatorSettings]] = {}
        for each in gate.settings:
            for case in each.cases:
                self._own.setdefault(case, {})[each.name] = each

    def find(self, case: str) -> Mapping[str, EvaluatorSettings]:
        return {**self._shared, **self._own.get(case, {})}


def _compare_settings(
    before: EvaluatorSettings, after: EvaluatorSettings, *, weighted: bool
) -> Iterator[Difference]:
    """Compare one evaluator.

    Args:
        weighted: whether the gate has a threshold for the weighted scores of cases.
    """
    name = before.name
    if before.required and not after.required:
        yield Difference("loosened", name, "required", ADVISORY, "required", name)
    yield from _compare_thresholds(before, after)
    yield from _compare_limits(before, after)
    if weighted and before.weight != after.weight:
        values = format_distinct(before.weight, after.weight)
        yield Difference("edited", f"weight of {name}", *values)
    if before.repeat_by != after.repeat_by and min(before.repeat, after.repeat) > 1:
        values = before.repeat_by, after.repeat_by
        yield Difference("edited", f"repeat_by of {name}", *values)
    if before.definition != after.definition:
        yield from _compare_values(before, after)
    # Without a program, or in reports that do not have the digest, it is empty.
    if before.code != after.code and before.code and after.code:
        yield Difference("edited", f"code of {name}", "", EDITED)


def _compare_thresholds(
    before: EvaluatorSettings, after: EvaluatorSettings
) -> Iterator[Difference]:
    """Yield the looser thresholds and choices of an evaluator."""
    for key, compared in list_compared(EvaluatorSettings).items():
        own, other = getattr(before, key), getattr(after, key)
        if own == other or None in (own, other) or not is_looser(compared, own, other):
            continue
        subject = f"{_SETTING_NAMES.get(key, key)} of {before.name}"
        found = Difference("loosened", subject, *_format_values(own, other))
        known = _LOOKED_UP.get(key)
        yield replace(found, key=known, evaluator=before.name, value=own) if known else found


def _compare_values(before: EvaluatorSettings, after: EvaluatorSettings) -> Iterator[Difference]:
    """Yield the values of an edited evaluator that differ; that it was edited if not all are known.

    Stored results have no secrets, which are part of the definition.
    """
    keys = {**before.values, **after.values} if before.values and after.values else {}
    pairs = {key: (before.values.get(key, NOT_SET), after.values.get(key, NOT_SET)) for key in keys}
    differing = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
    # A report of an older version lacks settings that are compared by themselves.
    own = list_compared(EvaluatorSettings)
    edited = {key: pair for key, pair in differing.items() if NOT_SET not in pair or key not in own}
    if differing and not edited:
        return
    known = {key: pair for key, pair in edited.items() if HIDDEN not in "".join(pair)}
    for key, pair in known.items():
        yield Difference("edited", f"{key} of {before.name}", *pair)
    if not known or len(known) < len(edited):
        yield Difference("edited", before.name, "", EDITED)


def _compare_limits(before: EvaluatorSettings, after: EvaluatorSettings) -> Iterator[Difference]:
    """Yield the limits of a check that are looser, or that it no longer has."""
    for name, own in before.limits.items():
        other = after.limits.get(name)
        is_lower_limit = name.split(" ")[0] == LOWER_LIMIT
        if other is None or (other < own if is_lower_limit else other > own):
            shown = name.removesuffix(f" {OF_ALL_TOOLS}")
            subject, write = _LIMITS_WITH_UNIT.get(name, (shown, _format_values))
            values = (write(own, own)[0], NOT_SET) if other is None else write(own, other)
            yield Difference("loosened", f"{subject} of {before.name}", *values)


def _format_costs(before: float, after: float) -> tuple[str, str]:
    own, other = format_distinct(before, after)
    return f"${own}", f"${other}"


_LIMITS_WITH_UNIT: Final[Mapping[str, tuple[str, Callable[[float, float], tuple[str, str]]]]] = {
    MAX_MS: ("max", format_distinct_durations),
    MAX_USD: ("max", _format_costs),
}
_LOOKED_UP: Final[Mapping[str, PolicyKey]] = {"threshold": "threshold", "maximum": "maximum"}
_SETTING_NAMES: Final = {"maximum": "max", "match_type": "match type"}


def _is_of_gate(difference: Difference, base: Gate, head: Gate) -> bool:
    """Whether an evaluator inherits a change that is listed for the gate."""
    setting, _, name = difference.subject.partition(" of ")
    if difference.kind != "loosened" or setting != "on_turn_mismatch":
        return False
    gates = (_find_own_thresholds(gate.policy, name) for gate in (base, head))
    values = difference.before, difference.after
    return tuple(each.on_turn_mismatch for each in gates) == values


def _compare_cases_and_runs(base: Gate, head: Gate) -> Iterator[PolicyChange]:
    """Yield removed and edited eval cases, and that more runs are gone than those of the first."""
    removed, edited = _match_eval_cases(base, head)
    kinds: tuple[tuple[PolicyChangeKind, str, list[str]], ...] = (
        ("removed", REMOVED, removed),
        ("edited", EDITED, edited),
    )
    for kind, after, cases in kinds:
        if cases:
            subject = format_count(len(cases), "eval case")
            found = _make_change(base, Difference(kind, subject, "", after, "eval_cases"), cases)
            edits = _describe_edits(base, head, cases) if kind == "edited" else ""
            yield replace(found, effect=edits)
    before, now = base.recorded_runs, head.recorded_runs
    if before and now is not None and before - now > len({*removed} - {*base.uncovered}):
        yield _make_change(base, Difference("removed", RECORDED_RUNS, f"{before:,}", f"{now:,}"))


def _describe_edits(base: Gate, head: Gate, cases: Sequence[str]) -> str:
    """Describe the values that changed in the first edited cases, as far as they are known."""
    found: list[str] = []
    for case in cases:
        before, after = (dict(each.case_values.get(case, {})) for each in (base, head))
        changes = [str(each) for each in _list_value_changes(before, after)]
        if before and changes:
            name = f"{case}: " if len(cases) > 1 else ""
            found.append(name + ", ".join(truncate.truncate_list(changes, MAX_VALUES)))
    return "; ".join(truncate.truncate_list(found, MAX_EDITS))


def _list_value_changes(
    before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[ArgumentChange]:
    """Yield the texts that differ, by their keys."""
    for key in {**before, **after}:
        values = before.get(key, NOT_SET), after.get(key, NOT_SET)
        if values[0] != values[1]:
            yield ArgumentChange(key, *values)


def _match_eval_cases(base: Gate, head: Gate) -> tuple[list[str], list[str]]:
    """List the eval cases that were removed, and those edited; one only renamed is neither."""
    left = Counter(head.eval_cases.values())
    unmatched: list[str] = []
    for case, digest in base.eval_cases.items():
        if left[digest]:
            left[digest] -= 1
        else:
            unmatched.append(case)
    known = {*base.eval_cases.values()}
    new = {case for case, digest in head.eval_cases.items() if digest not in known}
    return (
        [case for case in unmatched if case not in new],
        [case for case in unmatched if case in new],
    )
