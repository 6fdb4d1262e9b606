"""Prompts to judge models, and the schemas of their responses."""
