"""Read AgentV's eval files into suites: cases with the evaluators of each."""
