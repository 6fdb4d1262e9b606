"""Recorded files to spans, eval sets to golden cases."""
