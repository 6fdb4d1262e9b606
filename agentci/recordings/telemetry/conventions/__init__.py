"""The conventions of instrumentations: each module reads the spans of one."""
