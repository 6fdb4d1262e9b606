"""Evaluators of AgentV eval files, for all generations of the format."""
