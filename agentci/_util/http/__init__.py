"""HTTP requests with error handling, retries and limits."""
