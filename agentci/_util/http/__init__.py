"""Documents from servers, with errors, retries and limits."""
