"""The outcome of each case of a report, without its content, for all report formats."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.case import CaseSummary
from agentci.model.result import CaseState, CheckResult, Report, RunContent
from agentci.model.trace import Milliseconds, TokenTotals
from agentci.model.values import IdentityKey
from agentci.reports.check_text import format_reason
from agentci.reports.contents import group_by_case, show_case

# What differs between cases that fail for the same reason.
_VALUES: Final = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']*'|\([^()]*\)|[\d.]+")

_ClusterKey: TypeAlias = tuple[tuple[str, str, str, str], ...]


class Amounts(Struct, frozen=True, kw_only=True):
    """What one recorded run took; None for what was not recorded."""

    latency_ms: Milliseconds | None = None
    tokens: TokenTotals | None = None
    cost_usd: float | None = None


class CaseOutcome(Struct, frozen=True, kw_only=True):
    """How a case ended.

    Attributes:
        results: of all its checks, in report order.
        state, answer_changed: as in ``ReportedCase``.
        amounts: of its run.
        before: of its run in the baseline; None without one, and where the numbers of turns differ.
        models: that the agent called, in order.
        tags: labels of the case.
        cluster: shared by cases that fail for the same reasons, from 0; None if none fails.
    """

    summary: CaseSummary
    results: tuple[CheckResult, ...]
    state: CaseState | None
    answer_changed: bool | None
    amounts: Amounts
    before: Amounts | None
    models: tuple[str, ...]
    tags: tuple[str, ...]
    cluster: int | None

    @property
    def problems(self) -> tuple[CheckResult, ...]:
        """Its failed and errored checks: failed first, required before advisory, worst first."""
        found = (each for each in self.results if each.status in ("failed", "errored"))
        return tuple(sorted(found, key=rank_problem))


def rank_problem(result: CheckResult) -> tuple[bool, bool, float]:
    """Return what sorts failed before errored, required before advisory, then by score."""
    score = -1.0 if result.score is None else result.score
    return (result.status != "failed", not result.evaluator.required, score)


def list_case_outcomes(report: Report) -> tuple[CaseOutcome, ...]:
    """List the outcomes in the order of ``list_reported_cases``."""
    return _list_case_outcomes(IdentityKey(report))


# All report formats of a run need them, and reading the contents takes long.
@lru_cache(maxsize=1)
def _list_case_outcomes(report: IdentityKey[Report]) -> tuple[CaseOutcome, ...]:
    clusters: dict[_ClusterKey, int] = {}
    found: list[CaseOutcome] = []
    for results in group_by_case(report.value.results):
        shown = show_case(report.value, results)
        before = shown.before
        key = _make_cluster_key(results)
        found.append(
            CaseOutcome(
                summary=shown.summary,
                results=tuple(results),
                state=shown.state,
                answer_changed=shown.answer_changed,
                amounts=_measure(shown.content),
                before=None
                if before is None or _count_turns(before) != _count_turns(shown.content)
                else _measure(before),
                models=_list_models(shown.content),
                tags=shown.content.tags,
                cluster=clusters.setdefault(key, len(clusters)) if key else None,
            )
        )
    return tuple(found)


def _make_cluster_key(results: Sequence[CheckResult]) -> _ClusterKey:
    """Describe why a case fails, without the values that differ between cases; empty if not."""
    return tuple(
        (each.config, each.evaluator.name, each.status, mask_values(format_reason(each)))
        for each in results
        if each.status in ("failed", "errored")
    )


def mask_values(reason: str) -> str:
    """Replace the values of a reason that differ between cases, so that equal causes are equal."""
    return _VALUES.sub("#", reason)


def _measure(content: RunContent) -> Amounts:
    return Amounts(latency_ms=content.latency_ms, tokens=content.tokens, cost_usd=content.cost_usd)


def _count_turns(content: RunContent) -> int:
    return sum(not turn.missing for turn in content.turns)


def _list_models(content: RunContent) -> tuple[str, ...]:
    used = [step.model for turn in content.turns for step in turn.steps]
    used += [span.model for span in content.spans]
    return tuple(dict.fromkeys(filter(None, used)))
