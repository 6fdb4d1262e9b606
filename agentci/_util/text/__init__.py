"""Strings to strings: escaping, truncating, JSON with places."""
