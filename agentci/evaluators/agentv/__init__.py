"""Evaluators of AgentV's eval files, of all its generations."""
