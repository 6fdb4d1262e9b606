"""Scores 1 if the answer wishes to enjoy the weather, else 0."""

import json
import sys

answer = json.load(sys.stdin)["invocations"][0]["final_response"]
print(json.dumps({"score": float("enjoy" in answer)}))
