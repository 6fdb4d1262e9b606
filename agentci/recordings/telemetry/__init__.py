"""Converts the OpenTelemetry spans of agents to turns."""
