"""OpenTelemetry spans of agents to turns."""
