"""Replies of programs, kept for as long as nothing changes that they were made from."""
