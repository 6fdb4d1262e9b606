"""Writes letters that are not UTF-8."""

import sys

sys.stdout.buffer.write('{"score": 1.0, "details": {"city": "Orléans"}}'.encode("latin-1"))
