"""Renders untrusted templates; a folder of its own, so that a sandbox can open only it."""
