"""Stands in for the package of Google's models, which the extra of ADK brings."""
