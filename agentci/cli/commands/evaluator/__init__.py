"""``agentci evaluator``: list, create, run and fetch evaluators."""
