"""Run a program in isolation."""
