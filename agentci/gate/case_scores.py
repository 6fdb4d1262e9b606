"""The scores of whole cases: the weighted means of what their evaluators gave."""

import math
from collections.abc import Sequence

from agentci.gate.trial_scores import together
from agentci.model.result import Result


def case_scores(results: Sequence[Result]) -> dict[str, float]:
    """The score of every case of one config, by its id, over its required checks.

    What could not be judged is left out: the gate minds errors by themselves. Where all weights
    are 0 the score is 0, as in AgentV. A confidence interval is that of the case's scores, one a
    trial.
    """
    by_case: dict[str, list[tuple[Result, float]]] = {}
    for result in results:
        score = None if result.judgement is None else result.judgement.score
        counts = result.evaluator.required and result.status in ("passed", "failed")
        if counts and score is not None:
            by_case.setdefault(result.case.id, []).append((result, score))
    return {case_id: _score(scored) for case_id, scored in by_case.items()}


def _score(scored: Sequence[tuple[Result, float]]) -> float:
    weights = [result.evaluator.weight for result, _ in scored]
    records = [result.trials for result, _ in scored if result.trials is not None]
    if len(records) < len(scored) or records[0].strategy != "confidence_interval":
        return _mean(weights, [score for _, score in scored])
    trials = zip(*(record.trials for record in records), strict=False)
    means = [_mean(weights, [each.score or 0.0 for each in trial]) for trial in trials]
    return together(means, "confidence_interval")


def _mean(weights: Sequence[float], scores: Sequence[float]) -> float:
    total = math.fsum(weights)
    weighted = (weight * score for weight, score in zip(weights, scores, strict=True))
    return math.fsum(weighted) / total if total else 0.0
