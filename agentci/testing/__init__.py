"""What pytest runs evaluators by; ``agentci.pytest`` is the door to it."""
