"""Graders and prompts of pytest-agent-evals over the rows of a dataset."""
