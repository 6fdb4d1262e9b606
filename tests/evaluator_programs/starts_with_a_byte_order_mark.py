"""Writes UTF-8 as some Windows programs do."""

import sys

sys.stdout.buffer.write('{"score": 1.0}'.encode("utf-8-sig"))
