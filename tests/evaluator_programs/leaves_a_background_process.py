"""Judges at once, but something in its background holds stdout."""

import os
import time

if os.fork() == 0:
    time.sleep(300)
    os._exit(0)
print('{"score": 1.0}')
