import json
import sys

results = json.load(sys.stdin)["results"].values()
failed = [each for result in results for each in result.get("assertions", []) if not each["passed"]]
print(json.dumps({"score": 0.0 if failed else 1.0}))
