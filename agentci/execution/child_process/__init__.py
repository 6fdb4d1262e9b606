"""A child process: start it, feed it, read it, and end it with everything that it started."""
