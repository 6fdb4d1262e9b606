"""Entries of AgentV's evaluators: their fields and how evaluators are built from them."""
