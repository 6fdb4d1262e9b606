"""Text helpers: escaping, truncating, JSON with places."""
