"""Plan a run, prepare it, and execute its checks."""
