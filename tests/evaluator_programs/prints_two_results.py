"""Cannot decide."""

print('{"score": 1.0}')
print('{"score": 0.0}')
