"""Scores 1 if the answer is about the sun; skips rain."""

import json
import sys

answer = json.load(sys.stdin)["invocations"][0]["final_response"]
if "rain" in answer:
    print(json.dumps({"score": 0.0, "status": "NOT_EVALUATED"}))
else:
    print(json.dumps({"score": float("sun" in answer)}))
