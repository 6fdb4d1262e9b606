"""What GitHub tells a workflow step, and how it is answered."""
