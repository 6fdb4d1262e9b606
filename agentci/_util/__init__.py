"""Text, files, HTTP and caches: nothing of the domain."""
