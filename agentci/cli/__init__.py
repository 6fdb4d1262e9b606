"""The command line and the action: parse input, run one command, return an exit code."""
