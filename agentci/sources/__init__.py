"""Where remote evaluators come from."""
