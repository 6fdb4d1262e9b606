"""Run an evaluator of Google's ADK on turns, and print its result as JSON.

Runs as a program. Stdin is ``{"metric", "threshold", "actual", "golden"}``: the turns are ADK's
``Invocation`` in JSON, and ``golden`` is null if there are no expected turns. Stdout is
``{"score", "status", "turns"}``: score and status overall, and the same for each of ``turns``, with
its ``notes`` as ``{"id", "score", "rationale"}``. If the evaluator raises, stdout is
``{"refusal": "..."}``. ADK's own output goes to stderr.
"""

import json
import os
import sys
from typing import Any, Final

STDOUT, STDERR = 1, 2
NO_MESSAGE: Final = "it said no more"


def main() -> int:
    """Evaluate the turns from stdin, and return the exit code."""
    with open(os.dup(STDOUT), "wb") as out:
        os.dup2(STDERR, STDOUT)
        asked = json.load(sys.stdin.buffer)
        try:
            answer = _evaluate_turns(asked)
        except Exception as error:  # noqa: BLE001 (every failure is reported)
            answer = {"refusal": f"{type(error).__name__}: {str(error) or NO_MESSAGE}"}
        out.write(json.dumps(answer).encode())
    return 0


def _evaluate_turns(asked: dict[str, Any]) -> dict[str, Any]:
    from google.adk.evaluation.eval_case import Invocation  # noqa: PLC0415 (a failed import is reported)
    from google.adk.evaluation.eval_metrics import EvalMetric  # noqa: PLC0415 (same reason)
    from google.adk.evaluation.metric_evaluator_registry import (  # noqa: PLC0415 (same reason)
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
