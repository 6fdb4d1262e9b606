"""Entries of evaluators as AgentV writes them: what they may say, and what becomes of them."""
