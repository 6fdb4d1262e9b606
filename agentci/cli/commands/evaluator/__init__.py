"""``agentci evaluator``: list, write, try out and fetch evaluators."""
