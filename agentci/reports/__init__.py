"""A report in every output format."""
