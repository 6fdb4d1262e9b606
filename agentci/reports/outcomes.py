"""Outcomes for all reports: of each case, of repeats (how often they disagree), of the whole run.

The last are latency, tokens and cost of all recorded runs, and their change.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from math import fsum
from typing import Final, Literal

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count, format_duration, format_number
from agentci.model.case import CaseSummary, ChangedCall, ResultChange
from agentci.model.result import (
    CaseState,
    CheckResult,
    RepeatRecord,
    Report,
    RunContent,
    has_only_errors,
)
from agentci.model.trace import Milliseconds, TokenTotals
from agentci.model.values import IdentityKey, replace
from agentci.reports.case_states import find_case_state, make_novelty_test
from agentci.reports.contents import (
    BaselineRun,
    count_turns,
    group_by_case,
    is_incomplete,
    list_models,
    load_run,
)
from agentci.reports.failure_patterns import (
    FORBIDDEN,
    MAX_DIFFERING,
    NO_CHANGES,
    TOOL_ERROR,
    FailurePattern,
    ToolError,
    count_differing,
    make_pattern,
    rank_seriousness,
)
from agentci.reports.groups_and_totals import (
    USD_DIGITS,
    format_path,
    group_by_evaluator,
    has_several_configs,
)


class Amounts(Struct, frozen=True, kw_only=True):
    """What one recorded run took; None for what was not recorded.

    Attributes:
        priced: whether the cost is computed from ``prices``.
    """

    latency_ms: Milliseconds | None = None
    tokens: TokenTotals | None = None
    cost_usd: float | None = None
    priced: bool = False


class CaseOutcome(Struct, frozen=True, kw_only=True, dict=True):
    """How a case ended.

    Attributes:
        results: of all its checks, in report order.
        state, answer_changed: against the baseline; None if not known, as of incomplete runs.
        amounts: of its run.
        before: of its run in the baseline; None without one, and where the numbers of turns differ.
        models: that the agent called, in order.
        models_before: in the baseline; empty if they are not known.
        tags: labels of the case.
        new: ids of its failed checks that did not fail in the baseline.
        cluster: shared by cases with the same cause, from 0 in the order of ``rank_cause``; None
            if none fails.
        decisive, kind, tool_error: of its pattern; None and empty if none fails.
        variant: shared by those that fail in the same way, but for their numbers.
        numbers: those of its pattern, in which it differs from other cases of its variant.
        given: of its pattern.
        is_known: whether what decided its failures is known, and not only their reasons.
    """

    summary: CaseSummary
    results: tuple[CheckResult, ...]
    state: CaseState | None
    answer_changed: bool | None
    amounts: Amounts
    before: Amounts | None
    models: tuple[str, ...]
    models_before: tuple[str, ...]
    tags: tuple[str, ...]
    new: frozenset[str] = frozenset()
    cluster: int | None = None
    decisive: CheckResult | None = None
    kind: str = ""
    tool_error: ToolError | None = None
    variant: int | None = None
    numbers: tuple[str, ...] = ()
    given: tuple[bool, ...] = ()
    is_known: bool = True

    @property
    def is_advisory_failure(self) -> bool:
        """Whether only advisory checks newly fail, which do not decide its state."""
        return bool(self.new) and self.state not in (None, "new_failure")

    @property
    def failing_tools(self) -> tuple[str, ...]:
        """Names of the tools that fail, or return what looks like it, unlike in the baseline."""
        return self.list_tools("error")

    def list_tools(self, kind: ResultChange) -> tuple[str, ...]:
        """List the names of the tools whose results changed in this way."""
        changes = self.summary.changes
        found = changes.results if changes else ()
        return tuple(dict.fromkeys(each.tool for each in found if each.kind == kind))

    @property
    def has_other_results(self) -> bool:
        """Whether tools return something else than in the baseline, and not errors or nothing."""
        changes = self.summary.changes
        first = changes.results[:1] if changes else ()
        return any(each.kind == "other" for each in first)

    @property
    def changed_calls(self) -> tuple[ChangedCall, ...]:
        """The first tool calls that the baseline does not have so, or only the baseline has."""
        return self.summary.changes.calls if self.summary.changes else ()

    @cached_property
    def problems(self) -> tuple[CheckResult, ...]:
        """Its failed and errored checks, in the order of all reports.

        Failed ones are before errored ones, required before advisory ones, newly failing before
        others, then by ``rank_seriousness``, then the worst.
        """
        return tuple(
            sorted(
                _list_problems(self.results),
                key=lambda each: (
                    *rank_problem(each)[:2],
                    each.id not in self.new,
                    rank_seriousness(each),
                    rank_problem(each)[2],
                ),
            )
        )


def _list_problems(results: Iterable[CheckResult]) -> list[CheckResult]:
    return [each for each in results if each.status in ("failed", "errored")]


def rank_problem(result: CheckResult) -> tuple[bool, bool, float]:
    """Return what sorts failed before errored, required before advisory, then by score."""
    score = -1.0 if result.score is None else result.score
    return (result.status != "failed", not result.evaluator.required, score)


def rank_cause(cases: Sequence[CaseOutcome]) -> tuple[bool, bool, bool, int, int]:
    """Rank a cause: failed before errored, required before advisory, forbidden calls, frequent.

    Of as many cases, the more serious ones are first.
    """
    decisive = cases[0].decisive or cases[0].results[0]
    rank = TOOL_ERROR if cases[0].tool_error is not None else rank_seriousness(decisive)
    return (
        decisive.status != "failed",
        not decisive.evaluator.required,
        rank != FORBIDDEN,
        -len(cases),
        rank,
    )


def list_case_outcomes(report: Report) -> tuple[CaseOutcome, ...]:
    """List the outcomes of all cases, in the order of the results."""
    return _list_case_outcomes(IdentityKey(report))


# All report formats of a run need them, and reading the contents takes long.
@lru_cache(maxsize=1)
def _list_case_outcomes(report: IdentityKey[Report]) -> tuple[CaseOutcome, ...]:
    patterns: list[FailurePattern | None] = []
    found: list[CaseOutcome] = []
    is_new = make_novelty_test(report.value)
    for results in group_by_case(report.value.results):
        run = load_run(report.value, results)
        content, before = run.content, run.before
        summary = results[-1].case
        new = frozenset(each.id for each in results if each.status == "failed" and is_new(each))
        pattern = _make_pattern(content, summary, results, new)
        patterns.append(pattern)
        found.append(
            CaseOutcome(
                summary=summary,
                results=tuple(results),
                state=find_case_state(report.value, results),
                answer_changed=_find_answer_change(results, before),
                amounts=_measure(content),
                before=None
                if before is None or before.turn_count != count_turns(content)
                else _measure(before),
                models=list_models(content),
                models_before=before.models if before else (),
                tags=content.tags,
                new=new,
                decisive=pattern.decisive if pattern else None,
                kind=pattern.kind if pattern else "",
                tool_error=pattern.tool_error if pattern else None,
                numbers=pattern.numbers if pattern else (),
                given=pattern.given if pattern else (),
                is_known=pattern is None or pattern.is_known,
            )
        )
    return tuple(_number_clusters(found, patterns))


def find_pattern(report: Report, outcome: CaseOutcome) -> FailurePattern:
    """Make the pattern of a case that fails, for its phrases."""
    content = load_run(report, outcome.results).content
    pattern = _make_pattern(content, outcome.summary, outcome.results, outcome.new)
    assert pattern is not None  # noqa: S101  (it fails)
    return pattern


def _make_pattern(
    content: RunContent,
    summary: CaseSummary,
    results: Sequence[CheckResult],
    new: frozenset[str],
) -> FailurePattern | None:
    return make_pattern(
        _list_problems(results),
        content,
        lambda result: result.id in new,
        failed_in_baseline=not new and any(each.status == "failed" for each in results),
        changes=summary.changes or NO_CHANGES,
    )


def _find_answer_change(results: Sequence[CheckResult], before: BaselineRun | None) -> bool | None:
    if before is None or is_incomplete(results):
        return None
    changes = results[0].case.changes
    # Where an answer is not kept, or only its start, this is all that is known.
    if changes is not None and changes.answer is not None:
        return True
    return before.answer_changed


def _number_clusters(
    outcomes: Sequence[CaseOutcome], patterns: Sequence[FailurePattern | None]
) -> Iterator[CaseOutcome]:
    """Number the causes by rank, and the cases of a cause that fail in the same way.

    Where many numbers differ, only those with equal ones do.
    """
    by_key: dict[bytes, list[FailurePattern]] = {}
    for each in filter(None, patterns):
        by_key.setdefault(each.key, []).append(each)
    split = {
        key
        for key, found in by_key.items()
        if count_differing([each.numbers for each in found], [each.given for each in found])
        > MAX_DIFFERING
    }
    causes: dict[tuple[str, ...], list[CaseOutcome]] = {}
    by_wording: dict[tuple[str, ...], tuple[str, ...]] = {}
    for outcome, pattern in zip(outcomes, patterns, strict=True):
        if pattern is not None:
            cause = by_wording.setdefault(pattern.wording, pattern.cause)
            causes.setdefault(cause, []).append(outcome)
    ranked = sorted(causes, key=lambda cause: rank_cause(causes[cause]))
    clusters = {cause: number for number, cause in enumerate(ranked)}
    variants: dict[tuple[int, bytes, tuple[str, ...]], int] = {}
    for outcome, pattern in zip(outcomes, patterns, strict=True):
        if pattern is None:
            yield outcome
        else:
            cluster = clusters[by_wording[pattern.wording]]
            whole = cluster, pattern.key, pattern.numbers if pattern.key in split else ()
            variant = variants.setdefault(whole, len(variants))
            yield replace(outcome, cluster=cluster, variant=variant)


def _measure(run: RunContent | BaselineRun) -> Amounts:
    return Amounts(
        latency_ms=run.latency_ms, tokens=run.tokens, cost_usd=run.cost_usd, priced=run.priced
    )


MAX_CASES: Final = 10


class RepeatStability(Struct, frozen=True, kw_only=True):
    """Stability of one evaluator that ran several times per case.

    Attributes:
        name: of the evaluator, with its config where there are several.
        flip_summary: the flip rate and the number of flaky checks.
        flaky: cases whose repeats disagree, the flakiest first, at most ``MAX_CASES``.
    """

    name: str
    flip_summary: str
    flaky: tuple[str, ...]

    @property
    def line(self) -> str:
        """The name, the summary and the cases on one line."""
        return f"{self.name}: " + ": ".join(
            filter(None, [self.flip_summary, ", ".join(self.flaky)])
        )


def summarize_repeats(results: tuple[CheckResult, ...]) -> Iterator[RepeatStability]:
    """Yield the stability of each repeated evaluator, in report order."""
    several = has_several_configs(results)
    for checks in group_by_evaluator(results):
        records = [
            (each.case.id, each.repeats, each.repeats.flip_rate)
            for each in checks.results
            if each.repeats is not None and each.repeats.flip_rate is not None
        ]
        if not records:
            continue
        flaky = sorted((each for each in records if each[2]), key=lambda each: -each[2])
        rate = format_number(mean_flip_rate(checks.results) or 0.0)
        of = f" of {format_path(checks.representative.config)}" if several else ""
        cases = [f"{case} ({_format_votes(record)})" for case, record, _ in flaky]
        share = f"{len(flaky):,} of {format_count(len(records), 'check')}"
        yield RepeatStability(
            name=f"{checks.representative.evaluator.name}{of}",
            flip_summary=f"{share} flaky (flip rate {rate})",
            flaky=tuple(truncate.truncate_list(cases, MAX_CASES)),
        )


def mean_flip_rate(results: Sequence[CheckResult]) -> float | None:
    """Return the mean flip rate of repeated checks with a verdict; None without any."""
    records = (result.repeats for result in results)
    rates = [each.flip_rate for each in records if each and each.flip_rate is not None]
    return fsum(rates) / len(rates) if rates else None


def make_repeat_properties(record: RepeatRecord | None) -> dict[str, str]:
    """Return the JUnit properties of one check; empty if its evaluator ran once."""
    if record is None:
        return {}
    rate = "" if record.flip_rate is None else format_number(record.flip_rate, digits=6)
    return {"repeats": f"{len(record.repeats)}", "flip_rate": rate}


def _format_votes(record: RepeatRecord) -> str:
    statuses = [each.status for each in record.repeats]
    return f"{statuses.count('passed')} of {len(statuses)} passed"


# A change of an amount from which it is shown beside the verdict, and has a colour in the page. The
# slowest cases differ more between two runs of the same agent.
NOTABLE_SHARE: Final = 0.1
NOTABLE_SHARE_OF_SLOWEST: Final = 0.5
# From this factor on, an increase is a warning; that of the latency only if it is as many
# milliseconds, as short times vary with the machine.
LARGE_FACTOR: Final = 2
MIN_LARGE_MS: Final = 1000
# A case is named from this factor on, if its amount is so much more: a run of the same agent may
# take one more step. By the attributes of ``Amounts``.
LARGE_FACTOR_OF_CASE: Final = 3
_LEAST_MORE: Final = {"latency_ms": MIN_LARGE_MS, "tokens": 1000, "cost_usd": 0.001}


class Percentiles(Struct, frozen=True, kw_only=True):
    """Percentiles over cases."""

    p50: float
    p95: float


class RunAmounts(Struct, frozen=True, kw_only=True):
    """What the runs of several cases took; None for what none of them recorded.

    Attributes:
        cases: number of cases that recorded any of them.
        latency_cases, token_cases, cost_cases: number of cases that recorded each.
        latency_ms: milliseconds of a case.
        tokens, cost_usd: sums; the cost is the agent's, in US dollars.
        priced_cases: number of cases whose cost is computed from ``prices``.
    """

    cases: int
    latency_ms: Percentiles | None = None
    tokens: TokenTotals | None = None
    cost_usd: float | None = None
    latency_cases: int = 0
    token_cases: int = 0
    cost_cases: int = 0
    priced_cases: int = 0


class LargeIncrease(Struct, frozen=True, kw_only=True):
    """The cases of which one amount is at least ``LARGE_FACTOR_OF_CASE`` times the baseline's.

    Attributes:
        cases: their number.
        case: id of the one with the largest factor.
        factor: how many times as much it took.
    """

    cases: int
    case: str
    factor: float


class ReportMetrics(Struct, frozen=True, kw_only=True):
    """What the runs of a report took.

    Attributes:
        run: all cases.
        common: those that the baseline has with the same number of turns, without runs that
            nothing could evaluate; each amount over the cases that recorded it in both. None
            without a baseline.
        baseline: the same cases in the baseline.
        models: that the agents called.
        models_before: those of the cases in the baseline, if it had others in the same cases.
        large: by the names of ``Amounts``, of what several cases recorded in both runs.
    """

    run: RunAmounts
    common: RunAmounts | None
    baseline: RunAmounts | None
    models: tuple[str, ...]
    models_before: tuple[str, ...] = ()
    large: Mapping[str, LargeIncrease] = {}


def summarize_metrics(report: Report) -> ReportMetrics:
    """Summarize the amounts of all cases."""
    return _summarize_metrics(IdentityKey(report))


# Each report format shows them, some in several places.
@lru_cache(maxsize=1)
def _summarize_metrics(report: IdentityKey[Report]) -> ReportMetrics:
    outcomes = list_case_outcomes(report.value)
    pairs = [
        _pair(each.amounts, each.before)
        for each in outcomes
        if each.before is not None and not has_only_errors(each.results)
    ]
    known = [each for each in outcomes if each.models and each.models_before]
    models_before = _join_models(each.models_before for each in known)
    is_other = set(models_before) != {model for each in known for model in each.models}
    return ReportMetrics(
        run=_sum_amounts([each.amounts for each in outcomes]),
        common=_sum_amounts([now for now, _ in pairs]) if pairs else None,
        baseline=_sum_amounts([before for _, before in pairs]) if pairs else None,
        models=_join_models(each.models for each in outcomes),
        models_before=models_before if is_other else (),
        large={
            name: found for name in _LEAST_MORE if (found := _find_large_increase(name, outcomes))
        },
    )


def _find_large_increase(name: str, outcomes: Sequence[CaseOutcome]) -> LargeIncrease | None:
    """Find the cases of which an amount is much more; None if none is, or if there is only one."""
    known = [each for each in outcomes if _read_amount_of_both(each, name)]
    large = [(factor, each) for each in known if (factor := find_large_factor(each, name))]
    if not large or len(known) == 1:
        return None
    factor, case = max(large, key=lambda each: each[0])
    return LargeIncrease(cases=len(large), case=case.summary.id, factor=factor)


def find_large_factor(outcome: CaseOutcome, name: str) -> float | None:
    """Return how many times an amount is that of the baseline, if it is much more.

    Args:
        outcome: of a case.
        name: an attribute of ``Amounts``.
    """
    amounts = _read_amount_of_both(outcome, name)
    if amounts is None:
        return None
    now, before = amounts
    is_large = now >= max(before * LARGE_FACTOR_OF_CASE, before + _LEAST_MORE[name])
    return now / before if is_large else None


def _read_amount_of_both(outcome: CaseOutcome, name: str) -> tuple[float, float] | None:
    """Read an amount of both runs; None if they are not compared, or it was 0 in the baseline."""
    if outcome.before is None or has_only_errors(outcome.results):
        return None
    now, before = (_read_amount(each, name) for each in (outcome.amounts, outcome.before))
    return (now, before) if now is not None and before else None


def _read_amount(amounts: Amounts, name: str) -> float | None:
    value: TokenTotals | float | None = getattr(amounts, name)
    return value.input + value.output if isinstance(value, TokenTotals) else value


def _join_models(models: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(models)))


def _pair(now: Amounts, before: Amounts) -> tuple[Amounts, Amounts]:
    """Keep what both have."""
    known = {
        name
        for name in ("latency_ms", "tokens", "cost_usd")
        if getattr(now, name) is not None and getattr(before, name) is not None
    }
    return _select(now, known), _select(before, known)


def _select(amounts: Amounts, names: Iterable[str]) -> Amounts:
    return Amounts(**{name: getattr(amounts, name) for name in names})


def _sum_amounts(amounts: Sequence[Amounts]) -> RunAmounts:
    latencies = sorted(each.latency_ms for each in amounts if each.latency_ms is not None)
    tokens = [each.tokens for each in amounts if each.tokens is not None]
    costs = [each.cost_usd for each in amounts if each.cost_usd is not None]
    return RunAmounts(
        cases=sum(each != Amounts() for each in amounts),
        latency_ms=Percentiles(p50=_percentile(latencies, 0.5), p95=_percentile(latencies, 0.95))
        if latencies
        else None,
        tokens=TokenTotals(
            input=sum(each.input for each in tokens), output=sum(each.output for each in tokens)
        )
        if tokens
        else None,
        cost_usd=math.fsum(costs) if costs else None,
        latency_cases=len(latencies),
        token_cases=len(tokens),
        cost_cases=len(costs),
        priced_cases=sum(each.priced for each in amounts),
    )


def _percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values, between the nearest two in proportion."""
    position = share * (len(values) - 1)
    low = math.floor(position)
    high = math.ceil(position)
    return values[low] + (values[high] - values[low]) * (position - low)


def format_metrics(
    metrics: ReportMetrics, *, bold: str = "", write_name: Callable[[str], str] = str
) -> str:
    """Format what the runs took; "" if nothing was recorded.

    What both runs recorded is compared, over the cases where they did: "latency p50 1.4 s → 2 s
    (+43%), p95 9.1 s → 9.8 s (+8%) (11 comparable cases); 11,098 tokens (unchanged)". Models
    follow if they are others than in the baseline: "model small → large".

    Args:
        bold: is put around each amount that is more by ``NOTABLE_SHARE``, p95 by
            ``NOTABLE_SHARE_OF_SLOWEST``, and around cases of which it is much more.
        write_name: escapes the name of a model or a case.
    """

    def format_large(name: str) -> str:
        found = metrics.large.get(name)
        if found is None:
            return ""
        where = f"{format_count(found.cases, 'case')} ({write_name(found.case)}"
        factor = f"{format_number(found.factor, 1)}{_TIMES}"
        return f", {bold}at least {LARGE_FACTOR_OF_CASE}{_TIMES} in {where}: {factor}){bold}"

    run, common, before = metrics.run, metrics.common or _NOTHING, metrics.baseline or _NOTHING
    parts: list[tuple[str, str]] = []
    if run.latency_ms is not None:
        shares = [
            f"{name} "
            + _format_change(
                _format_latency,
                getattr(run.latency_ms, name),
                getattr(common.latency_ms, name, None),
                getattr(before.latency_ms, name, None),
                bold,
                NOTABLE_SHARE if name == "p50" else NOTABLE_SHARE_OF_SLOWEST,
            )
            for name in ("p50", "p95")
        ]
        cases = _format_cases(run.latency_cases, common.latency_cases)
        parts.append((f"latency {', '.join(shares)}{format_large('latency_ms')}", cases))
    if run.tokens is not None:
        tokens = (_count_tokens(run), _count_tokens(common), _count_tokens(before))
        change = _format_change(_format_tokens, *tokens, bold)
        # They are what costs.
        change += "" if "cost_usd" in metrics.large else format_large("tokens")
        parts.append((change, _format_cases(run.token_cases, common.token_cases)))
    if run.cost_usd is not None:
        costs = (run.cost_usd, common.cost_usd, before.cost_usd)
        change = _format_change(_format_cost, *costs, bold)
        if run.priced_cases:
            change += " by `prices`"
        change += format_large("cost_usd")
        parts.append((f"agent cost {change}", _format_cases(run.cost_cases, common.cost_cases)))
    models = _format_models(metrics, bold, write_name)
    shared = {cases for _, cases in parts}
    if len(parts) > 1 and len(shared) == 1 and "" not in shared:
        amounts = f"{'; '.join(text for text, _ in parts)} {shared.pop()}"
        return "; ".join([amounts, *models])
    return "; ".join([*(f"{text} {cases}".rstrip() for text, cases in parts), *models])


MAX_MODELS: Final = 3


def _format_models(metrics: ReportMetrics, bold: str, write: Callable[[str], str]) -> Iterator[str]:
    if metrics.models_before:
        old, new = (
            ", ".join(truncate.truncate_list([*map(write, each)], MAX_MODELS))
            for each in (metrics.models_before, metrics.models)
        )
        yield f"{bold}model {old} \N{RIGHTWARDS ARROW} {new}{bold}"


def has_notable_change(metrics: ReportMetrics) -> bool:
    """Whether the models, the latency, the tokens or the cost of both runs differ."""
    if metrics.models_before or metrics.large:
        return True
    return any(
        abs(after / before - 1) >= (NOTABLE_SHARE_OF_SLOWEST if name == _SLOWEST else NOTABLE_SHARE)
        for name, after, before in _list_amounts(metrics)
    )


def list_large_increases(metrics: ReportMetrics) -> Iterator[str]:
    """Yield the amounts that are at least ``LARGE_FACTOR`` times those of the baseline's runs."""
    for name, after, before in _list_amounts(metrics):
        least = MIN_LARGE_MS if name == _MEDIAN else 0
        is_large = after >= before * LARGE_FACTOR and after - before >= least
        if name != _SLOWEST and is_large:
            yield f"{format_number(after / before, 1)} times the {name}"


_MEDIAN: Final = "latency p50"
_SLOWEST: Final = "latency p95"


def _list_amounts(metrics: ReportMetrics) -> Iterator[tuple[str, float, float]]:
    """Yield each amount that both runs recorded, by its name, unless it was 0 in the baseline."""
    now, before = metrics.common or _NOTHING, metrics.baseline or _NOTHING
    pairs = (
        (_MEDIAN, _find_latency(now, "p50"), _find_latency(before, "p50")),
        (_SLOWEST, _find_latency(now, "p95"), _find_latency(before, "p95")),
        ("tokens", _count_tokens(now), _count_tokens(before)),
        ("agent cost", now.cost_usd, before.cost_usd),
    )
    for name, after, earlier in pairs:
        if after is not None and earlier:
            yield name, after, earlier


def _format_cases(every: int, compared: int) -> str:
    """Format ``(11 comparable cases)``; empty if all or none are compared."""
    return f"({format_count(compared, 'comparable case')})" if 0 < compared < every else ""


def _format_tokens(amount: float) -> str:
    return f"{amount:,.0f} tokens"


def _format_cost(usd: float) -> str:
    return f"${format_number(usd, USD_DIGITS)}"


def _format_latency(milliseconds: float) -> str:
    return format_duration(milliseconds, 2)


def _find_latency(amounts: RunAmounts, percentile: Literal["p50", "p95"]) -> float | None:
    found: float | None = getattr(amounts.latency_ms, percentile, None)
    return found


def _count_tokens(amounts: RunAmounts) -> int | None:
    return None if amounts.tokens is None else amounts.tokens.input + amounts.tokens.output


def _format_change(
    write: Callable[[float], str],
    run: float | None,
    now: float | None,
    before: float | None,
    bold: str,
    notable: float = NOTABLE_SHARE,
) -> str:
    """Format ``2 s → 3 s (+50%)``; of all cases of the run if it is not compared.

    A unit that both have is written once.
    """
    if now is None or before is None:
        return write(run or 0.0)
    old, new = write(before), write(now)
    percent = round((now / before - 1) * 100) if before > 0 else None
    if old == new or percent == 0:
        return f"{new} ({'unchanged' if now == before else 'about the same'})"
    share = "" if percent is None else f" ({percent:+,}%)".replace("-", "\N{MINUS SIGN}")
    mark = bold if now >= before * (1 + notable) else ""
    own, other = _AMOUNT.fullmatch(old), _AMOUNT.fullmatch(new)
    if own is not None and other is not None and own["unit"] == other["unit"]:
        old = own["number"]
    return f"{mark}{old} \N{RIGHTWARDS ARROW} {new}{share}{mark}"


_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_AMOUNT: Final = re.compile(r"(?P<number>\$?[\d.,]+)(?P<unit>\D*)")


_NOTHING: Final = RunAmounts(cases=0)
