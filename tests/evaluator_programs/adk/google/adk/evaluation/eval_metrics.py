"""What is to be measured, and what came of it."""

from dataclasses import dataclass
from enum import Enum

EvalStatus = Enum("EvalStatus", ["PASSED", "FAILED", "NOT_EVALUATED"])


@dataclass(kw_only=True)
class EvalMetric:
    metric_name: str
    threshold: float


@dataclass
class RubricScore:
    rubric_id: str
    rationale: str | None = None
    score: float | None = None


class Scored:
    def __init__(self, score, threshold, notes=None):
        self.score = self.overall_score = score
        self.rubric_scores = notes
        status = EvalStatus.NOT_EVALUATED
        if score is not None:
            status = EvalStatus.PASSED if score >= threshold else EvalStatus.FAILED
        self.eval_status = self.overall_eval_status = status
        self.per_invocation_results = []
