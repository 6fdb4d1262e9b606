"""Has a good score, and a number that JSON does not know beside it."""

print('{"score": 1.0, "details": {"deviation": NaN}}')
