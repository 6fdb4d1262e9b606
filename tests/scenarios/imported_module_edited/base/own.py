import json
import sys

import scoring

print(json.dumps({"score": scoring.score(json.load(sys.stdin))}))
