"""Traces, transcripts, eval sets and datasets to cases."""
