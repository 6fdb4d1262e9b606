"""Scores turns that there are not, leaves one out, and mixes types."""

print('{"score": 1, "per_invocation_scores": [0.2, null, 7, true, "0.5"]}')
