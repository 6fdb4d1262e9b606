"""Writes what some Windows shells write."""

import sys

sys.stdout.buffer.write('{"score": 1.0}'.encode("utf-16"))
