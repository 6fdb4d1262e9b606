"""Findings of AgentV's evaluators, pass thresholds, and evaluators that score by a rule.

A score passes at 0.8 and is borderline from 0.6.
"""

import math
from typing import Final, Protocol

from msgspec import Struct, field

from agentci.evaluators.definition import Definition, Facts
from agentci.evaluators.evaluator import extract_judgement
from agentci.model.case import AgentvCase, Case, Expectation
from agentci.model.program import RequiredProgram
from agentci.model.requests import ConstantJudgement, EvaluatorIdentity, Judgement, Response
from agentci.model.trace import Transcript
from agentci.model.values import JsonObject, replace

PASS_SCORE: Final = 0.8
BORDERLINE_SCORE: Final = 0.6
FAILED_BY_VERDICT: Final = "failed by the verdict of its aggregator"


class Finding(Struct, frozen=True, kw_only=True):
    """The result of an evaluator before it is compared with a threshold.

    Attributes:
        score: 0 to 1.
        reason: a remark about the score itself.
        fails: whether the finding fails at any score.
        verdict: the verdict of a composite's aggregator, which decides instead of the score; a
            threshold of the entry itself must be reached as well. None if the score decides.
        is_partial: whether something was not evaluated, which always prevents a pass.
    """

    score: float
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str | None = None
    details: JsonObject = field(default_factory=dict)
    reason: str | None = None
    fails: bool = False
    verdict: bool | None = None
    is_partial: bool = False


class PassThreshold(Struct, frozen=True, kw_only=True):
    """What a finding must reach.

    Attributes:
        score: the lowest passing score.
        negated: whether the finding is inverted first.
        is_own: whether the entry itself sets the score.
    """

    score: float
    negated: bool = False
    is_own: bool = False


def make_agentv_judgement(finding: Finding, threshold: PassThreshold) -> Judgement:
    """Compare a finding with its threshold."""
    if threshold.negated:
        finding = replace(
            finding,
            score=1 - finding.score,
            hits=finding.misses,
            misses=finding.hits,
            fails=False,
            verdict=None if finding.verdict is None else not finding.verdict,
            reason=None if finding.fails and not finding.is_partial else finding.reason,
        )
    reaches = finding.score >= threshold.score
    accepted = reaches if finding.verdict is None or threshold.is_own else finding.verdict
    falls_short = finding.fails or finding.is_partial or finding.verdict is False
    passed = accepted and not falls_short
    reason = finding.reason or (None if passed else _describe_failure(finding, threshold.score))
    return Judgement(
        score=finding.score,
        passed=passed,
        reason=reason,
        hits=finding.hits,
        misses=finding.misses,
        reasoning=finding.reasoning,
        details=finding.details,
    )


def format_verdict(score: float) -> str:
    """Return AgentV's verdict for a score."""
    if score >= PASS_SCORE:
        return "pass"
    return "borderline" if score >= BORDERLINE_SCORE else "fail"


def clamp_score(score: float) -> float:
    """Limit a score to 0 to 1; a non-finite score becomes 0."""
    return min(max(score, 0.0), 1.0) if math.isfinite(score) else 0.0


def _describe_failure(finding: Finding, pass_score: float) -> str | None:
    if finding.verdict is False:
        return FAILED_BY_VERDICT
    if finding.score < BORDERLINE_SCORE:
        return None
    return f"borderline: at least {BORDERLINE_SCORE:g}, but below the threshold {pass_score:g}"


class ScoringRule(Protocol):
    """How a recorded run is scored; a frozen value."""

    def read_expectation(self, agentv_case: AgentvCase, /) -> Facts:
        """Return all that ``evaluate`` uses of the case, and no more."""

    def evaluate(self, agentv_case: AgentvCase, transcript: Transcript, /) -> Finding:
        """Score ``transcript``, a run of ``agentv_case``."""


class RuleEvaluator(Struct, frozen=True, kw_only=True):
    """An evaluator that scores by a rule.

    Attributes:
        definition: see ``ComparableEvaluator``.
    """

    identity: EvaluatorIdentity
    definition: Definition
    rule: ScoringRule
    threshold: PassThreshold

    @property
    def needs(self) -> tuple[RequiredProgram, ...]:
        """No prerequisites."""
        return ()

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return what the rule reads of the case."""
        return self.rule.read_expectation(get_agentv_case(expectation))

    def ask(self, case: Case) -> ConstantJudgement:
        """Evaluate immediately."""
        return ConstantJudgement(
            judgement=make_agentv_judgement(
                self.rule.evaluate(*get_recorded_run(case)), self.threshold
            )
        )

    def read(self, response: Response) -> Judgement:
        """Return the judgement."""
        return extract_judgement(response)


def get_agentv_case(expectation: Expectation) -> AgentvCase:
    """Return the AgentV case of an expectation from an eval file."""
    if expectation.agentv_case is None:
        raise TypeError("the expectation is not from an eval file")
    return expectation.agentv_case


def get_recorded_run(case: Case) -> tuple[AgentvCase, Transcript]:
    """Return the AgentV case and the transcript of a case from an eval file."""
    if case.agentv_case is None or case.transcript is None:
        raise TypeError(f"case {case.id} is not from an eval file")
    return case.agentv_case, case.transcript
