"""Stands in for Google's ADK: the few classes that agentci uses, and a service that needs no network."""
