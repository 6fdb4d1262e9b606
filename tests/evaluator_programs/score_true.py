"""Takes a verdict for a score."""

print('{"score": true}')
