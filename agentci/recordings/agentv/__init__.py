"""Recorded outputs in AgentV's formats."""
