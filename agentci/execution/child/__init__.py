"""Code that runs in child processes, next to or inside the sandbox; standard library only."""
