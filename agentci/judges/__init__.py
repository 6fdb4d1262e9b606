"""Judges: calls to language models, with providers, retries and budgets."""
