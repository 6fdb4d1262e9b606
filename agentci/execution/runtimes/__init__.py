"""How the file of a program becomes a command."""
