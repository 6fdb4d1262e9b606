"""Config files to a suite, with the file and line of every value."""
