"""Folders of a cache: created, locked and checked."""
