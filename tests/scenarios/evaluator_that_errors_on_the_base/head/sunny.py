"""Scores 1 if the answer says that it is sunny; it must say how warm it is."""

import json
import re
import sys

answer = json.load(sys.stdin)["invocations"][0]["final_response"]
if not re.search(r"\d+ degrees", answer):
    sys.exit("no temperature")
print(json.dumps({"score": float("sunny" in answer)}))
