"""Reads recorded runs in AgentV's formats."""
