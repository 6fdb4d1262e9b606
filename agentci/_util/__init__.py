"""General helpers for text, files, HTTP and caches."""
