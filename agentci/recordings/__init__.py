"""Reads traces, transcripts, eval sets and datasets into cases."""
