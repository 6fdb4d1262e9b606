"""Runs each program in a Docker container of its own."""
