"""Run each program in its own Docker container."""
