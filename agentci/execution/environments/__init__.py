"""Virtual environments for evaluators that require packages."""
