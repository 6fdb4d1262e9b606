"""A code judge: which keywords the answer has."""

import json
import sys

WANTED = ("async", "await")


def judge(answer: str) -> dict[str, object]:
    hits = [f"has {word}" for word in WANTED if word in answer]
    misses = [f"lacks {word}" for word in WANTED if word not in answer]
    return {"score": len(hits) / len(WANTED), "hits": hits, "misses": misses}


json.dump(judge(json.load(sys.stdin)["candidate_answer"]), sys.stdout)
