"""The scores of whole cases: the weighted means of what their evaluators gave."""

import math
from collections.abc import Sequence

from agentci.model.result import Result


def case_scores(results: Sequence[Result]) -> dict[str, float]:
    """The score of every case of one config, by its id, over its required checks.

    What could not be judged is left out: the gate minds errors by themselves. Where all weights
    are 0 the score is 0, as in AgentV.
    """
    by_case: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        evaluator = result.evaluator
        score = None if result.judgement is None else result.judgement.score
        if evaluator.required and result.status in ("passed", "failed") and score is not None:
            by_case.setdefault(result.case.id, []).append((evaluator.weight, score))
    return {case_id: _mean(weighted) for case_id, weighted in by_case.items()}


def _mean(weighted: Sequence[tuple[float, float]]) -> float:
    total = math.fsum(weight for weight, _ in weighted)
    return math.fsum(weight * score for weight, score in weighted) / total if total else 0.0
