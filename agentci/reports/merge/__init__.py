"""Reports of other runs: read as untrusted input and merged into one."""
