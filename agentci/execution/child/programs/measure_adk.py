"""Run an evaluator of Google's ADK on turns, and print its result as JSON.

Runs as a program. Stdin is ``{"metric", "threshold", "actual", "expected"}``: the turns are ADK's
``Invocation`` in JSON, and ``expected`` is null if there are no expected turns. Stdout is
``{"score", "status", "turns"}``: score and status overall, and the same for each of ``turns``, with
its ``notes`` as ``{"id", "score", "rationale"}``. If the evaluator raises, stdout is
``{"error": "..."}``. ADK's own output goes to stderr.
"""

import json
import os
import sys
from typing import Any, Final

STDOUT, STDERR = 1, 2
NO_MESSAGE: Final = "no message"


def main() -> int:
    """Evaluate the turns from stdin, and return the exit code."""
    with open(os.dup(STDOUT), "wb") as out:
        os.dup2(STDERR, STDOUT)
        request = json.load(sys.stdin.buffer)
        try:
            result = _evaluate_turns(request)
        except Exception as error:  # noqa: BLE001 (every failure is reported)
            result = {"error": f"{type(error).__name__}: {str(error) or NO_MESSAGE}"}
        out.write(json.dumps(result).encode())
    return 0


def _evaluate_turns(request: dict[str, Any]) -> dict[str, Any]:
    from google.adk.evaluation.eval_case import Invocation  # noqa: PLC0415 (a failed import is reported)
    from google.adk.evaluation.eval_metrics import EvalMetric  # noqa: PLC0415 (same reason)
    from google.adk.evaluation.metric_evaluator_registry import (  # noqa: PLC0415 (same reason)
        DEFAULT_METRIC_EVALUATOR_REGISTRY,
    )

    actual, expected = (
        None if turns is None else [Invocation.model_validate(turn) for turn in turns]
        for turns in (request["actual"], request["expected"])
    )
    metric = EvalMetric(metric_name=request["metric"], threshold=request["threshold"])
    evaluator = DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(metric)
    result = evaluator.evaluate_invocations(actual, expected)
    return {
        "score": result.overall_score,
        "status": result.overall_eval_status.name,
        "turns": [
            {
                "score": turn.score,
                "status": turn.eval_status.name,
                "notes": [
                    {"id": note.rubric_id, "score": note.score, "rationale": note.rationale}
                    for note in turn.rubric_scores or []
                ],
            }
            for turn in result.per_invocation_results
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
