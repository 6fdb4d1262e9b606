"""The conventions of instrumentations, and functions that read their spans."""
