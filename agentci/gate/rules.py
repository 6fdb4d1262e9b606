"""Rules of the gate: each yields reasons for or against passing."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count, format_distinct_percents, format_score
from agentci.evaluators.changed_facts import rank_facts
from agentci.gate.aggregation import compute_case_scores
from agentci.gate.statistics import PassRateBound, group_passes, make_pass_rate_bound
from agentci.model.gate import POOLED, CaseThresholds, Gate, GatePolicy, GateThresholds
from agentci.model.requests import CHANGED_FACTS, CHANGED_WORDS, POSSIBLE_ERRORS
from agentci.model.result import SCORED_STATUSES, CheckResult, Report, Status
from agentci.model.values import Json, Problem

ResultsByPolicy: TypeAlias = Sequence[tuple[GatePolicy, Sequence[CheckResult]]]


class CheckGroup(Struct, frozen=True):
    """Required checks that share thresholds.

    Attributes:
        prefix: starts messages about the group.
        part: which of the checks of the config these are, beside others: ``required``, ``other``;
            empty if they are all, or those of the evaluator that the prefix names.
    """

    prefix: str
    thresholds: GateThresholds
    results: tuple[CheckResult, ...]
    part: str = ""

    def with_status(self, *statuses: Status) -> tuple[CheckResult, ...]:
        """The results of the group that have one of ``statuses``."""
        return tuple(result for result in self.results if result.status in statuses)


class ConfigResults(Struct, frozen=True):
    """The results of one config, grouped separately for each kind of threshold.

    Attributes:
        pooled: for each key in ``POOLED``, one group of all evaluators that do not set it, then one
            for each evaluator that does.
        unpooled_groups: the same for all other keys together.
    """

    prefix: str
    cases: CaseThresholds | None
    results: Sequence[CheckResult]
    required: tuple[CheckResult, ...]
    pooled: Mapping[str, tuple[CheckGroup, ...]]
    unpooled_groups: tuple[CheckGroup, ...]

    @property
    def is_evaluated(self) -> bool:
        """Whether any check that counts has a verdict; advisory ones only count in case scores."""
        counted = self.required if self.cases is None else self.results
        return any(result.status in SCORED_STATUSES for result in counted)


def group_by_config(results_by_policy: ResultsByPolicy) -> list[ConfigResults]:
    """Group the results of every config."""
    return [
        _group_config_results(policy, own, several=len(results_by_policy) > 1)
        for policy, own in results_by_policy
    ]


def _group_config_results(
    policy: GatePolicy, results: Sequence[CheckResult], *, several: bool
) -> ConfigResults:
    prefix = f"{results[0].config}: " if results and several else ""
    required = tuple(result for result in results if result.evaluator.required)

    def groups(own: Mapping[str, GateThresholds]) -> tuple[CheckGroup, ...]:
        """One group for each evaluator in ``own``, after one group for all other evaluators."""
        others = tuple(result for result in required if result.evaluator.name not in own)
        part = "other" if own else "required" if len(required) < len(results) else ""
        return (
            CheckGroup(prefix, policy.overall, others, part),
            *(
                CheckGroup(
                    f"{prefix}{name}: ",
                    thresholds,
                    tuple(r for r in required if r.evaluator.name == name),
                )
                for name, thresholds in own.items()
            ),
        )

    evaluators = policy.evaluators
    return ConfigResults(
        prefix=prefix,
        cases=policy.cases,
        results=results,
        required=required,
        pooled={
            key: groups(
                {k: each for k, each in evaluators.items() if getattr(each, key) is not None}
            )
            for key in POOLED
        },
        unpooled_groups=groups(evaluators),
    )


# A remark does not affect the decision. If the gate passes, its summary names the reasons of the
# kinds `worse` (than the baseline) and `unknown`; if it fails, those of `unknown` become remarks.
ReasonKind: TypeAlias = Literal[
    "input",
    "interrupted",
    "failed",
    "not_evaluated",
    "errored",
    "remark",
    "worse",
    "unknown",
]
# Allowance for floating-point error in sums; thresholds are never this fine.
TOLERANCE = 1e-9
MAX_NAMES = 5
MAX_FACTS = 2
MAX_REASON_CHARS = 200
OTHER_EVALUATORS: Final = "of evaluators without their own min_pass_rate"
NOTHING_EVALUATED = "no check was evaluated"
NO_REQUIRED_EVALUATED = "no required check was evaluated"


class GateReason(Struct, frozen=True):
    """One reason for a gate decision; a ``remark`` never fails the gate.

    Attributes:
        shown_elsewhere: whether every report has it in another part, such as the list of skipped
            checks.
        errored: if it counts errored checks, the text without the names of what errored.
    """

    kind: ReasonKind
    text: str
    shown_elsewhere: bool = False
    errored: str = ""


class Coverage(Struct, frozen=True, kw_only=True):
    """Which eval cases and recorded runs have no counterpart.

    Attributes:
        missing: ids of the eval cases without a recorded run that fail the gate.
        allowed: ids of the others without one.
        unmatched: number of recorded runs without an eval case, if there are eval cases.
    """

    missing: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    unmatched: int = 0


ALL_COVERED: Final = Coverage()
MAX_CASE_NAME: Final = 40


def find_coverage(gates: Sequence[Gate]) -> Coverage:
    """Find the eval cases and recorded runs of all configs that have no counterpart.

    An eval case that several configs share needs a recorded run in one of them.
    """
    covered = {
        each for gate in gates for each in gate.eval_cases.items() if each[0] not in gate.uncovered
    }
    uncovered = [
        (gate, case)
        for gate in gates
        for case in gate.uncovered
        if (case, gate.eval_cases.get(case)) not in covered
    ]
    missing = dict.fromkeys(
        case
        for gate, case in uncovered
        if case in gate.missing and gate.policy.on_missing == "fail"
    )
    allowed = dict.fromkeys(case for _, case in uncovered if case not in missing)
    return Coverage(
        missing=tuple(missing),
        allowed=tuple(allowed),
        unmatched=sum(len(gate.unmatched) for gate in gates),
    )


def describe_missing_case(case: str) -> str:
    """Describe an eval case without a recorded run."""
    return f"no recorded run matches eval case `{truncate.short(case, MAX_CASE_NAME)}`"


def list_missing_cases(report: Report) -> Iterator[tuple[str, str, Problem]]:
    """Yield the config and id of each eval case that fails the gate without a run, and why.

    None of a shard: the runs of others are not known.
    """
    missing = find_coverage(report.gates).missing if report.shard_info is None else ()
    known = {each.message: each for each in report.problems}
    for case in missing:
        config = next(gate.config for gate in report.gates if case in gate.missing)
        message = describe_missing_case(case)
        yield config, case, known.get(message) or Problem(message=message)


def find_reasons(
    results_by_policy: ResultsByPolicy,
    *,
    problems: Sequence[Problem],
    coverage: Coverage,
    complete: bool,
) -> list[GateReason]:
    """List all reasons, in the order of the configs."""
    configs = group_by_config(results_by_policy)
    reasons = [*_find_input_errors(problems), *_find_interruption(complete=complete)]
    # Invalid input and an interruption explain a run without results.
    if not reasons or any(results for _, results in results_by_policy):
        reasons += _find_empty_configs(configs)
    reasons += _count_failed(configs)
    for config in configs:
        rates, scores = config.pooled["min_pass_rate"], config.pooled["min_score"]
        reasons += [each for group in rates for each in _check_pass_rate(group)]
        reasons += [each for group in rates for each in _check_pass_rate_bound(group)]
        reasons += [each for group in scores for each in _check_mean_score(group)]
        reasons += _check_case_scores(config)
        reasons += _find_low_turns(config)
        reasons += _find_changed_facts(config)
        reasons += _find_possible_errors(config)
        reasons += [
            each for group in config.unpooled_groups for each in _check_skips_and_errors(group)
        ]
    return [*reasons, *_check_coverage(configs, coverage), *_check_advisory(configs)]


def format_pass_summary(results_by_policy: ResultsByPolicy) -> str:
    """The first reason shown when the gate passes."""
    every = [result for _, results in results_by_policy for result in results]
    required = [result for result in every if result.evaluator.required]
    part = "required" if len(required) < len(every) else ""
    passed = sum(result.status == "passed" for result in required)
    total = sum(result.status in SCORED_STATUSES for result in required)
    if passed < total:
        return f"{passed:,} of {_count_evaluated(total, required, part)} passed"
    return f"{format_count(passed, f'{part} check'.lstrip())} passed"


def compute_mean_score(results: Sequence[CheckResult]) -> float | None:
    """Compute the mean score of checks that passed or failed; None if none of them has a score."""
    scores = [
        result.score
        for result in results
        if result.status in SCORED_STATUSES and result.score is not None
    ]
    finite = [score for score in scores if math.isfinite(score)]
    return math.fsum(finite) / len(finite) if finite else None


def _find_input_errors(problems: Sequence[Problem]) -> Iterator[GateReason]:
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        yield GateReason("input", f"invalid input ({format_count(len(errors), 'error')})")


def _find_interruption(*, complete: bool) -> Iterator[GateReason]:
    if not complete:
        yield GateReason("interrupted", "the run was interrupted before all checks finished")


def _find_empty_configs(configs: Sequence[ConfigResults]) -> Iterator[GateReason]:
    """Report configs without a passed or failed check.

    Configs that already fail because of errors are left out, and those that have only advisory
    checks while another config has results.
    """
    if not configs:
        yield GateReason("not_evaluated", NOTHING_EVALUATED)
    any_scored = any(config.is_evaluated for config in configs)
    for config in configs:
        errors_fail = any(
            group.thresholds.on_error == "fail" and group.with_status("errored")
            for group in config.unpooled_groups
        )
        only_advisory = config.results and not config.required and any_scored
        if not (config.is_evaluated or errors_fail or only_advisory):
            advisory_scored = any(result.status in SCORED_STATUSES for result in config.results)
            reason = NO_REQUIRED_EVALUATED if advisory_scored else NOTHING_EVALUATED
            yield GateReason("not_evaluated", f"{config.prefix}{reason}")
        else:
            yield from _find_empty_evaluators(config)


def _find_empty_evaluators(config: ConfigResults) -> Iterator[GateReason]:
    """Report required evaluators whose checks were all skipped.

    Evaluators that need a secret which this workflow does not have are not reported here.
    """
    for group in config.unpooled_groups:
        by_name: dict[str, list[CheckResult]] = {}
        for result in group.results:
            by_name.setdefault(result.evaluator.name, []).append(result)
        for name, results in by_name.items():
            if all(each.status == "skipped" and not each.unavailable for each in results):
                text = f"{config.prefix}{name} evaluated no case{_format_shared_reason(results)}"
                fails = group.thresholds.on_empty == "fail"
                yield GateReason("not_evaluated" if fails else "remark", text)


def _count_failed(configs: Sequence[ConfigResults]) -> Iterator[GateReason]:
    """Count all failed required checks where each missed threshold is of a part, or of scores."""
    checked = [config for config in configs if config.cases is None]
    groups = [group for config in checked for group in config.pooled["min_pass_rate"]]
    found = [group for group in groups if group.with_status("failed")]
    missed = [reason for group in found for reason in _check_pass_rate(group)]
    is_part = len(found) > 1 or any(group.part == "other" for group in found)
    if not any(reason.kind == "failed" for reason in missed):
        by_score = [group for config in checked for group in config.pooled["min_score"]]
        is_part = bool(found) and any(
            each for group in by_score for each in _check_mean_score(group)
        )
    if is_part:
        results = [result for group in groups for result in group.results]
        has_advisory = len(results) < sum(len(config.results) for config in checked)
        yield GateReason("failed", _describe_failed(results, "required" if has_advisory else ""))


def _check_pass_rate(group: CheckGroup) -> Iterator[GateReason]:
    failed, scored = len(group.with_status("failed")), len(group.with_status(*SCORED_STATUSES))
    if not failed:
        return
    required, rate = group.thresholds.min_pass_rate or 0.0, (scored - failed) / scored
    shown = _format_pass_rate(rate, required)
    if group.part == "other":
        counted = _describe_failed(group.results, "")
        text = f"{group.prefix}overall {shown}: {counted} ({OTHER_EVALUATORS})"
    else:
        text = f"{group.prefix}{_describe_failed(group.results, group.part)} ({shown})"
    yield GateReason("failed" if rate < required - TOLERANCE else "remark", text)


def _describe_failed(results: Sequence[CheckResult], part: str) -> str:
    """Format ``5 of 11 evaluated checks failed``."""
    failed = sum(result.status == "failed" for result in results)
    scored = sum(result.status in SCORED_STATUSES for result in results)
    return f"{failed:,} of {_count_evaluated(scored, results, part)} failed"


def _count_evaluated(scored: int, results: Sequence[CheckResult], part: str = "") -> str:
    """Format ``8 checks``, or ``8 evaluated checks`` if others were skipped or errored."""
    evaluated = "evaluated" if scored < len(results) else ""
    return format_count(scored, " ".join(filter(None, (evaluated, part, "check"))))


def _format_pass_rate(rate: float, required: float) -> str:
    shown_rate, shown_required = format_distinct_percents(rate, required)
    return f"pass rate {shown_rate}, required {shown_required}"


def _check_pass_rate_bound(group: CheckGroup) -> Iterator[GateReason]:
    thresholds, passes = group.thresholds, group_passes(group.with_status(*SCORED_STATUSES))
    bound = make_pass_rate_bound(passes, thresholds.min_pass_rate, thresholds.pass_rate_confidence)
    if bound is not None:
        yield _make_bound_reason(group.prefix, bound)


def _make_bound_reason(prefix: str, bound: PassRateBound) -> GateReason:
    return GateReason("remark" if bound.is_reached else "failed", f"{prefix}{bound.summary}")


def _check_mean_score(group: CheckGroup) -> Iterator[GateReason]:
    min_score = group.thresholds.min_score
    if min_score is None or not group.with_status(*SCORED_STATUSES):
        return
    mean = compute_mean_score(group.results)
    if mean is None:
        yield GateReason("failed", f"{group.prefix}no check has a score; `min_score` needs one")
    elif mean < min_score - TOLERANCE:
        shown = format_score(mean, min_score)
        text = f"{group.prefix}mean score {shown} is below the threshold {min_score:g}"
        yield GateReason("failed", text)


def _check_case_scores(config: ConfigResults) -> Iterator[GateReason]:
    """Report cases below the score threshold; cases without a score are reported elsewhere."""
    if config.cases is None:
        return
    cases = config.cases
    scores = compute_case_scores(config.results, errors_score=cases.errors_score)
    passes = (v >= cases.find_threshold(k) - TOLERANCE for k, v in scores.items())
    if bound := make_pass_rate_bound(passes, cases.min_pass_rate, cases.pass_rate_confidence):
        yield _make_bound_reason(config.prefix, bound)
    low = {k: v for k, v in scores.items() if v < cases.find_threshold(k) - TOLERANCE}
    if not low:
        return
    rate = 1 - len(low) / len(scores)
    worst = sorted(low, key=lambda case_id: low[case_id])
    shown = [f"{each} {format_score(low[each], cases.find_threshold(each))}" for each in worst]
    names = ", ".join(truncate.truncate_list(shown, MAX_NAMES))
    needed = "their thresholds" if cases.own else f"{cases.threshold:g}"
    text = (
        f"{config.prefix}{len(low):,} of {format_count(len(scores), 'case')} scored below {needed} "
        f"({_format_pass_rate(rate, cases.min_pass_rate)}): {names}"
    )
    yield GateReason("failed" if rate < cases.min_pass_rate - TOLERANCE else "remark", text)


def _find_low_turns(config: ConfigResults) -> Iterator[GateReason]:
    """Report the evaluators that passed cases in which a turn is below the threshold."""
    found: dict[str, list[str]] = {}
    first: dict[str, CheckResult] = {}
    for result in config.required:
        if low := _describe_lowest_turn(result):
            found.setdefault(result.evaluator.name, []).append(f"{result.case.id} ({low})")
            first.setdefault(result.evaluator.name, result)
    for name, cases in found.items():
        evaluator = first[name].evaluator
        text = (
            f"{config.prefix}{name} passed {format_count(len(cases), 'case')} with a turn below "
            f"the threshold {evaluator.threshold:g}: "
            f"{', '.join(truncate.truncate_list(cases, MAX_NAMES))}"
        )
        hint = "; `turn_score: min` fails such cases" if evaluator.type == "builtin" else ""
        yield GateReason("remark", f"{text}{hint}")


def _describe_lowest_turn(result: CheckResult) -> str:
    """Describe the lowest turn of a passed check if it is below the threshold; otherwise empty."""
    judgement, threshold = result.judgement, result.evaluator.threshold
    if result.status != "passed" or judgement is None or threshold is None:
        return ""
    scores = judgement.turn_scores
    low = [
        (score, turn)
        for turn, score in enumerate(scores, 1)
        if score is not None and score < threshold - TOLERANCE
    ]
    if not low:
        return ""
    score, turn = min(low)
    others = f", {len(low) - 1} more below" if len(low) > 1 else ""
    return f"turn {turn} of {len(scores)} scored {format_score(score, threshold)}{others}"


def _find_changed_facts(config: ConfigResults) -> Iterator[GateReason]:
    """Report the similarity metrics that passed answers with other facts or single other words.

    Models vary words, so that reports have these only in lists of their own.
    """
    hint = "to fail such answers, add `checks: [contains: TEXT]` to the eval case"
    what = "whose answer has other facts than expected"
    for text in _list_passed_cases(config, what, list_changed_facts, MAX_FACTS, rank_facts):
        yield GateReason("remark", f"{text}; {hint}")
    what = "whose answer has other words than expected"
    for text in _list_passed_cases(config, what, list_changed_words, MAX_FACTS, rank_facts):
        yield GateReason("remark", text, shown_elsewhere=True)


def _find_possible_errors(config: ConfigResults) -> Iterator[GateReason]:
    """Report the checks that passed results which look like errors, as no status is recorded."""
    what = (
        "in which a tool returned what looks like an error, as the recording does not say whether "
        "it failed"
    )
    for text in _list_passed_cases(config, what, list_possible_errors, 1):
        yield GateReason("remark", text)


def _list_passed_cases(
    config: ConfigResults,
    what: str,
    find: Callable[[CheckResult], Sequence[str]],
    most: int,
    rank: Callable[[str], int] = lambda _: 0,
) -> Iterator[str]:
    """Name by evaluator the cases in which something was found although all checks passed.

    Args:
        what: describes these cases.
        most: of what is found in a case.
        rank: orders the cases by the first of what is found.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    failed = {
        (each.case.id, each.case.trace_id)
        for each in config.required
        if each.status in ("failed", "errored")
    }
    for result in config.required:
        is_failed = (result.case.id, result.case.trace_id) in failed
        if not is_failed and (findings := find(result)):
            shown = "; ".join(truncate.truncate_list(findings, most))
            case = rank(findings[0]), f"{result.case.id} ({shown})"
            found.setdefault(result.evaluator.name, []).append(case)
    for name, cases in found.items():
        ranked = [shown for _, shown in sorted(cases, key=itemgetter(0))]
        names = ", ".join(truncate.truncate_list(ranked, MAX_NAMES))
        count = format_count(len(cases), "case")
        yield f"{config.prefix}{name} passed {count} {what}: {names}"


def list_possible_errors(result: CheckResult) -> list[str]:
    """List the results of tools that look like errors although the check passed."""
    details = result.judgement.details if result.judgement is not None else {}
    errors = details.get(POSSIBLE_ERRORS)
    if result.status != "passed" or not isinstance(errors, list):
        return []
    return [escape.flatten_line(each) for each in errors if isinstance(each, str)]


def list_changed_words(result: CheckResult) -> list[str]:
    """List the other words of the answers of a passed check that has no other facts."""
    facts = list_changed_facts(result)
    return [] if facts else list_changed_facts(result, (CHANGED_WORDS,))


def list_changed_facts(result: CheckResult, kinds: Sequence[str] = (CHANGED_FACTS,)) -> list[str]:
    """List what differs in the answers of a passed check from the expected ones.

    Args:
        kinds: keys of its details.
    """
    if result.status != "passed" or result.judgement is None or not result.judgement.details:
        return []
    details = result.judgement.details
    facts: list[Json] = []
    for kind in kinds:
        changed = details.get(kind)
        facts += changed if isinstance(changed, list) else []
    results = details.get("results")
    turns = results if isinstance(results, list) else []
    for number, turn in enumerate(turns, start=1):
        if isinstance(turn, Mapping) and isinstance(each := turn.get(CHANGED_FACTS), str):
            facts.append(f"turn {number}: {each}" if len(turns) > 1 else each)
    shown = (escape.flatten_line(each) for each in facts if isinstance(each, str))
    return sorted(shown, key=rank_facts)


def _check_skips_and_errors(group: CheckGroup) -> Iterator[GateReason]:
    if skipped := group.with_status("skipped"):
        text = (
            f"{group.prefix}{format_count(len(skipped), 'check')} skipped"
            f"{_format_evaluator_names(skipped)}{_format_shared_reason(skipped)}"
        )
        fails = group.thresholds.on_skip == "fail"
        yield GateReason("failed" if fails else "remark", text, shown_elsewhere=True)
    if errored := group.with_status("errored"):
        noun = "required check" if group.part == "required" else "check"
        count = f"{group.prefix}{_count_errored(errored, noun)}"
        text = f"{count}{_name_errored(errored)}"
        if group.thresholds.on_error == "fail":
            yield GateReason("errored", text, errored=count)
        else:
            yield GateReason("remark", f"{text}; reported only (on_error: warn)")


def _count_errored(errored: Sequence[CheckResult], noun: str) -> str:
    """Count checks, and cases with errors of several."""
    count = format_count(len(errored), noun)
    cases = {result.case.id for result in errored}
    of = f" of {format_count(len(cases), 'case')}" if len(cases) < len(errored) else ""
    return f"{count}{of} errored"


def _name_errored(errored: Sequence[CheckResult]) -> str:
    """Name evaluators, or the cases if fewer."""
    cases = list(dict.fromkeys(result.case.id for result in errored))
    if len(cases) >= len({result.evaluator.name for result in errored}):
        return _format_evaluator_names(errored)
    return f" ({', '.join(truncate.truncate_list(cases, MAX_NAMES))})"


def _check_coverage(configs: Sequence[ConfigResults], coverage: Coverage) -> Iterator[GateReason]:
    """Report eval cases without runs, and runs without eval cases; a note lists the latter, too."""
    if coverage.missing:
        yield GateReason("not_evaluated", describe_missing(coverage.missing))
    if coverage.allowed:
        yield GateReason("remark", describe_missing(coverage.allowed))
    fails = any(config.unpooled_groups[0].thresholds.on_skip == "fail" for config in configs)
    if coverage.unmatched and fails:
        text = f"{format_count(coverage.unmatched, 'recorded run')} without an eval case"
        yield GateReason("failed", text)


def describe_missing(cases: Sequence[str]) -> str:
    """Describe the eval cases without a recorded run."""
    names = ", ".join(truncate.truncate_list(cases, MAX_NAMES))
    return f"{format_count(len(cases), 'eval case')} without a recorded run: {names}"


def _check_advisory(configs: Sequence[ConfigResults]) -> Iterator[GateReason]:
    failing = [
        result
        for config in configs
        for result in config.results
        if not result.evaluator.required and result.status in {"failed", "errored"}
    ]
    if failing:
        text = (
            f"{format_count(len(failing), 'advisory check')} did not "
            f"pass{_format_evaluator_names(failing)}"
        )
        yield GateReason("remark", text)


def _format_evaluator_names(results: Sequence[CheckResult]) -> str:
    names = list(dict.fromkeys(result.evaluator.name for result in results))
    return f" ({', '.join(truncate.truncate_list(names, MAX_NAMES))})"


def _format_shared_reason(results: Sequence[CheckResult]) -> str:
    """The reason of all ``results`` if they share one; otherwise empty."""
    reasons = {escape.flatten_line(result.reason or "") for result in results}
    if len(reasons) > 1 or "" in reasons:
        return ""
    return f": {truncate.short(reasons.pop(), MAX_REASON_CHARS)}"


def group_results_by_policy(
    gates: Sequence[Gate], results: Sequence[CheckResult]
) -> ResultsByPolicy:
    """Pair the policy of every config with its results; each result belongs to one of ``gates``."""
    by_config: dict[str, list[CheckResult]] = {gate.config: [] for gate in gates}
    for result in results:
        by_config[result.config].append(result)
    return [(gate.policy, by_config[gate.config]) for gate in gates]
