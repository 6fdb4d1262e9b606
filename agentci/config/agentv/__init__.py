"""AgentV's eval files to a suite: cases with the evaluators of each."""
