"""Recorded outputs as AgentV's tools write them."""
