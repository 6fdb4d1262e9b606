"""Responses of earlier runs, reused as long as nothing they were made from has changed."""
