"""What GitHub tells a step of a workflow, and how a step answers: commands, and their limits."""
