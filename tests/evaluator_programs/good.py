"""Scores how many turns have an answer; takes its time only where config says so."""

import json
import sys
import time

case = json.load(sys.stdin)
time.sleep(case["config"].get("sleep", 0))
scores = [1.0 if turn["final_response"] else 0.0 for turn in case["invocations"]]
print(
    json.dumps(
        {
            "score": sum(scores) / len(scores),
            "per_invocation_scores": scores,
            "details": {"read": case["protocol_version"]},
        }
    )
)
