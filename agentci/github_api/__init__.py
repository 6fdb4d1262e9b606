"""GitHub's API for one repository: that of the workflow which runs us."""
