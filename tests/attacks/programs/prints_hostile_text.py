import json
import sys

given = json.load(sys.stdin)["config"]
with open("texts.json") as file:
    texts = json.load(file)
number, text, everything = given["number"], texts[given["number"]], "\n".join(texts)
details = {
    "issues": [text, everything][: 1 + (number % 9 == 0)],
    text: text,
    "hits": texts,
    "misses": texts,
    "reasoning": everything,
    "nested": {text: [text]},
}
score = float(number % 3 == 0)
print(json.dumps({"score": score, "per_invocation_scores": [score], "details": details}))
sys.stderr.write(everything.encode("utf-8", "replace").decode())
if number % 7 == 0:
    sys.exit(3)
