"""Search untrusted text; a separate folder, so that a sandbox can allow only it."""
