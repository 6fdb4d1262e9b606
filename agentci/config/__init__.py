"""Read config files into suites, keeping the file and line of every value."""
