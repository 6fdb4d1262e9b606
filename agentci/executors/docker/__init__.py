"""Runs programs in containers of Docker: each in one of its own, made for it and thrown away."""
