"""Shared frozen value types."""
