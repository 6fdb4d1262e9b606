"""Hangs together with a child and a grandchild, all of which hold its pipes."""

import os
import time

for _ in range(2):
    if os.fork():
        break
time.sleep(300)
