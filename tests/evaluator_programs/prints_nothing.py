"""Forgets to print its result."""

import sys

print("judged", file=sys.stderr)
