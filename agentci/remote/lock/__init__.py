"""``agentci.lock``: pinned commits, file digests and packages of remote evaluators."""
