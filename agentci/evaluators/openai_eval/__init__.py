"""Graders of OpenAI's Evals API (``type: openai_eval``)."""
