"""What has Google's ADK measure: a folder of its own, so that a jail can open it alone."""
