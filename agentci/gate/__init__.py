"""Turn check results into a gate decision."""
