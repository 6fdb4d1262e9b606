"""The ways in which teams write evaluators down."""
