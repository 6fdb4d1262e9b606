"""Runs metrics of Google's ADK; a folder of its own, so that a sandbox can open only it."""
