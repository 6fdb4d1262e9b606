"""Evaluators that are kept elsewhere: sources, cache, lock."""
