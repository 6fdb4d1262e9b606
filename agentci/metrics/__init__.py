"""Scores that are computed here, without a process."""
