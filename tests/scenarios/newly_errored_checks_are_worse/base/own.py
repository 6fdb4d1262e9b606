"""Scores 1 if the answer is about the sun; fails on rain."""

import json
import sys

answer = json.load(sys.stdin)["invocations"][0]["final_response"]
assert "rain" not in answer
print(json.dumps({"score": float("sun" in answer)}))
