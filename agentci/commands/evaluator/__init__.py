"""``agentci evaluator``: for those who look for evaluators, and those who write them."""
