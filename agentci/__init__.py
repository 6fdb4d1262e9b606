"""A quality gate for LLM agents: evaluates recorded runs and decides on thresholds."""
