"""Latency, tokens and cost of all recorded runs of a report, and their change."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_number
from agentci.model.result import Report
from agentci.model.trace import TokenTotals
from agentci.reports.case_outcomes import Amounts, list_case_outcomes
from agentci.reports.report_format import USD_DIGITS


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
    """

    cases: int
    latency_ms: Percentiles | None = None
    tokens: TokenTotals | None = None
    cost_usd: float | None = None
    latency_cases: int = 0
    token_cases: int = 0
    cost_cases: int = 0


class ReportMetrics(Struct, frozen=True, kw_only=True):
    """What the runs of a report took.

    Attributes:
        run: all cases.
        common: those that the baseline has with the same number of turns; each amount over the
            cases that recorded it in both. None without a baseline.
        baseline: the same cases in the baseline.
        models: that the agents called.
    """

    run: RunAmounts
    common: RunAmounts | None
    baseline: RunAmounts | None
    models: tuple[str, ...]


def summarize_metrics(report: Report) -> ReportMetrics:
    """Summarize the amounts of all cases."""
    outcomes = list_case_outcomes(report)
    pairs = [_pair(each.amounts, each.before) for each in outcomes if each.before is not None]
    return ReportMetrics(
        run=_sum_amounts([each.amounts for each in outcomes]),
        common=_sum_amounts([now for now, _ in pairs]) if pairs else None,
        baseline=_sum_amounts([before for _, before in pairs]) if pairs else None,
        models=tuple(dict.fromkeys(model for each in outcomes for model in each.models)),
    )


def _pair(now: Amounts, before: Amounts) -> tuple[Amounts, Amounts]:
    """Keep what both have."""
    known = {
        name
        for name in Amounts.__struct_fields__
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
    )


def _percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values, between the nearest two in proportion."""
    position = share * (len(values) - 1)
    low = math.floor(position)
    high = math.ceil(position)
    return values[low] + (values[high] - values[low]) * (position - low)


def format_metrics(metrics: ReportMetrics) -> str:
    """Format what the runs took; "" if nothing was recorded.

    What both runs recorded is compared, over the cases where they did: "latency p50 1.4 s → 2 s
    (+43%), p95 9.1 s → 9.8 s (+8%) in 11 of 12 cases; 11,098 tokens (unchanged); $0.033".
    """
    run, common, before = metrics.run, metrics.common or _NOTHING, metrics.baseline or _NOTHING
    parts: list[tuple[str, str]] = []
    if run.latency_ms is not None:
        shares = [
            f"{name} "
            + _format_change(
                format_seconds,
                getattr(run.latency_ms, name),
                getattr(common.latency_ms, name, None),
                getattr(before.latency_ms, name, None),
            )
            for name in ("p50", "p95")
        ]
        cases = _format_cases(run.latency_cases, common.latency_cases)
        parts.append((f"latency {', '.join(shares)}", cases))
    if run.tokens is not None:
        amounts = map(_count_tokens, (run, common, before))
        change = _format_change(_format_tokens, *amounts)
        parts.append((change, _format_cases(run.token_cases, common.token_cases)))
    if run.cost_usd is not None:
        change = _format_change(_format_cost, run.cost_usd, common.cost_usd, before.cost_usd)
        parts.append((change, _format_cases(run.cost_cases, common.cost_cases)))
    shared = {cases for _, cases in parts}
    if len(parts) > 1 and len(shared) == 1 and "" not in shared:
        return f"{shared.pop()}: {'; '.join(text for text, _ in parts)}"
    return "; ".join(f"{text} {cases}".rstrip() for text, cases in parts)


def _format_cases(every: int, compared: int) -> str:
    """Format ``in 11 of 12 cases``; empty if all or none are compared."""
    return f"in {compared:,} of {every:,} cases" if 0 < compared < every else ""


def _format_tokens(amount: float) -> str:
    return f"{amount:,.0f} tokens"


def _format_cost(usd: float) -> str:
    return f"${format_number(usd, USD_DIGITS)} of the agent"


def format_seconds(milliseconds: float) -> str:
    """Format ``0.85 s``."""
    return f"{format_number(milliseconds / 1000, 2)} s"


def _count_tokens(amounts: RunAmounts) -> int | None:
    return None if amounts.tokens is None else amounts.tokens.input + amounts.tokens.output


def _format_change(
    write: Callable[[float], str], run: float | None, now: float | None, before: float | None
) -> str:
    """Format ``2 s → 3 s (+50%)``; of all cases of the run if it is not compared.

    The unit is written once.
    """
    if now is None or before is None:
        return write(run or 0.0)
    old, new = write(before), write(now)
    if old == new:
        return f"{new} (unchanged)"
    share = f" ({round((now / before - 1) * 100):+,}%)" if before > 0 else ""
    return f"{old.partition(' ')[0]} \N{RIGHTWARDS ARROW} {new}{share}"


_NOTHING: Final = RunAmounts(cases=0)
