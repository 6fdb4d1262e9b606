"""Scores that a language model gives, turn by turn."""
