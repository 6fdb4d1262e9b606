"""Ends before the child that prints its result, as scripts with a `tee` do."""

import os
import time

if os.fork() == 0:
    time.sleep(0.01)
    os.write(1, b'{"score": 1.0}')
    os._exit(0)
os._exit(0)
