"""Prints a result, and fails all the same."""

import sys

print('{"score": 1.0}')
sys.stderr.write("nope\nline2\n")
sys.exit(3)
