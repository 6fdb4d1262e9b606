"""OpenTelemetry spans of agents, and the turns that are found in them."""
