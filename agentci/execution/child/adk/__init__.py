"""Run metrics of Google's ADK; a separate folder, so that a sandbox can allow only it."""
