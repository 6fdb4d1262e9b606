"""The cache on disk: verified on every read, safe between processes."""
