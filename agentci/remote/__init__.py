"""Remote evaluators: sources, cache and lock file."""
