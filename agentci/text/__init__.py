"""Strings to strings: escaping, clipping, words."""
