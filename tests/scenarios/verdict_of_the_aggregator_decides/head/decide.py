import json

print(json.dumps({"score": 0.9, "verdict": "fail"}))
