"""Start a child process, exchange data with it, and end it with everything that it started."""
