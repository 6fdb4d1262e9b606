"""Shared value types: frozen, standard library only."""
