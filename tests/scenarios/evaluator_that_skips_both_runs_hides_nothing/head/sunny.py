"""Evaluates nothing."""

import json

print(json.dumps({"score": 0, "status": "NOT_EVALUATED"}))
