"""Make the command that runs a program's file."""
