"""``agentci.lock``: pinned commits, contents and packages of remote evaluators."""
