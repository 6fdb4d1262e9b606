"""What a score means in AgentV: it passes at 0.8, and is borderline from 0.6 on."""

import math
from typing import Final

from msgspec import Struct, field

from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.values import replace

PASS: Final = 0.8
BORDERLINE: Final = 0.6


class Finding(Struct, frozen=True, kw_only=True):
    """What an evaluator found, before anybody says whether that is enough.

    Attributes:
        score: 0 to 1.
        reason: what has to be said of the score itself.
        falls_short: whether that is not enough whatever the score.
        is_partial: whether something was not judged, so that it passes in no case.
    """

    score: float
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str | None = None
    details: JsonObject = field(default_factory=dict)
    reason: str | None = None
    falls_short: bool = False
    is_partial: bool = False


class Standard(Struct, frozen=True, kw_only=True):
    """What a finding has to be.

    Attributes:
        line: the score that passes.
        negated: whether what was found is wanted to be otherwise.
    """

    line: float
    negated: bool = False


def judgement_of(finding: Finding, standard: Standard) -> Judgement:
    """Hold a finding against what it has to be."""
    if standard.negated:
        finding = _turned(finding)
    falls_short = finding.falls_short or finding.is_partial
    passed = finding.score >= standard.line and not falls_short
    reason = finding.reason or (None if passed else _borderline(finding.score, standard.line))
    return Judgement(
        score=finding.score,
        passed=passed,
        reason=reason,
        hits=finding.hits,
        misses=finding.misses,
        reasoning=finding.reasoning,
        details=finding.details,
    )


def verdict_of(score: float) -> str:
    """AgentV's word for a score."""
    if score >= PASS:
        return "pass"
    return "borderline" if score >= BORDERLINE else "fail"


def bar_of(line: float) -> str:
    """What has to be reached, in words."""
    return f"at least {line:g}"


def clamped(score: float) -> float:
    """Within 0 to 1; what is no finite number is 0."""
    return min(max(score, 0.0), 1.0) if math.isfinite(score) else 0.0


def _turned(finding: Finding) -> Finding:
    """What is found where it is wanted to be otherwise: what fell short is as it should be."""
    return replace(
        finding,
        score=1 - finding.score,
        hits=finding.misses,
        misses=finding.hits,
        falls_short=False,
        reason=None if finding.falls_short and not finding.is_partial else finding.reason,
    )


def _borderline(score: float, line: float) -> str | None:
    if score < BORDERLINE:
        return None
    return f"borderline: {BORDERLINE:g} or more, less than {line:g}"
