"""Sources of remote evaluators."""
