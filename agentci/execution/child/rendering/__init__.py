"""Render untrusted templates; a separate folder, so that a sandbox can allow only it."""
