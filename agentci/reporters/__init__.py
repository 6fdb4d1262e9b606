"""A report as text, one file a form."""
