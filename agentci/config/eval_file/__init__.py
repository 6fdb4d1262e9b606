"""AgentV's eval files: cases with the evaluators of each."""
