"""Recorded runs as messages or events instead of spans, one module per family of formats."""
