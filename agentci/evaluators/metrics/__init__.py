"""Metrics: pure functions over turns."""
