"""GitHub's API for the repository of the workflow."""
