"""Judges without looking."""

print('{"score": 1.0}')
