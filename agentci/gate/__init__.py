"""Results to a decision."""
