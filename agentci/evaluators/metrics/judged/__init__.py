"""Metrics that a judge model scores, turn by turn."""
