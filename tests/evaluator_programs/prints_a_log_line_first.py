"""Logs to the wrong stream."""

print("loading model")
print('{"score": 1.0}')
