"""Documents from servers, with their failures, waits and limits."""
