"""Cache of remote evaluators: verified on every read, safe between processes."""
