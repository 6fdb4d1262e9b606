"""Programs that evaluators run; a separate folder, so that a sandbox can allow only it."""
