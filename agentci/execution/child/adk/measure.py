"""Has an evaluator of Google's ADK measure turns, and prints what it found as JSON.

Runs as a program. On stdin it reads ``{"metric", "threshold", "actual", "golden"}``, the turns as
ADK's ``Invocation`` has them in JSON, and null for ``golden`` where nothing is compared. On stdout
it prints ``{"score", "status", "turns"}``, score and status of all turns and of each of ``turns``,
which also has ``notes``: ``{"id", "score", "rationale"}``. Where the evaluator raised, it prints
``{"refusal": "..."}``. What ADK itself prints goes to stderr.
"""

import json
import os
import sys
from typing import Any, Final

STDOUT, STDERR = 1, 2
NO_MESSAGE: Final = "it said no more"


def main() -> int:
    """Measure, and say how that went."""
    with open(os.dup(STDOUT), "wb") as out:
        os.dup2(STDERR, STDOUT)
        asked = json.load(sys.stdin.buffer)
        try:
            answer = _evaluate_turns(asked)
        except Exception as error:  # noqa: BLE001 (whatever keeps it from judging is told)
            answer = {"refusal": f"{type(error).__name__}: {str(error) or NO_MESSAGE}"}
        out.write(json.dumps(answer).encode())
    return 0


def _evaluate_turns(asked: dict[str, Any]) -> dict[str, Any]:
    from google.adk.evaluation.eval_case import Invocation  # noqa: PLC0415 (failing is told)
    from google.adk.evaluation.eval_metrics import EvalMetric  # noqa: PLC0415 (likewise)
    from google.adk.evaluation.metric_evaluator_registry import (  # noqa: PLC0415 (likewise)
        DEFAULT_METRIC_EVALUATOR_REGISTRY,
    )

    actual, golden = (
        None if turns is None else [Invocation.model_validate(turn) for turn in turns]
        for turns in (asked["actual"], asked["golden"])
    )
    metric = EvalMetric(metric_name=asked["metric"], threshold=asked["threshold"])
    evaluator = DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(metric)
    found = evaluator.evaluate_invocations(actual, golden)
    return {
        "score": found.overall_score,
        "status": found.overall_eval_status.name,
        "turns": [
            {
                "score": turn.score,
                "status": turn.eval_status.name,
                "notes": [
                    {"id": note.rubric_id, "score": note.score, "rationale": note.rationale}
                    for note in turn.rubric_scores or []
                ],
            }
            for turn in found.per_invocation_results
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
