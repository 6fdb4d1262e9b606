"""pytest-agent-evals' graders and prompts over rows of a dataset."""
