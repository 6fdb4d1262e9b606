"""What became of each evaluator's checks since an earlier run."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Final

from msgspec import Struct

from agentci._util.text.format import count, number
from agentci.gate.significance import TOLERANCE, holm, pairs_needed, sign_flip
from agentci.model.comparison import Change, Comparison, RegressionBar, Trend
from agentci.model.result import Result, Status
from agentci.model.values import replace

JUDGED: Final[tuple[Status, ...]] = ("passed", "failed")


class _Pair(Struct, frozen=True):
    before: Result
    after: Result


def compare(
    before: Sequence[Result],
    after: Sequence[Result],
    bars: Mapping[str, RegressionBar],
    *,
    baseline: str,
) -> Comparison:
    """Put the checks of two runs beside each other.

    Args:
        before: those of the baseline.
        bars: how much worse it may be, by config; without one any drop that is sure is a failure.
        baseline: where it was found.
    """
    earlier = {result.id: result for result in before}
    later = {result.id for result in after}
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in after:
        groups.setdefault((result.config, result.evaluator.name), []).append(result)
    return Comparison(
        baseline=baseline,
        trends=_with_chances(
            [
                _trend(results, earlier, bars.get(config, RegressionBar()))
                for (config, _), results in groups.items()
            ],
            bars,
        ),
        added=sum(result.id not in earlier for result in after),
        gone=sum(result.id not in later for result in before),
    )


def _trend(results: Sequence[Result], earlier: Mapping[str, Result], bar: RegressionBar) -> Trend:
    """What can be said before chances are looked at together."""
    known = [_Pair(earlier[each.id], each) for each in results if each.id in earlier]
    alike = [pair for pair in known if pair.before.fingerprint == pair.after.fingerprint]
    pairs = [pair for pair in alike if _is_judged(pair)]
    trend = Trend(
        config=results[0].config,
        evaluator=results[0].evaluator.name,
        required=results[0].evaluator.required,
        pairs=len(pairs),
        before=_mean([_score(pair.before) for pair in pairs]),
        after=_mean([_score(pair.after) for pair in pairs]),
        regressions=tuple(_changes(pairs, "passed", "failed")),
        improvements=tuple(_changes(pairs, "failed", "passed")),
        chance=None,
        outcome="pass",
        why="",
    )
    if not pairs:
        return replace(trend, outcome="non-comparable", why=_why_none(known, alike))
    needed = pairs_needed(1 - bar.confidence)
    if len(pairs) < needed:
        more = count(needed - len(pairs), "case")
        why = f"{count(len(pairs), 'case')} cannot show anything for sure: {more} more are needed"
        return replace(trend, outcome="insufficient-data", why=why)
    differences = [_score(pair.after) - _score(pair.before) for pair in pairs]
    drop = -fsum(differences) / len(pairs)
    return replace(
        trend,
        chance=sign_flip(differences),
        outcome="inconclusive" if drop > bar.max_drop + TOLERANCE else "pass",
    )


def _with_chances(trends: Sequence[Trend], bars: Mapping[str, RegressionBar]) -> tuple[Trend, ...]:
    """Judge drops by chances that are raised for the number of evaluators."""
    tested = [trend for trend in trends if trend.chance is not None]
    raised = iter(holm([trend.chance or 0.0 for trend in tested]))
    return tuple(
        trend
        if trend.chance is None
        else _decided(replace(trend, chance=next(raised)), bars.get(trend.config, RegressionBar()))
        for trend in trends
    )


def _decided(trend: Trend, bar: RegressionBar) -> Trend:
    before, after = number(trend.before or 0.0), number(trend.after or 0.0)
    said = f"mean score {after}, was {before}"
    if trend.outcome == "pass":
        return replace(trend, why=said)
    if trend.chance is not None and trend.chance <= 1 - bar.confidence + TOLERANCE:
        return replace(trend, outcome="fail", why=f"{said}, which is hardly chance")
    return replace(trend, why=f"{said}, which may be chance")


def _why_none(known: Sequence[_Pair], alike: Sequence[_Pair]) -> str:
    if not known:
        return "the baseline has none of its checks"
    if not alike:
        return "the evaluator or its golden cases have changed"
    return "no check was judged in both runs"


def _changes(pairs: Sequence[_Pair], before: Status, after: Status) -> Iterator[Change]:
    for pair in pairs:
        if (pair.before.status, pair.after.status) == (before, after):
            yield Change(
                case=pair.after.case.id, before=_given(pair.before), after=_given(pair.after)
            )


def _is_judged(pair: _Pair) -> bool:
    return pair.before.status in JUDGED and pair.after.status in JUDGED


def _given(result: Result) -> float | None:
    return None if result.judgement is None else result.judgement.score


def _score(result: Result) -> float:
    """The score; where there is none, whether it passed."""
    score = _given(result)
    return float(result.status == "passed") if score is None else score


def _mean(scores: Sequence[float]) -> float | None:
    return fsum(scores) / len(scores) if scores else None
